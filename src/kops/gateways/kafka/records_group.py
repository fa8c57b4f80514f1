"""Reads as a member of a group, and commits on request: the only reader in kops that joins a group."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from kops.core.errors import TimedOut
from kops.core.models import TopicPartition
from kops.core.records.models import Record
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.records_messages import BATCH, PASSING, POLL_SECONDS, SPEED, as_record, broken, librdkafka_partition, speed
from kops.gateways.kafka.translate import is_authentication, translate


class GroupReader:
    """Batches of records from the group's position; from the log start if it has no commit.

    :param ends: end of each partition when the reading began; None: read forever
    :param single: return records one by one, so that the position is never beyond the records taken if the reading is interrupted
    :ivar positions: the offset after the last record returned, for the partitions currently assigned to us
    :ivar committed: the offsets that were committed
    """

    def __init__(
        self, client: Client, group_id: str, topic: str, isolation: str, ends: Mapping[TopicPartition, int] | None, *, single: bool
    ) -> None:
        self._client = client
        self._topic = topic
        self._group_id = group_id
        self._ends = ends
        self._single = single
        self._ours: set[TopicPartition] = set()
        self._at_end: dict[TopicPartition, int] = {}
        self._joined = False
        self.committed: dict[TopicPartition, int] = {}
        self.positions: dict[TopicPartition, int] = {}
        self._written: dict[TopicPartition, int] = {}
        self._trouble: list[Any] = []
        self._consumer = client.consumer(
            {
                **speed(client, SPEED | {"queued.min.messages": 10_000}),
                "group.id": group_id,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "error_cb": self._trouble.append,
            }
        )

    def __iter__(self) -> Iterator[list[Record]]:
        """Join and read; yields empty batches while nothing arrives.

        :raises TimedOut: when the group assigns us no partition in time
        """
        self._consumer.subscribe([self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)
        started = heard = time.monotonic()
        while not self._finished():
            batch = [record for message in self._consumer.consume(BATCH, POLL_SECONDS) if (record := self._taken(message)) is not None]
            if batch or not self._trouble:
                heard = time.monotonic()
                self._trouble.clear()
            elif any(map(_is_final, self._trouble)) or time.monotonic() - heard > self._client.timeout:
                final = next(filter(_is_final, self._trouble), self._trouble[-1])
                raise translate(final, f"read as {self._group_id}", self._client.connection.bootstrap_servers)
            if not self._joined and time.monotonic() - started > self._client.timeout:
                raise TimedOut(
                    f"group {self._group_id} gave us no partition of {self._topic}",
                    hint="see `kops groups describe`: others may be members",
                )
            for some in [[record] for record in batch] if self._single else [batch]:
                self.positions |= {TopicPartition(record.topic, record.partition): record.offset + 1 for record in some}
                yield some
        # The last record may be followed by transaction markers, which the group need not read again.
        self.positions |= {partition: self._at_end[partition] for partition in self._ours if self._at_end.get(partition)}

    def written(self) -> None:
        """Mark everything returned so far as written: it may be committed."""
        self._written = dict(self.positions)

    def commit(self) -> None:
        """Commit what was written and is not committed yet, and wait for it.

        :raises KopsError: when the group rejects the offsets
        """
        from confluent_kafka import KafkaException

        new = {p: at for p, at in self._written.items() if p in self._ours and self.committed.get(p) != at}
        if not new:
            return
        try:
            done = self._consumer.commit(offsets=[librdkafka_partition(p, at) for p, at in new.items()], asynchronous=False)
        except KafkaException as error:
            raise translate(error.args[0], f"commit for {self._group_id}", self._client.connection.bootstrap_servers) from error
        for each in done or ():
            if each.error is not None:
                raise translate(each.error, f"commit for {self._group_id}", self._client.connection.bootstrap_servers)
        self.committed |= new

    def close(self) -> None:
        self._consumer.close()

    def _finished(self) -> bool:
        return self._ends is not None and self._joined and self._ours <= self._at_end.keys()

    def _taken(self, message: Any) -> Record | None:
        partition = TopicPartition(message.topic() or "", -1 if message.partition() is None else message.partition())
        error, offset = message.error(), message.offset()
        if error is None:
            if self._ends is not None and offset >= self._ends.get(partition, 0):
                self._at_end[partition] = self._ends.get(partition, 0)
                return None
            return as_record(message)
        if error.name() == "_PARTITION_EOF":
            self._at_end[partition] = offset if self._ends is None else min(offset, self._ends.get(partition, 0))
        elif error.name() in PASSING:  # the right to read as the group is among them, without which librdkafka asks again for ever
            self._trouble.append(error)
        else:
            raise broken(self._client, error, (message.topic(), message.partition()), offset)
        return None

    def _assigned(self, _consumer: Any, partitions: list[Any]) -> None:
        self._joined = True
        self._ours |= {TopicPartition(each.topic, each.partition) for each in partitions}

    def _revoked(self, _consumer: Any, partitions: list[Any]) -> None:
        self.commit()
        self._lost(_consumer, partitions)

    def _lost(self, _consumer: Any, partitions: list[Any]) -> None:
        for each in partitions:
            partition = TopicPartition(each.topic, each.partition)
            self._ours.discard(partition)
            self._at_end.pop(partition, None)
            self.positions.pop(partition, None)
            self._written.pop(partition, None)


def _is_final(error: Any) -> bool:
    return is_authentication(error) or error.name() == "GROUP_AUTHORIZATION_FAILED"

"""Reads frozen ranges of offsets, without joining a group and without committing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from kops.core.errors import OperationFailed, TimedOut
from kops.core.models import TopicPartition
from kops.core.records import OffsetRange, Ranges, Record
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.offsets import READ_COMMITTED, Offsets
from kops.gateways.kafka.translate import is_authentication, is_unreachable, translate

if TYPE_CHECKING:
    from confluent_kafka import Consumer

BATCH = 10_000
POLL_SECONDS = 0.1
_LOG_APPEND_TIME = 2
_PASSING = ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT", "GROUP_AUTHORIZATION_FAILED")
"""Errors that reading outlives: brokers that come back, and a group that is named but never used."""


class Records:
    """The records of a cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def read(self, ranges: Ranges, *, isolation: str = READ_COMMITTED, timeout: float | None = None) -> RangeReader:
        """Return the records of some ranges, as batches to iterate over once.

        Each partition comes in the order of its offsets; partitions are mixed.

        :param isolation: ``read_committed`` leaves out aborted and open transactions, ``read_uncommitted`` does not
        :param timeout: seconds to wait for the next record; the connection's when None
        """
        return RangeReader(self._client, ranges, isolation, self._client.timeout if timeout is None else timeout)


class RangeReader:
    """Batches of records, and afterwards where the reading stopped.

    :ivar records: number of records given so far
    """

    def __init__(self, client: Client, ranges: Ranges, isolation: str, timeout: float) -> None:
        self._client = client
        self._isolation = isolation
        self._timeout = timeout
        self._wanted = {partition: wanted for partition, wanted in ranges.items() if not wanted.empty}
        self._next = {partition: wanted.start for partition, wanted in self._wanted.items()}
        self._open = dict(self._wanted)
        self._trouble: Any = None
        self.total = sum(wanted.end - wanted.start for wanted in self._wanted.values())
        self.records = 0

    @property
    def done(self) -> int:
        """Return how many of the ranges' offsets are behind, records or not; ``total`` in the end."""
        return sum(position - self._wanted[partition].start for partition, position in self._next.items())

    @property
    def stable_until(self) -> dict[TopicPartition, int]:
        """Return the partitions whose end an open transaction kept from being read, and the offset where it begins."""
        return {p: position for p, position in self._next.items() if p not in self._open and position < self._wanted[p].end}

    def __iter__(self) -> Iterator[list[Record]]:
        """Read; closing the iterator closes the connection.

        :raises TimedOut: when nothing comes within the timeout, saying how far the reading got
        :raises OperationFailed: when records of a range are gone
        """
        if not self._open:
            return
        consumer = self._client.consumer(self._settings())
        try:
            consumer.assign([_librdkafka(partition, wanted.start) for partition, wanted in self._open.items()])
            yield from self._batches(consumer)
        finally:
            consumer.close()

    def _settings(self) -> dict[str, Any]:
        return {
            "group.id": f"kops-reader-{uuid4().hex}",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "isolation.level": self._isolation,
            "check.crcs": True,
            "max.poll.interval.ms": 86_400_000,
            "reconnect.backoff.max.ms": 1_000,
            "fetch.wait.max.ms": 100,
            "fetch.message.max.bytes": 8 * 1024 * 1024,
            "queued.min.messages": 200_000,
            "error_cb": self._on_error,
        }

    def _on_error(self, error: Any) -> None:
        self._trouble = error

    def _batches(self, consumer: Consumer) -> Iterator[list[Record]]:
        heard = time.monotonic()
        while self._open:
            # Asking for no more than can come returns as soon as it has come.
            left = sum(wanted.end - self._next[partition] for partition, wanted in self._open.items())
            before = self.done
            batch, finished = self._take(consumer.consume(min(BATCH, max(left, 1)), POLL_SECONDS))
            for partition in finished:
                del self._open[partition]
            if finished and self._open:
                consumer.pause([_librdkafka(partition) for partition in finished])
            if batch:
                self.records += len(batch)
                yield batch
            if batch or finished or self.done != before:
                heard, self._trouble = time.monotonic(), None
            elif time.monotonic() - heard > self._timeout or (self._trouble and is_authentication(self._trouble)):
                raise self._nothing_came()

    def _take(self, messages: list[Any]) -> tuple[list[Record], list[TopicPartition]]:
        """Return the records among some messages that are wanted, and the partitions that are finished with them."""
        batch: list[Record] = []
        ends = {(partition.topic, partition.partition): wanted.end for partition, wanted in self._open.items()}
        reached: dict[tuple[str, int], int] = {}
        ended: set[tuple[str, int]] = set()
        for message in messages:
            place = (message.topic(), message.partition())
            offset = message.offset()
            error = message.error()
            if error is not None and error.name() != "_PARTITION_EOF":
                self._fail(error, place, offset)
            elif (end := ends.get(place)) is None:
                continue
            elif offset >= end:
                reached[place] = end
            elif error is not None:
                reached[place] = offset
                ended.add(place)
            else:
                reached[place] = offset + 1
                batch.append(_record(message, place, offset))
        finished = []
        for place, position in reached.items():
            partition = TopicPartition(*place)
            self._next[partition] = position
            if position == ends[place] or (place in ended and self._ends_in_transaction(partition, position)):
                finished.append(partition)
        return batch, finished

    def _ends_in_transaction(self, partition: TopicPartition, position: int) -> bool:
        """Tell whether a partition that ends below the wanted offset has an open transaction there.

        The other reason is a new leader that does not know yet how far the log goes; it will.
        """
        if self._isolation != READ_COMMITTED:
            return False
        offsets = Offsets(self._client)
        stable = offsets.bounds([partition], isolation=READ_COMMITTED)[partition].log_end_offset
        return stable <= position < offsets.bounds([partition])[partition].log_end_offset

    def _fail(self, error: Any, place: tuple[str | None, int | None], offset: int | None) -> None:
        """Raise what reading does not outlive."""
        where = f"read {place[0]}:{place[1]}"
        if error.name() in _PASSING:
            self._trouble = error
        elif error.name() == "_AUTO_OFFSET_RESET":
            raise OperationFailed(
                f"could not {where} at offset {offset}: its records are gone, deleted by retention, truncation or another leader",
                hint="run the command again: it starts from the log start as it is now",
                topic=place[0],
                partition=place[1],
                offset=offset,
            )
        else:
            raise translate(error, f"{where} at offset {offset}", self._client.connection.bootstrap_servers)

    def _nothing_came(self) -> Exception:
        partition = next(iter(self._open))
        known = f"got to offset {self._next[partition]} of {self._wanted[partition].end} of {partition}"
        more = f" ({len(self._open) - 1} more unfinished)" if len(self._open) > 1 else ""
        trouble = self._trouble
        if trouble is not None and (is_authentication(trouble) or is_unreachable(trouble)):
            return translate(trouble, "read records", self._client.connection.bootstrap_servers)
        return TimedOut(
            f"no record came for {self._timeout:g} s; {known}{more}",
            hint="raise --timeout, or look at the leader of that partition; reading changes nothing, so run it again",
            topic=partition.topic,
            partition=partition.partition,
            offset=self._next[partition],
        )


def _record(message: Any, place: tuple[str, int], offset: int) -> Record:
    kind, timestamp = message.timestamp()
    headers = message.headers()
    return Record(
        *place,
        offset,
        timestamp if kind else None,
        message.key(),
        message.value(),
        tuple(headers) if headers else (),
        kind == _LOG_APPEND_TIME,
    )


def _librdkafka(partition: TopicPartition, offset: int | None = None) -> Any:
    from confluent_kafka import TopicPartition as Librdkafka

    return Librdkafka(partition.topic, partition.partition) if offset is None else Librdkafka(partition.topic, partition.partition, offset)


__all__ = ["OffsetRange", "RangeReader", "Records"]

"""Reads fixed offset ranges, or from given offsets on, without joining a group and without committing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kops.core.errors import TimedOut
from kops.core.models import READ_COMMITTED, TopicPartition
from kops.core.records.models import Ranges, Record
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.offsets import Offsets
from kops.gateways.kafka.records_messages import (
    BATCH,
    PASSING,
    POLL_SECONDS,
    as_record,
    as_records,
    broken,
    librdkafka_partition,
    parts_reader,
    settings,
)
from kops.gateways.kafka.translate import is_authentication, is_unreachable, translate
from kops.gateways.threads import in_thread

if TYPE_CHECKING:
    from confluent_kafka import Consumer

    from kops.gateways.kafka.producing_stream import Sender
    from kops.gateways.kafka.records_group import GroupReader


T = TypeVar("T")

LOOK_SECONDS = 5.0
"""How often to check whether a topic has more partitions."""


class Records:
    def __init__(self, client: Client) -> None:
        self._client = client

    def read(self, ranges: Ranges, *, isolation: str = READ_COMMITTED) -> RangeReader[Record]:
        """Return the records of some ranges, as batches to iterate over once.

        Each partition's records come in the order of their offsets; partitions are interleaved.

        :param isolation: ``read_committed`` leaves out aborted and open transactions, ``read_uncommitted`` does not
        """
        return RangeReader(self._client, ranges, isolation, as_records)

    def values(self, ranges: Ranges, *, isolation: str = READ_COMMITTED) -> RangeReader[bytes | None]:
        """Return only the values, several times as fast as :meth:`read`."""
        from confluent_kafka import Message

        return RangeReader(self._client, ranges, isolation, lambda messages: list(map(Message.value, messages)))

    def parts(self, ranges: Ranges, names: Sequence[str], *, isolation: str) -> RangeReader[tuple[Any, ...]]:
        """Return some fields of each record; the fewer, the faster than :meth:`read`.

        :param names: of fields of ``Record``, except ``log_append_time``
        """
        return RangeReader(self._client, ranges, isolation, parts_reader(names))

    def follow(
        self, starts: Mapping[TopicPartition, int], *, isolation: str = READ_COMMITTED, whole: str | None = None
    ) -> Iterator[list[Record]]:
        """Yield records as they arrive, and an empty batch now and then while none do; never ends.

        Waits for brokers that are temporarily down.

        :param whole: a topic whose future partitions are read too, from their first record on
        :raises Unreachable: when no broker has answered within the time limit of a request, or our credentials are rejected
        :raises OperationFailed: when the records to be read next no longer exist
        """
        client = self._client
        trouble: list[Any] = []
        growth = _Growth(client, whole, starts) if whole is not None else None
        consumer = client.consumer({**settings(client, isolation), "error_cb": trouble.append})
        try:
            consumer.assign([librdkafka_partition(partition, offset) for partition, offset in starts.items()])
            heard = time.monotonic()
            while True:
                batch = []
                for message in consumer.consume(BATCH, POLL_SECONDS):
                    error = message.error()
                    if error is None:
                        batch.append(as_record(message))
                    elif error.name() in PASSING:
                        trouble.append(error)
                    else:
                        raise broken(client, error, (message.topic(), message.partition()), message.offset())
                yield batch
                if growth is not None and (new := growth.seen()):
                    consumer.incremental_assign([librdkafka_partition(partition, 0) for partition in new])
                if batch or not trouble:
                    heard = time.monotonic()
                    trouble.clear()
                elif is_authentication(trouble[-1]):
                    raise translate(trouble[-1], "read records", client.connection.bootstrap_servers)
                elif time.monotonic() - heard > client.timeout:
                    Offsets(client).bounds(list(starts)[:1])  # raises if the brokers are silent, and not just the producers
                    trouble.clear()
        finally:
            consumer.close()

    def as_group(
        self, group_id: str, topic: str, ends: Mapping[TopicPartition, int] | None, *, isolation: str, single: bool
    ) -> GroupReader:
        from kops.gateways.kafka.records_group import GroupReader

        return GroupReader(self._client, group_id, topic, isolation, ends, single=single)

    def sender(self, topic: str, *, partitioner: str, acks: str, largest: int) -> Sender:
        from kops.gateways.kafka.producing_stream import Sender

        return Sender(self._client, topic, partitioner=partitioner, acks=acks, largest=largest)


class RangeReader(Generic[T]):
    """Batches of records; afterwards it also has the offset that was reached.

    :param shape: converts a list of confluent-kafka messages to the items of a batch
    :ivar records: number of records returned so far
    """

    def __init__(self, client: Client, ranges: Ranges, isolation: str, shape: Callable[[list[Any]], list[T]]) -> None:
        self._client = client
        self._isolation = isolation
        self._shape = shape
        self._wanted = {partition: wanted for partition, wanted in ranges.items() if not wanted.empty}
        self._next = {partition: wanted.start for partition, wanted in self._wanted.items()}
        self._open = dict(self._wanted)
        self._trouble: Any = None
        self.total = sum(wanted.end - wanted.start for wanted in self._wanted.values())
        self.records = 0

    @property
    def done(self) -> int:
        """Return how many of the ranges' offsets have been passed, with or without a record; equals ``total`` at the end."""
        return sum(position - self._wanted[partition].start for partition, position in self._next.items())

    @property
    def stable_until(self) -> dict[TopicPartition, int]:
        """Return the partitions whose end could not be read because of an open transaction, and the offset where it begins."""
        return {p: position for p, position in self._next.items() if p not in self._open and position < self._wanted[p].end}

    def __iter__(self) -> Iterator[list[T]]:
        """Read; closing the iterator closes the connection.

        :raises TimedOut: when nothing arrives within the timeout; states how far the reading got
        :raises OperationFailed: when records of a range no longer exist
        """
        if not self._open:
            return
        consumer = self._client.consumer(
            {**settings(self._client, self._isolation), "enable.partition.eof": True, "error_cb": self._on_error}
        )
        try:
            consumer.assign([librdkafka_partition(partition, wanted.start) for partition, wanted in self._open.items()])
            yield from self._batches(consumer)
        finally:
            consumer.close()

    def _on_error(self, error: Any) -> None:
        self._trouble = error

    def _batches(self, consumer: Consumer) -> Iterator[list[T]]:
        heard = time.monotonic()
        while self._open:
            # A request for no more than can arrive returns as soon as that has arrived.
            left = sum(wanted.end - self._next[partition] for partition, wanted in self._open.items())
            before = self.done
            messages = consumer.consume(min(BATCH, max(left, 1)), POLL_SECONDS)
            batch, finished = self._in_the_middle(messages) or self._take(messages)
            for partition in finished:
                del self._open[partition]
            if finished and self._open:
                consumer.pause([librdkafka_partition(partition) for partition in finished])
            if batch:
                self.records += len(batch)
                yield batch
            if batch or finished or self.done != before:
                heard, self._trouble = time.monotonic(), None
            elif time.monotonic() - heard > self._client.timeout or (self._trouble and is_authentication(self._trouble)):
                raise self._nothing_came()

    def _in_the_middle(self, messages: list[Any]) -> tuple[list[T], list[TopicPartition]] | None:
        """Return a batch in which every message is in range and no partition ends, as in almost all; None for any other.

        Only the last message of each partition is checked, not each message.
        """
        if not messages or len({partition.topic for partition in self._open}) != 1:
            return None
        from confluent_kafka import Message  # its methods are called without a lookup per message

        topic = next(iter(self._open)).topic
        last = dict(zip(map(Message.partition, messages), messages, strict=True))
        reached = {}
        for number, message in last.items():
            partition = TopicPartition(topic, number)
            wanted, offset = self._open.get(partition), message.offset()
            if wanted is None or offset is None or offset + 1 >= wanted.end:
                return None
            reached[partition] = offset + 1
        if any(map(Message.error, messages)):
            return None
        self._next |= reached
        return self._shape(messages), []

    def _take(self, messages: list[Any]) -> tuple[list[T], list[TopicPartition]]:
        """Return the messages that are in range, as items of a batch, and the partitions that are now complete."""
        batch: list[Any] = []
        ends = {(partition.topic, partition.partition): wanted.end for partition, wanted in self._open.items()}
        reached: dict[tuple[str, int], int] = {}
        ended: set[tuple[str, int]] = set()
        for message in messages:
            place = (message.topic(), message.partition())
            offset = message.offset()
            error = message.error()
            if error is not None and error.name() != "_PARTITION_EOF":
                if error.name() not in PASSING:
                    raise broken(self._client, error, place, offset)
                self._trouble = error
            elif (end := ends.get(place)) is None:
                continue
            elif offset >= end:
                reached[place] = end
            elif error is not None:
                reached[place] = offset
                ended.add(place)
            else:
                reached[place] = offset + 1
                batch.append(message)
        finished = []
        for place, position in reached.items():
            partition = TopicPartition(*place)
            self._next[partition] = position
            if position == ends[place] or (place in ended and self._ends_in_transaction(partition, position)):
                finished.append(partition)
        return self._shape(batch), finished

    def _ends_in_transaction(self, partition: TopicPartition, position: int) -> bool:
        """Whether a partition that ends below the requested offset has an open transaction there.

        The other reason is a new leader that does not know yet how far the log goes; it will.
        """
        if self._isolation != READ_COMMITTED:
            return False
        offsets = Offsets(self._client)
        stable = offsets.bounds([partition], isolation=READ_COMMITTED)[partition].log_end_offset
        return stable <= position < offsets.bounds([partition])[partition].log_end_offset

    def _nothing_came(self) -> Exception:
        partition = next(iter(self._open))
        known = f"got to offset {self._next[partition]} of {self._wanted[partition].end} of {partition}"
        more = f" ({len(self._open) - 1} more unfinished)" if len(self._open) > 1 else ""
        trouble = self._trouble
        if trouble is not None and (is_authentication(trouble) or is_unreachable(trouble)):
            return translate(trouble, "read records", self._client.connection.bootstrap_servers)
        return TimedOut(
            f"no record came for {self._client.timeout:g} s; {known}{more}",
            hint="raise --timeout, or look at the leader of that partition; reading changes nothing, so run it again",
            topic=partition.topic,
            partition=partition.partition,
            offset=self._next[partition],
        )


class _Growth:
    """Checks periodically, in a thread of its own, for new partitions of a topic."""

    def __init__(self, client: Client, topic: str, known: Iterable[TopicPartition]) -> None:
        self._offsets = Offsets(client)
        self._topic = topic
        self._known = set(known)
        self._looked = time.monotonic()
        self._looking: Future[tuple[TopicPartition, ...]] | None = None

    def seen(self) -> list[TopicPartition]:
        if self._looking is None:
            if time.monotonic() - self._looked > LOOK_SECONDS:
                self._looking = in_thread(lambda: self._offsets.partitions_or_errors([self._topic])[0].get(self._topic, ()))
            return []
        if not self._looking.done():
            return []
        found, self._looking, self._looked = self._looking, None, time.monotonic()
        if found.exception() is not None:  # the reader reports silent brokers
            return []
        new = [partition for partition in found.result() if partition not in self._known]
        self._known.update(new)
        return new

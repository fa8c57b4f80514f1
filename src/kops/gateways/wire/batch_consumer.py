"""Fetches whole record batches through kafka-python's connections: unchanged, or decoded into columns.

Spark's own source creates an object per record first; this costs a fifth of that. It never joins a group and commits nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kops.core.models import TopicPartition
from kops.core.records.models import OffsetRange
from kops.formats.batches.columns import RecordColumns, any_aborted, decode_in_parts, offsets_between, without_aborted
from kops.formats.batches.header import Batch, Gaps, HugeBatch, batches_of
from kops.gateways.wire.connections import (
    PATIENCE_SECONDS,
    REQUEST_MILLISECONDS,
    Patience,
    await_quota,
    can_connect,
    connected,
    is_passing,
    leader,
    refresh,
)
from kops.gateways.wire.kafka_python import request_class

HELD_SECONDS = 600.0
"""How much longer a fetch is retried while a quota throttles it: a quota below the size of a batch does so forever."""

_RETRY_SECONDS = 0.1
_WAIT_MILLISECONDS = 500
_PARTITION_BYTES = 8 << 20
_FETCH_VERSIONS = {"min_version": 4, "max_version": 11}
"""Of Fetch requests: from the first that carries record batches of magic 2 to the last that names topics and has no session epochs."""
_CONSUMER = -1


class RecordsLost(ValueError):
    """Records of a range are no longer in the log."""


@dataclass(frozen=True)
class _Answer:
    data: bytes
    aborted: tuple[tuple[int, int], ...] = ()


class BatchConsumer:
    """Reads ranges of one topic.

    :param settings: librdkafka's, for which ``connections.can_connect`` is true
    :param read_committed: leave out aborted transactions

    ``gaps`` are the offsets without a record found so far, except transaction markers, which are batches of their own. ``aborted`` is
    whether one of the markers aborted its transaction, if uncommitted records are read.
    """

    def __init__(self, topic: str, settings: Mapping[str, Any], *, read_committed: bool = False) -> None:
        self.topic = topic
        self.gaps = Gaps()
        self.aborted = False
        self._read_committed = read_committed
        self._client = connected(settings)
        refresh(self._client, self.topic)

    def close(self) -> None:
        self._client.close()

    def read(self, partition: int, start: int, end: int) -> Iterator[RecordColumns]:
        """Yield the records with start <= offset < end, in order, as they arrive: some megabytes at a time.

        :raises kops.formats.batches.header.UnreadableBatch: when a batch is damaged or of an old format; otherwise as ``batches``
        :raises kops.formats.batches.header.HugeBatch: when a batch takes too much memory
        """
        for data, batches in self.batches(partition, start, end):
            try:
                for part in decode_in_parts(data, batches):
                    columns = offsets_between(part, start, end)
                    if len(columns):
                        yield columns
            except HugeBatch as huge:
                raise HugeBatch(f"{self.topic}:{partition}: {huge}") from huge

    def batches(self, partition: int, start: int, end: int) -> Iterator[tuple[bytes, list[Batch]]]:
        """Yield, per fetch, the batches with records from ``start`` up to ``end``; the first and last may extend beyond.

        :raises RecordsLost: when the log begins after ``start``
        :raises TimeoutError: when the leader does not answer, or the records do not become readable, in time
        """
        at, patience, held = start, Patience(), 0.0
        while at < end:
            held += await_quota(self._client, leader(self._client, self.topic, partition))
            answer = self._fetch(partition, at)
            found = batches_of(answer.data) if answer else []
            if answer is None or not found:
                if patience.waited > PATIENCE_SECONDS + min(held, HELD_SECONDS):
                    why = f", {held:.0f} of them held back by a quota of the brokers" if held else ""
                    within = f"within {patience.waited:.0f} s{why}"
                    raise TimeoutError(f"{self.topic}:{partition} gave no records from offset {at} on {within}")
                continue
            self.gaps.see(found, at, end)
            self.aborted = self.aborted or (not self._read_committed and any_aborted(answer.data, found))
            at, held = found[-1].last_offset + 1, 0.0
            patience.renew()
            inside = [batch for batch in found if batch.base_offset < end and batch.last_offset >= start]
            kept = without_aborted(answer.data, inside, answer.aborted)
            if kept:
                yield answer.data, kept

    def _fetch(self, partition: int, offset: int) -> _Answer | None:
        """Fetch from the leader once; None if the request is to be repeated."""
        from kafka.errors import KafkaError

        node = leader(self._client, self.topic, partition)
        if node is not None:
            try:
                return self._ask(node, partition, offset)
            except KafkaError as error:
                if not is_passing(error):
                    raise
        time.sleep(_RETRY_SECONDS)
        refresh(self._client, self.topic)
        return None

    def _ask(self, node: int, partition: int, offset: int) -> _Answer:
        from kafka.errors import for_code

        request_type = request_class("FetchRequest")
        topic = request_type.FetchTopic
        wanted = topic.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=_PARTITION_BYTES)
        request = request_type(
            replica_id=_CONSUMER,
            max_wait_ms=_WAIT_MILLISECONDS,
            min_bytes=1,
            max_bytes=_PARTITION_BYTES,
            isolation_level=int(self._read_committed),
            topics=[topic(topic=self.topic, partitions=[wanted])],
            **_FETCH_VERSIONS,
        )
        response = self._client.send_and_receive(node, request, timeout_ms=REQUEST_MILLISECONDS)
        if response.error_code:
            raise for_code(response.error_code)(f"fetching {self.topic}:{partition}")
        if not response.responses:  # throttled by a quota
            return _Answer(b"")
        answer = response.responses[0].partitions[0]
        if answer.error_code:
            error = for_code(answer.error_code)
            if error.message == "OFFSET_OUT_OF_RANGE":
                raise RecordsLost(f"{self.topic}:{partition} no longer has offset {offset}: older records are gone")
            raise error(f"fetching {self.topic}:{partition}")
        aborted = tuple((transaction.producer_id, transaction.first_offset) for transaction in answer.aborted_transactions or ())
        return _Answer(bytes(answer.records or b""), aborted)


def has_only(settings: Mapping[str, Any], place: TopicPartition, wanted: OffsetRange, producers: Collection[int]) -> bool:
    """Whether all records of a range are of these producers, by their batches; also False where that cannot be read.

    :param settings: librdkafka's
    """
    from kafka.errors import KafkaError

    if not can_connect(settings):
        return False
    try:
        with contextlib.closing(BatchConsumer(place.topic, settings)) as source:
            fetched = source.batches(place.partition, wanted.start, wanted.end)
            return all(batch.producer_id in producers for _, batches in fetched for batch in batches)
    except (KafkaError, OSError, ValueError):
        return False

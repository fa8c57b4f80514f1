"""Sends a range of a partition in transactions, each with the progress that it reaches; runs in tasks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from kops.formats.batches.copy import added, fingerprint
from kops.formats.batches.header import batches_of
from kops.gateways.wire.connections import PATIENCE_SECONDS
from kops.gateways.wire.transaction_requests import Position
from kops.gateways.wire.transactions import BatchWriter, BrokenTransaction, RefusedBatch
from kops.spark.replay.slices import WholeBatch

if TYPE_CHECKING:
    from kops.formats.batches.header import Producer
    from kops.spark.replay.slices import Payload, Slice

TRANSACTION_BYTES = 32 << 20
"""Maximum size of a transaction, and of what is kept for a retry."""
TRANSACTION_SECONDS = 5.0
"""Maximum age of a transaction: ``read_committed`` readers wait for it."""

SLOW_BYTES = 2 << 20
"""Size of the first slices, and of those sent while a quota throttles the task.

What the brokers do not accept within the time limit of a transaction is lost."""

_PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class PartitionProgress:
    """How much of a range is in the target.

    :param offset: the next one of the source
    :param fingerprint: sum of those of the batches (``formats.batches.copy.fingerprint``)
    :param producers: ids of the producers that wrote them
    """

    offset: int
    records: int = 0
    fingerprint: int = 0
    producers: tuple[int, ...] = ()

    def position(self) -> Position:
        note = {"records": self.records, "fingerprint": f"{self.fingerprint:016x}", "producers": list(self.producers)}
        return Position(self.offset, json.dumps(note))


_OFFSET = attrgetter("offset")


def parse_progress(offset: int, note: str) -> PartitionProgress:
    """Parse a committed position.

    :raises ValueError: when it was not committed by a replay
    """
    try:
        body = json.loads(note)
        return PartitionProgress(offset, int(body["records"]), int(body["fingerprint"], 16), tuple(body["producers"]))
    except (KeyError, TypeError) as wrong:
        raise ValueError(f"{note!r} is not a position of a replay") from wrong


class RecordRefused(ValueError):
    """The target rejected a record.

    :ivar offset: of the source
    """

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset


class Overtaken(RuntimeError):
    """Another process runs the same replay."""


@dataclass
class _TransactionBuffer:
    """What was sent since the last commit."""

    slices: list[Slice] = field(default_factory=list)
    size: int = 0
    records: int = 0

    def add(self, each: Slice) -> None:
        self.slices.append(each)
        self.size += each.size
        self.records += each.records


def _buffer_of(slices: Iterable[Slice]) -> _TransactionBuffer:
    buffer = _TransactionBuffer()
    for each in slices:
        buffer.add(each)
    return buffer


@dataclass
class PartitionSender:
    """Sends slices in order; keeps everything since the last commit until it is committed.

    :param start: and ``end``: offsets of the source
    :param most: total number of records to send; None: all
    :param rate: records per second; None: unlimited
    :param inflated: see ``formats.batches.copy.fingerprint``
    :param report: receives the number of records passed to the brokers, and whether a quota throttles them
    :param known: the progress, if the writer's group does not have it
    """

    writer: BatchWriter
    start: int
    end: int
    most: int | None = None
    rate: float | None = None
    inflated: bool = False
    report: Callable[[int, bool], None] | None = None
    known: PartitionProgress | None = None
    done: PartitionProgress = field(init=False)
    _buffer: _TransactionBuffer = field(default_factory=_TransactionBuffer, init=False)
    _now: PartitionProgress = field(init=False)
    _since: float = field(default=0.0, init=False)
    _handed: int | None = field(default=None, init=False)

    def run(self, slices_from: Callable[[int], Iterable[Slice]]) -> None:
        """Send what is left; ``done`` is what is in the target then.

        :param slices_from: returns the slices from an offset on
        :raises RecordRefused: when the target rejects a record; everything before it is in the target
        """
        self.writer.answered = self._report_progress
        self._begin()
        if self.done.offset < self.end and not self._is_full(self.done.records):
            for each in self._paced(slices_from(self.done.offset)):
                self._add(each)
                if self._buffer.size >= TRANSACTION_BYTES or time.monotonic() - self._since > TRANSACTION_SECONDS or self.writer.throttled:
                    self._commit(each.end)
                if self._is_full(self.done.records + self._buffer.records):
                    self._commit(each.end)
                    return
            self._commit(self.end)

    def _is_full(self, records: int) -> bool:
        return self.most is not None and records >= self.most

    def _paced(self, slices: Iterable[Slice]) -> Iterator[Slice]:
        """Yield slices no faster than the rate, and no more records than the limit."""
        began, given = time.monotonic(), 0
        for each in slices:
            left = None if self.most is None else self.most - self.done.records - self._buffer.records
            wanted = each if left is None or each.records <= left else each.first(left)
            for part in self._small(wanted):
                yield part
                given += part.records
                if self.rate is not None:
                    time.sleep(max(0.0, began + given / self.rate - time.monotonic()))

    def _small(self, each: Slice) -> Iterator[Slice]:
        if not self._is_large(each):
            yield each
            return
        halves = each.halves()
        for half in halves:
            yield from self._small(half)
        if not halves:
            yield each

    def _is_large(self, each: Slice) -> bool:
        if self.rate is not None and each.records > max(1.0, self.rate / 2):
            return True
        return (self.writer.throttled or self._handed is None) and each.size > SLOW_BYTES and not isinstance(each, WholeBatch)

    def _begin(self) -> None:
        position = self.writer.begin()
        found = [parse_progress(position.offset, position.note)] if position else []
        self.done = max((*found, *([self.known] if self.known else [])), key=_OFFSET, default=PartitionProgress(self.start))
        self._now, self._buffer = self.done, _TransactionBuffer()

    def _add(self, each: Slice) -> None:
        if not self._buffer.slices:
            self._since = time.monotonic()
        self._buffer.add(each)
        try:
            self._send(each)
        except BrokenTransaction:
            self._resend()
        except RefusedBatch as refused:
            self._isolate_refused(refused)
        self._handed = (self._handed or 0) + each.records
        self._report_progress()

    def _report_progress(self) -> None:
        if self.report is not None and self._handed is not None:
            self.report(self._handed, self.writer.throttled)

    def _send(self, each: Slice) -> None:
        for payload in each.payloads():
            self.writer.send(payload.topic, payload.partition, payload.records, partial(self._summed, payload))

    def _summed(self, payload: Payload, producer: Producer) -> bytes:
        """Encode a batch, and add it to the totals in flight."""
        data = payload.encode(producer)
        now = self._now
        total = added(now.fingerprint, fingerprint(data, batches_of(data)[0], inflated=self.inflated))
        producers = tuple(dict.fromkeys((*now.producers, producer.producer_id)))
        self._now = PartitionProgress(now.offset, now.records + payload.records, total, producers)
        return data

    def _commit(self, offset: int) -> None:
        """Commit the buffer, retrying while the outcome is unknown."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self.writer.flush()
                reached = PartitionProgress(offset, self._now.records, self._now.fingerprint, self._now.producers)
                self.writer.commit(reached.position())
            except BrokenTransaction:
                if time.monotonic() > deadline:
                    raise
                if self._resend(committing=offset):
                    return
            except RefusedBatch as refused:
                self._isolate_refused(refused)
            else:
                self.done = self._now = reached
                self._buffer = _TransactionBuffer()
                return

    def _resend(self, committing: int | None = None) -> bool:
        """Send the buffer again, as a new writer; return whether it had been committed after all."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            time.sleep(_PAUSE_SECONDS)
            kept, before = self._buffer, self.done
            self._begin()
            if committing is not None and self.done.offset == committing != before.offset:
                return True
            if self.done.offset != before.offset:
                raise Overtaken(f"another process runs the same replay, and is at offset {self.done.offset}")
            self._buffer = kept
            try:
                for each in kept.slices:
                    self._send(each)
            except BrokenTransaction:
                if time.monotonic() > deadline:
                    raise
            else:
                return False

    def _isolate_refused(self, refused: RefusedBatch) -> None:
        """Find the rejected record: halve its slice, or commit what comes before it and give up."""
        while True:
            kept = self._buffer.slices
            index, why = self._first_refused(kept, refused)
            if index is None:
                return
            halves = kept[index].halves() if why.too_large else ()
            if halves:
                self._buffer = _buffer_of([*kept[:index], *halves, *kept[index + 1 :]])
                continue
            culprit = kept[index]
            self._buffer = _buffer_of(kept[:index])
            if index:
                self._resend()
                self._commit(kept[index - 1].end)
            raise RecordRefused(culprit.start(), str(why)) from why

    def _first_refused(self, buffer: list[Slice], refused: RefusedBatch) -> tuple[int | None, RefusedBatch]:
        """Send a buffer again, one slice after another; return the index of the slice that is rejected, if any, and the error."""
        self._begin()
        self._buffer = _buffer_of(buffer)
        for index, each in enumerate(buffer):
            try:
                self._send(each)
                self.writer.flush()
            except RefusedBatch as found:
                return index, found
        return None, refused

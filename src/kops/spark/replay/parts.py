"""Sends a part of a source, whole transactions at a time, each with how far it came; runs in the tasks."""

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
from kops.gateways.wire.transaction_requests import Position
from kops.gateways.wire.transactions import PATIENCE_SECONDS, BatchWriter, BrokenTransaction, RefusedBatch
from kops.spark.replay.rounds import WholeBatch

if TYPE_CHECKING:
    from kops.formats.batches.header import Producer
    from kops.spark.replay.rounds import Payload, Round

CHUNK_BYTES = 32 << 20
"""What a transaction holds, and what is kept to be sent again."""
CHUNK_SECONDS = 5.0
"""How old a transaction becomes: readers of what is committed wait for it."""

SLOW_BYTES = 2 << 20
"""Of what goes first, and of what goes while a quota slows it down: what brokers do not take within the time of a transaction is lost."""

_PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class Sent:
    """What of a part is in the target.

    :param offset: the next one of the source
    :param fingerprint: sum of those of the batches (``record_batch_copy.fingerprint``)
    :param producers: ids of those who wrote them
    """

    offset: int
    records: int = 0
    fingerprint: int = 0
    producers: tuple[int, ...] = ()

    def position(self) -> Position:
        """Return it as it is committed."""
        note = {"records": self.records, "fingerprint": f"{self.fingerprint:016x}", "producers": list(self.producers)}
        return Position(self.offset, json.dumps(note))


_OFFSET = attrgetter("offset")


def sent_of(offset: int, note: str) -> Sent:
    """Return what a committed position says.

    :raises ValueError: when it is none of a replay
    """
    try:
        body = json.loads(note)
        return Sent(offset, int(body["records"]), int(body["fingerprint"], 16), tuple(body["producers"]))
    except (KeyError, TypeError) as wrong:
        raise ValueError(f"{note!r} is not a position of a replay") from wrong


class RecordRefused(ValueError):
    """The target does not take a record.

    :ivar offset: of the source
    """

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset


class Overtaken(RuntimeError):
    """Somebody else replays the same."""


@dataclass
class _Chunk:
    """What was sent since the last commit."""

    rounds: list[Round] = field(default_factory=list)
    size: int = 0
    records: int = 0

    def add(self, each: Round) -> None:
        self.rounds.append(each)
        self.size += each.size
        self.records += each.records


def _chunk_of(rounds: Iterable[Round]) -> _Chunk:
    chunk = _Chunk()
    for each in rounds:
        chunk.add(each)
    return chunk


@dataclass
class PartSender:
    """Sends rounds in order; everything since the last commit is kept until it is committed.

    :param start: and ``end``: offsets of the source
    :param most: records to send in all; None for all
    :param rate: records a second; None for as fast as it goes
    :param inflated: see ``record_batch_copy.fingerprint``
    :param tell: is told how many records were handed to the brokers, and whether a quota slows that down
    :param known: how far the part is, where the writer's group does not know
    """

    writer: BatchWriter
    start: int
    end: int
    most: int | None = None
    rate: float | None = None
    inflated: bool = False
    tell: Callable[[int, bool], None] | None = None
    known: Sent | None = None
    done: Sent = field(init=False)
    _chunk: _Chunk = field(default_factory=_Chunk, init=False)
    _now: Sent = field(init=False)
    _since: float = field(default=0.0, init=False)
    _handed: int | None = field(default=None, init=False)

    def run(self, rounds_from: Callable[[int], Iterable[Round]]) -> Sent:
        """Send what is left, and return what is in the target then.

        :param rounds_from: gives the rounds from an offset on
        :raises RecordRefused: when the target does not take a record; what was before it is in the target
        """
        self.writer.answered = self._told
        self._begin()
        if self.done.offset < self.end and not self._is_full(self.done.records):
            for each in self._paced(rounds_from(self.done.offset)):
                self._add(each)
                if self._chunk.size >= CHUNK_BYTES or time.monotonic() - self._since > CHUNK_SECONDS or self.writer.throttled:
                    self._commit(each.end)
                if self._is_full(self.done.records + self._chunk.records):
                    self._commit(each.end)
                    return self.done
            self._commit(self.end)
        return self.done

    def _is_full(self, records: int) -> bool:
        return self.most is not None and records >= self.most

    def _paced(self, rounds: Iterable[Round]) -> Iterator[Round]:
        """Yield rounds no faster than they are wanted, and no more records than are."""
        began, given = time.monotonic(), 0
        for each in rounds:
            left = None if self.most is None else self.most - self.done.records - self._chunk.records
            wanted = each if left is None or each.records <= left else each.first(left)
            for part in self._small(wanted):
                yield part
                given += part.records
                if self.rate is not None:
                    time.sleep(max(0.0, began + given / self.rate - time.monotonic()))

    def _small(self, each: Round) -> Iterator[Round]:
        if not self._is_large(each):
            yield each
            return
        halves = each.halves()
        for half in halves:
            yield from self._small(half)
        if not halves:
            yield each

    def _is_large(self, each: Round) -> bool:
        if self.rate is not None and each.records > max(1.0, self.rate / 2):
            return True
        return (self.writer.throttled or self._handed is None) and each.size > SLOW_BYTES and not isinstance(each, WholeBatch)

    def _begin(self) -> None:
        position = self.writer.begin()
        found = [sent_of(position.offset, position.note)] if position else []
        self.done = max((*found, *([self.known] if self.known else [])), key=_OFFSET, default=Sent(self.start))
        self._now, self._chunk = self.done, _Chunk()

    def _add(self, each: Round) -> None:
        if not self._chunk.rounds:
            self._since = time.monotonic()
        self._chunk.add(each)
        try:
            self._send(each)
        except BrokenTransaction:
            self._again()
        except RefusedBatch as refused:
            self._without_refused(refused)
        self._handed = (self._handed or 0) + each.records
        self._told()

    def _told(self) -> None:
        if self.tell is not None and self._handed is not None:
            self.tell(self._handed, self.writer.throttled)

    def _send(self, each: Round) -> None:
        for payload in each.payloads():
            self.writer.send(payload.topic, payload.partition, payload.records, partial(self._summed, payload))

    def _summed(self, payload: Payload, producer: Producer) -> bytes:
        """Encode a batch, and add it to what is on its way."""
        data = payload.encode(producer)
        now = self._now
        total = added(now.fingerprint, fingerprint(data, batches_of(data)[0], inflated=self.inflated))
        producers = tuple(dict.fromkeys((*now.producers, producer.producer_id)))
        self._now = Sent(now.offset, now.records + payload.records, total, producers)
        return data

    def _commit(self, offset: int) -> None:
        """Commit the chunk, again and again where it is not known what became of it."""
        wanted = offset
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self.writer.flush()
                reached = Sent(wanted, self._now.records, self._now.fingerprint, self._now.producers)
                self.writer.commit(reached.position())
            except BrokenTransaction:
                if time.monotonic() > deadline:
                    raise
                if self._again(committing=wanted):
                    return
            except RefusedBatch as refused:
                self._without_refused(refused)
            else:
                self.done = self._now = reached
                self._chunk = _Chunk()
                return

    def _again(self, committing: int | None = None) -> bool:
        """Send the chunk again, as a new writer; tell whether it had been committed after all."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            time.sleep(_PAUSE_SECONDS)
            kept, before = self._chunk, self.done
            self._begin()
            if committing is not None and self.done.offset == committing != before.offset:
                return True
            if self.done.offset != before.offset:
                raise Overtaken(f"another process runs the same replay, and is at offset {self.done.offset}")
            self._chunk = kept
            try:
                for each in kept.rounds:
                    self._send(each)
            except BrokenTransaction:
                if time.monotonic() > deadline:
                    raise
            else:
                return False

    def _without_refused(self, refused: RefusedBatch) -> None:
        """Find what is refused: halve it, or commit what comes before it and give up."""
        while True:
            kept = self._chunk.rounds
            index, why = self._first_refused(kept, refused)
            if index is None:
                return
            halves = kept[index].halves() if why.too_large else ()
            if halves:
                self._chunk = _chunk_of([*kept[:index], *halves, *kept[index + 1 :]])
                continue
            culprit = kept[index]
            self._chunk = _chunk_of(kept[:index])
            if index:
                self._again()
                self._commit(kept[index - 1].end)
            raise RecordRefused(culprit.start(), str(why)) from why

    def _first_refused(self, chunk: list[Round], refused: RefusedBatch) -> tuple[int | None, RefusedBatch]:
        """Send a chunk again, one round after another."""
        self._begin()
        self._chunk = _chunk_of(chunk)
        for index, each in enumerate(chunk):
            try:
                self._send(each)
                self.writer.flush()
            except RefusedBatch as found:
                return index, found
        return None, refused

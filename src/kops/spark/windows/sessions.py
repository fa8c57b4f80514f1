"""Sessions, made record by record as ``KStreamSessionWindowAggregate`` makes them. Pure Python over the records of one key.

A record joins the sessions that lie no further from it than the gap: they are merged into one, which takes their place. It is dropped
when even the merged session ended longer ago than gap and grace (``Windows.close_ms``). The store finds no session that its retention
has expired; but its cache, if it has one, may still find it (``CachingSessionStore``), for as long as there is room.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kops.core.statefile import Windows
from kops.spark.windows.steps import Steps

_GONE_AT_ONCE = 50_000
"""Deleted sessions of a key that are held back; a key that has records all the time leaves one behind with each."""


@dataclass
class Tally:
    """What was counted on the way.

    :param late: records that were dropped because their session had closed
    :param boundary: records that were kept, and would have been dropped, or not have found a session, after records of other partitions
    :param expired: live sessions that the retention has since expired
    :param cached: records that lie beside an expired session, which a cache may have found
    """

    late: int = 0
    boundary: int = 0
    expired: int = 0
    cached: int = 0


Put = tuple[int, int, "bytes | None", int]
"""What the store was given last for a session: end, start, value (None: a tombstone), timestamp."""


@dataclass
class KeySessions:
    """The sessions of one key.

    :param before: the task's stream time before the record at hand
    """

    key: bytes
    windows: Windows
    steps: Steps
    tally: Tally
    _live: list[tuple[int, int]] = field(default_factory=list)
    """Bounds (end, start), ascending: the order in which the store finds them."""
    _found: dict[tuple[int, int], tuple[Any, int]] = field(default_factory=dict)
    """What each live session holds, and the timestamp of its changelog record."""
    _gone: dict[tuple[int, int], int] = field(default_factory=dict)
    """Sessions that were deleted, with the timestamp of the tombstone."""
    _until: int = -1
    """Up to where sessions have expired."""
    _held: int = _GONE_AT_ONCE
    """How many deleted sessions there may be before the expired ones among them are forgotten."""
    _past: list[tuple[int, int]] = field(default_factory=list)
    """Bounds of sessions that have expired, as far as a record may still lie beside them."""

    def process(self, timestamp: int, value: Any, before: int, others: int) -> None:
        """Take a record.

        :param before: the task's stream time before it
        :param others: greatest timestamp that may have come before it as well
        """
        gap, close = self.windows.size_ms, self.windows.close_ms
        expired_until = before - self.windows.retention_ms
        self._expire(expired_until)
        merged = self._near(timestamp)
        aggregate = self.steps.initial()
        for bounds in merged:
            aggregate = self.steps.merge(self.key, aggregate, self._found[bounds][0])
        end = max([timestamp, *(bounds[0] for bounds in merged)])
        start = min([timestamp, *(bounds[1] for bounds in merged)])
        closed = max(before, timestamp) - close
        self.tally.cached += self._is_beside_past(timestamp, closed if end < closed else -1)
        if end < closed:
            self.tally.late += 1
            return
        if others > before and (
            end < others - close or any(timestamp - gap <= bounds[0] <= others - self.windows.retention_ms for bounds in merged)
        ):
            self.tally.boundary += 1
        for bounds in merged:
            self._remove(bounds)
            if (end, start) != (timestamp, timestamp):
                self._gone[bounds] = timestamp
        if end > expired_until:
            self._put((end, start), self.steps.add(self.key, value, aggregate), timestamp)
        else:  # which the processor still takes, and the store does not
            self.tally.expired += 1
            insort(self._past, (end, start))

    def puts(self) -> Iterator[Put]:
        """Return what the store was last given for each session that has not expired."""
        for bounds, (aggregate, timestamp) in self._found.items():
            yield *bounds, self.steps.encode(aggregate), timestamp
        yield from self.gone()

    def gone(self, at_least: int = 0) -> Iterator[Put]:
        """Return the tombstones so far, once there are so many, and forget them.

        For good where no aggregate is deleted: then a merged session lies around each, for as long as the store finds either.
        """
        if len(self._gone) >= at_least:
            for bounds, timestamp in self._gone.items():
                if bounds[0] > self._until:
                    yield *bounds, None, timestamp
            self._gone = {}

    def _near(self, timestamp: int) -> list[tuple[int, int]]:
        """Return the sessions that a record at this time joins (``SessionStore.findSessions``)."""
        gap = self.windows.size_ms
        first = bisect_left(self._live, (timestamp - gap, -1))
        return [bounds for bounds in self._live[first:] if bounds[1] <= timestamp + gap]

    def _is_beside_past(self, timestamp: int, least_end: int) -> bool:
        """Tell whether a record would join an expired session that ended no earlier than this."""
        gap = self.windows.size_ms
        first = bisect_left(self._past, (max(timestamp - gap, least_end), -1))
        return any(start <= timestamp + gap for _end, start in self._past[first:])

    def _put(self, bounds: tuple[int, int], aggregate: Any, timestamp: int) -> None:
        if aggregate is None:
            self._gone[bounds] = timestamp
            return
        self._gone.pop(bounds, None)
        insort(self._live, bounds)
        self._found[bounds] = (aggregate, timestamp)

    def _remove(self, bounds: tuple[int, int]) -> None:
        del self._live[bisect_left(self._live, bounds)]
        del self._found[bounds]

    def _expire(self, until: int) -> None:
        """Forget what ended so long ago that neither the store finds it nor a rebuild writes it."""
        self._until = until
        count = bisect_left(self._live, (until + 1, -1))
        if count:
            self.tally.expired += count
            for bounds in self._live[:count]:
                del self._found[bounds]
                insort(self._past, bounds)
            del self._live[:count]
            gap = self.windows.size_ms
            reached = min([until, *(start for _end, start in self._live)]) - 3 * gap - self.windows.grace_ms
            del self._past[: bisect_left(self._past, (reached, -1))]
        if len(self._gone) >= self._held:
            self._gone = {bounds: timestamp for bounds, timestamp in self._gone.items() if bounds[0] > until}
            self._held = max(_GONE_AT_ONCE, 2 * len(self._gone))


def sessions_of(
    key: bytes, records: Iterable[tuple[int, Any, int, int]], windows: Windows, steps: Steps, tally: Tally, *, in_order: bool = False
) -> Iterator[Put]:
    """Return what the store holds for a key, and what it has deleted; with ``in_order`` what has expired since may be among that.

    :param records: timestamp, value, before, others (``KeySessions.process``), in the order in which they are processed
    :param in_order: it is known to be that order: the stream time never goes back
    """
    sessions = KeySessions(key, windows, steps, tally)
    streams = in_order and not steps.deletes
    for timestamp, value, before, others in records:
        sessions.process(timestamp, value, before, others)
        if streams:
            yield from sessions.gone(_GONE_AT_ONCE)
    yield from sessions.puts()

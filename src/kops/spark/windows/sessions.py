"""Sessions, computed record by record like ``KStreamSessionWindowAggregate``. Pure Python over the records of one key.

A record joins all sessions within the gap: they are replaced by one merged session. It is dropped
if even the merged session ended longer ago than gap plus grace (``Windows.close_ms``). The store does not find sessions that its
retention has expired; but its cache, if any, may still find them (``CachingSessionStore``) until they are evicted.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kops.core.statefile import Windows
from kops.spark.windows.steps import Steps

_MAX_TOMBSTONES = 50_000
"""Maximum number of buffered tombstones per key; a constantly active key leaves one per record."""


@dataclass
class Tally:
    """Counters of noteworthy records and sessions.

    :param late: records that were dropped because their session had closed
    :param boundary: kept records that would have been dropped, or would not have found a session, after records of other partitions
    :param expired: live sessions that have expired since
    :param cached: records within the gap of an expired session that a cache may have found
    """

    late: int = 0
    boundary: int = 0
    expired: int = 0
    cached: int = 0


Put = tuple[int, int, "bytes | None", int]
"""The last write to the store for a session: end, start, value (None: a tombstone), timestamp."""


@dataclass
class KeySessions:
    """The sessions of one key.

    :param before: the task's stream time before the current record
    """

    key: bytes
    windows: Windows
    steps: Steps
    tally: Tally
    _live: list[tuple[int, int]] = field(default_factory=list)
    """Bounds (end, start), ascending: the store's order."""
    _found: dict[tuple[int, int], tuple[Any, int]] = field(default_factory=dict)
    """The aggregate of each live session, and the timestamp of its changelog record."""
    _gone: dict[tuple[int, int], int] = field(default_factory=dict)
    """Deleted sessions with the timestamps of their tombstones."""
    _until: int = -1
    """Sessions up to this end have expired."""
    _held: int = _MAX_TOMBSTONES
    """Number of tombstones from which expired ones are dropped."""
    _past: list[tuple[int, int]] = field(default_factory=list)
    """Bounds of expired sessions that a record may still be within the gap of."""

    def process(self, timestamp: int, value: Any, before: int, others: int) -> None:
        """Process a record.

        :param before: the task's stream time before it
        :param others: greatest timestamp that may also have preceded it
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
        else:  # accepted by the processor, but not by the store
            self.tally.expired += 1
            insort(self._past, (end, start))

    def puts(self) -> Iterator[Put]:
        """Yield the last write for each session that has not expired."""
        for bounds, (aggregate, timestamp) in self._found.items():
            yield *bounds, self.steps.encode(aggregate), timestamp
        yield from self.gone()

    def gone(self, at_least: int = 0) -> Iterator[Put]:
        """Yield and drop the tombstones once there are at least this many.

        They are final if no aggregate is deleted: then each is inside a merged session for as long as the store finds either.
        """
        if len(self._gone) >= at_least:
            for bounds, timestamp in self._gone.items():
                if bounds[0] > self._until:
                    yield *bounds, None, timestamp
            self._gone = {}

    def _near(self, timestamp: int) -> list[tuple[int, int]]:
        """Return the sessions that a record with this timestamp joins (``SessionStore.findSessions``)."""
        gap = self.windows.size_ms
        first = bisect_left(self._live, (timestamp - gap, -1))
        return [bounds for bounds in self._live[first:] if bounds[1] <= timestamp + gap]

    def _is_beside_past(self, timestamp: int, least_end: int) -> bool:
        """Whether a record would join an expired session that ended no earlier than ``least_end``."""
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
        """Drop sessions that are too old for the store to find or a rebuild to write."""
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
            self._held = max(_MAX_TOMBSTONES, 2 * len(self._gone))


def sessions_of(
    key: bytes, records: Iterable[tuple[int, Any, int, int]], windows: Windows, steps: Steps, tally: Tally, *, in_order: bool = False
) -> Iterator[Put]:
    """Yield the last write for each session of a key; with ``in_order`` possibly including sessions that have expired since.

    :param records: timestamp, value, before, others (``KeySessions.process``), in the order in which they are processed
    :param in_order: the order is known for certain: stream time is monotonic
    """
    sessions = KeySessions(key, windows, steps, tally)
    streams = in_order and not steps.deletes
    for timestamp, value, before, others in records:
        sessions.process(timestamp, value, before, others)
        if streams:
            yield from sessions.gone(_MAX_TOMBSTONES)
    yield from sessions.puts()

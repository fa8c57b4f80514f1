"""Offsets of a log that hold nothing, as the headers of its batches tell: compaction has deleted what was there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kops.formats.batches.header import Batch

MOST = 5
"""At most this many gaps are kept: the first ones."""


@dataclass
class Gaps:
    """Ranges of offsets, each from its first to its last, that lack at least one record.

    Aborted records and the markers of transactions stay in a log that is never compacted, so they leave no gap between its batches.
    """

    found: list[tuple[int, int]] = field(default_factory=list)

    def see(self, batches: Sequence[Batch], start: int, end: int) -> None:
        """Look at batches that follow each other.

        :param start: the offset that the first should begin at, unless it begins before
        :param end: what lies from here on does not matter
        """
        expected = start
        for batch in batches:
            if batch.base_offset > expected:
                self._add(expected, min(batch.base_offset, end) - 1)
            if batch.has_gaps and batch.base_offset >= start:
                self._add(batch.base_offset, min(batch.last_offset, end - 1))
            expected = batch.last_offset + 1

    def _add(self, first: int, last: int) -> None:
        if first <= last and len(self.found) < MOST:
            self.found.append((first, last))

"""Finds offsets of a log that have no record, from the headers of its batches: compaction has deleted what was there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kops.formats.batches.header import Batch

MOST = 5
"""Only the first gaps are kept, up to this many."""


@dataclass
class Gaps:
    """Ranges of offsets (first, last), both inclusive, that lack at least one record.

    Aborted records and transaction markers stay in a log that is never compacted, so they leave no gap between its batches.
    """

    found: list[tuple[int, int]] = field(default_factory=list)

    def see(self, batches: Sequence[Batch], start: int, end: int) -> None:
        """Add the gaps within and between consecutive batches.

        :param start: the offset at which the first batch is expected to begin, unless it begins before
        :param end: offsets from here on are ignored
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

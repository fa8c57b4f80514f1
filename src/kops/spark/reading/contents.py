"""The number of records in a partition and a hash of them, to compare what was written with what was to be written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Row

CONTENT_SCHEMA = "partition int, records bigint, tombstones bigint, high bigint, low bigint, earliest bigint, latest bigint"
"""The columns of rows that make a ``Content``."""


@dataclass(frozen=True)
class Content:
    """The records that go to one partition.

    :param high: and ``low``: sum of the hashes of the records, the same in any order
    :param earliest: and ``latest``: timestamps, milliseconds since the epoch
    """

    records: int = 0
    tombstones: int = 0
    high: int = 0
    low: int = 0
    earliest: int = 0
    latest: int = 0

    @property
    def fingerprint(self) -> list[int]:
        """Return the values, as JSON, in which two equal contents agree."""
        return [self.records, self.high, self.low]


def added_contents(rows: Sequence[Row]) -> dict[int, Content]:
    """Merge rows of ``CONTENT_SCHEMA``, of which a partition may have several."""
    return {number: _content([row for row in rows if row.partition == number]) for number in {row.partition for row in rows}}


def _content(parts: Sequence[Row]) -> Content:
    return Content(
        records=sum(part.records for part in parts),
        tombstones=sum(part.tombstones for part in parts),
        high=sum(part.high for part in parts),
        low=sum(part.low for part in parts),
        earliest=min(part.earliest for part in parts),
        latest=max(part.latest for part in parts),
    )

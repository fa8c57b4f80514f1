"""A store to compute, and what is seen on the way: what the ways of computing it share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kops.core.statefile import StateFile, Store
from kops.spark.reading.ranges import TopicRange

KEPT, UNDECODABLE, NEGATIVE_TIME, FILTERED, NULL_KEY, NULL_VALUE = range(6)
FATES = {
    UNDECODABLE: "undecodable",
    NEGATIVE_TIME: "negative_timestamp",
    FILTERED: "filtered",
    NULL_KEY: "null_key",
    NULL_VALUE: "null_value",
}
"""What becomes of a record, by the number in the column ``fate``; 0 is kept."""
NOTED = ("late", "boundary", "null_values", "expired", "hidden", "timed", "trimmed", "uncovered", "cached", "unaligned")
"""What is counted of windows: records that came after a window of theirs had closed; records that an order which is not known may have
made late; null values given to an aggregate that takes none; windows that the retention has expired; windows that later ones in the
changelog will have expired once it is restored; keys whose timestamp depends on an order that is not known; partitions of the input
whose oldest records are gone, and windows that may have had some of those (or partitions of which nothing is left); records beside a
session that has expired, which a cache may still have found; windows of the changelog that start between those of the file."""


@dataclass(frozen=True)
class Job:
    """A store to compute.

    :param source: what is read of its topic
    :param changelog: all of its changelog, as it is now
    :param partitions: of the changelog
    :param skip_undecodable: pass over records that are not of the formats, as ``LogAndContinueExceptionHandler`` does
    :param others: what is read of its further topics
    :param loose: of a grouped table: not every change of the table is known, or not their order
    :param places: what tells where keys belong, where a partitioner of the application's own does; None: the changelog
    :param base: path of a snapshot's rows of the store, which are what it held before; None: it began empty
    :param held: path of a snapshot's rows of the store, which stand for the changelog; None: that is read
    """

    state_file: StateFile
    store: Store
    source: TopicRange
    changelog: TopicRange
    partitions: int
    skip_undecodable: bool = False
    others: tuple[TopicRange, ...] = ()
    loose: bool = False
    places: TopicRange | None = None
    base: str | None = None
    held: str | None = None

    @property
    def sources(self) -> tuple[TopicRange, ...]:
        """Return what is read of all its topics."""
        return (self.source, *self.others)


@dataclass(frozen=True)
class Seen:
    """What was seen while a view was computed.

    :param read: records read of the topic
    :param dropped: how many of them did not count, by reason (``kops.spark.job.FATES``)
    :param keys: that the store should hold
    :param mixed: keys whose records' order is not known, where it matters
    :param void: how often something was met that only a slower way of computing can judge, such as a sum that another order
        of additions would have changed: the view does not count
    :param noted: what else was counted, by name: of windows, see ``kops.spark.job.NOTED``
    :param unrestorable: records of the changelog, tombstones too, whose keys are too short for such a store
    :param live: how many live keys the changelog holds, by partition
    :param latest: the greatest timestamp that the application takes the records to have, in milliseconds since the epoch; None: not seen
    """

    read: int
    dropped: dict[str, int]
    keys: int
    mixed: int
    void: int = 0
    noted: Mapping[str, int] = field(default_factory=dict)
    live: Mapping[int, int] = field(default_factory=dict)
    unrestorable: int = 0
    latest: int | None = None

"""A store to compute, and what is seen on the way: shared by all ways to compute it."""

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
"""What becomes of a record, by its number in the column ``fate``; 0 is kept."""
NOTED = ("late", "boundary", "null_values", "expired", "hidden", "timed", "trimmed", "uncovered", "cached", "unaligned")
"""What is counted for windows: records that arrived after one of their windows had closed; records that may have been late, depending on an
order that is not known; null values given to an aggregate that takes none; windows that the retention has expired; windows that later ones
in the changelog will expire once it is restored; keys whose timestamp depends on an order that is not known; partitions of the input whose
oldest records are gone, and windows that may have had some of those (or partitions of which nothing is left); records next to an expired
session that a cache may still have found; windows of the changelog whose starts do not fit the window definition in the state file."""


@dataclass(frozen=True)
class Job:
    """A store to compute.

    :param source: what is read of its topic
    :param changelog: all of its changelog, as it is now
    :param partitions: of the changelog
    :param skip_undecodable: skip records that are not in the declared formats, as ``LogAndContinueExceptionHandler`` does
    :param others: what is read of its further topics
    :param loose: for a grouped table: not every change of the table is known, or not their order
    :param places: shows where keys belong, if the application has its own partitioner; None: the changelog
    :param base: path of a snapshot's rows of the store: what it held before; None: it began empty
    :param held: path of a snapshot's rows of the store, used instead of the changelog; None: the changelog is read
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
        return (self.source, *self.others)


@dataclass(frozen=True)
class ReadCounts:
    """What was seen while a view was computed.

    :param read: records read from the topic
    :param dropped: how many of them did not count, by reason (``kops.spark.job.FATES``)
    :param keys: number of keys that the store should hold
    :param mixed: number of keys whose records' order is not known although it matters
    :param void: records that tasks cannot judge, of a view of what they made of their records: if any, the view is discarded
    :param noted: other counts, by name: for windows, see ``kops.spark.job.NOTED``
    :param unrestorable: records of the changelog, including tombstones, whose keys are too short for such a store: Kafka Streams fails when
        it restores them
    :param live: number of live keys in the changelog, by partition
    :param latest: the greatest timestamp that the application assigns to the records, in milliseconds since the epoch; None: not seen
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

"""Computes windowed stores of topics that are held in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kops.core.statefile import parse_state_file
from kops.spark.job import Job
from kops.spark.reading.ranges import SCHEMA, TopicRange
from kops.spark.stores.jobs import VIEWS
from support.programs import Program, Record

Views = dict[int, dict[bytes, tuple[bytes, int]]]
"""Value and timestamp by key, by partition."""


class Topic:
    """A topic that is held in memory, read as the Kafka source does: each partition in the order of its offsets.

    :param partitions: the records of each
    :param first: offset of the first record of each
    """

    def __init__(self, spark: Any, partitions: Sequence[Sequence[Record]], first: int = 0) -> None:
        rows = [
            (record.key, record.value, partition, first + at, record.timestamp)
            for partition, records in enumerate(partitions)
            for at, record in enumerate(records)
        ]
        self.frame = spark.createDataFrame(rows, SCHEMA).repartition(4, "partition").sortWithinPartitions("partition", "offset")
        self.ranges: Mapping[int, tuple[int, int]] = {at: (first, first + len(records)) for at, records in enumerate(partitions)}

    def read(self, wanted: TopicRange) -> Any:
        if wanted.ranges == self.ranges:
            return self.frame
        parts = (f"partition = {at} and offset >= {start} and offset < {end}" for at, (start, end) in wanted.ranges.items())
        return self.frame.where(" or ".join(f"({part})" for part in parts))


def job_of(program: Program, topic: Topic | None, partitions: int) -> Job:
    file = parse_state_file("state.yaml", program.state_file())
    return Job(file, file.stores[0], TopicRange(program.topic, topic.ranges if topic else {}), TopicRange("changelog", {}), partitions)


def computed(program: Program, topic: Topic, partitions: int, *, changelog: Any = None) -> tuple[Views, Any]:
    """Return what a store is to hold, and what was seen on the way.

    :param changelog: the compacted view of one, if it is to be looked at
    """
    job = job_of(program, topic, partitions)
    view = VIEWS[job.store.type](topic, job)
    try:
        found: Views = {}
        for row in view.rows.collect():
            if row.value is not None:
                found.setdefault(row.partition, {})[bytes(row.key)] = (bytes(row.value), row.timestamp)
        if changelog is not None:
            view.live(changelog).collect()
        return found, view.seen()
    finally:
        view.done()

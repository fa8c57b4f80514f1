"""Random inputs of tables of tables: many small cases at once, each a partition of its own, so that Spark runs once."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as some

from kops.core.statefile import parse_state_file
from kops.spark.job import Job
from kops.spark.reading.ranges import TopicRange
from support.programs import Record
from support.tables import Piped, TableProgram, merged_by_time

KEYS = (b"a", b"b", b"")
TIMES = some.integers(0, 12)
"""Few, so that they meet, and go back and forth."""


@dataclass(frozen=True)
class Case:
    """The records of each topic, in the order of their offsets, and the order in which a task took them."""

    topics: Mapping[str, Sequence[Record]]
    piped: Piped


def cases(topics: Mapping[str, Sequence[bytes | None]], count: int, *, by_time: bool = True) -> list[Case]:
    """Return many inputs.

    :param topics: what the values of each topic may be
    :param by_time: the task took the oldest record first (``PartitionGroup``), and no two topics have the same time; else any order
    """
    found: list[Case] = []

    def records(at: int, values: Sequence[bytes | None]) -> Any:
        every = len(topics)
        time = TIMES.map(lambda number: 1_000 + number * every + at) if by_time else TIMES.map(lambda number: 1_000 + number)
        return some.lists(some.builds(Record, some.sampled_from(KEYS), some.sampled_from([*values, None]), time), max_size=12)

    inputs = some.fixed_dictionaries({topic: records(at, values) for at, (topic, values) in enumerate(topics.items())})

    @settings(max_examples=count, database=None, derandomize=True, phases=[Phase.generate], deadline=None)
    @given(inputs, some.integers(0, 2**32))
    def collect(given_topics: Mapping[str, list[Record]], seed: int) -> None:
        piped = [[(topic, record) for record in given_topics[topic]] for topic in topics]
        if by_time:
            order = merged_by_time(*piped)
        else:
            turns = [at for at, one in enumerate(piped) for _ in one]
            random.Random(seed).shuffle(turns)
            left = [list(one) for one in piped]
            order = [left[at].pop(0) for at in turns]
        found.append(Case(given_topics, order))

    collect()
    return found


def in_partitions(several: Sequence[Case], mark: Callable[[bytes, int], bytes]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the records of each topic as rows of the Kafka source: the case is the partition.

    :param mark: makes the value of a case one that no other has, where cases meet after a new key
    """
    rows: dict[str, list[tuple[Any, ...]]] = {}
    for number, case in enumerate(several):
        for topic, records in case.topics.items():
            for offset, record in enumerate(records):
                value = None if record.value is None else bytearray(mark(record.value, number))
                rows.setdefault(topic, []).append((bytearray(record.key or b""), value, number, offset, record.timestamp))
    return rows


def marked(case: Case, mark: Callable[[bytes, int], bytes], number: int) -> Piped:
    """Return the records of a case as the oracle is fed them."""
    return [(topic, replace(record, value=None if record.value is None else mark(record.value, number))) for topic, record in case.piped]


class Frames:
    """A Kafka source that gives these rows."""

    SCHEMA = "key binary, value binary, partition int, offset bigint, timestamp_ms bigint"
    batches = None

    def __init__(self, spark: Any, rows: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
        self.frames = {topic: spark.createDataFrame(list(several), self.SCHEMA).coalesce(1) for topic, several in rows.items()}

    def read(self, wanted: Any) -> Any:
        return self.frames[wanted.topic]


def job(program: TableProgram, store: str, partitions: int, *, loose: bool = False) -> Job:
    """Return the computation of a store whose changelog is empty."""
    file = parse_state_file("state.yaml", program.state_file())
    found = next(one for one in file.stores if one.name == store)
    source, *others = (TopicRange(source.topic, dict.fromkeys(range(partitions), (0, 1))) for source in found.inputs)
    return Job(file, found, source, TopicRange(found.changelog, {}), partitions, others=tuple(others), loose=loose)


HISTORY_MS = 10_000


def observable(records: Sequence[Record], history_ms: int = HISTORY_MS) -> set[tuple[int | None, bytes | None, int, bytes | None]]:
    """Return the versions that a store holds after a restore from a changelog, by partition: what comes late is left out."""
    held: dict[tuple[int | None, bytes | None], dict[int, bytes | None]] = {}
    newest: dict[int | None, int] = {}
    for record in records:
        if record.timestamp >= newest.get(record.partition, 0) - history_ms:
            newest[record.partition] = max(newest.get(record.partition, 0), record.timestamp)
            held.setdefault((record.partition, record.key), {})[record.timestamp] = record.value
    found = set()
    for (partition, key), versions in held.items():
        times = sorted(versions)
        for time, following in zip(times, [*times[1:], None], strict=True):
            if following is None or following > newest[partition] - history_ms:
                found.add((partition, key, time, versions[time]))
    gone = {
        (partition, key, time, value) for partition, key, time, value in found if value is None and not _before(found, partition, key, time)
    }
    return found - gone


def _before(found: set[tuple[int | None, bytes | None, int, bytes | None]], partition: int | None, key: bytes | None, time: int) -> bool:
    """Return whether there is a value just before a deletion."""
    earlier = [(at, value) for where, whose, at, value in found if (where, whose) == (partition, key) and at < time]
    return bool(earlier) and max(earlier)[1] is not None

"""The jobs that run an application's own program: one for each sub-topology, after those that write into it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from kops.core.errors import KopsError, OperationFailed, Refused, TimedOut, UsageProblem
from kops.spark.driver.failures import explained, raise_hidden_interrupt
from kops.spark.programs.models import ProgramTask, Run
from kops.spark.programs.tasks import SCHEMA, run_task
from kops.spark.reading.archive import in_parts
from kops.spark.staging.stage import StagedPartitions, make_folder, staged_of

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

    from kops.spark.reading.archive import ArchivedTopic
    from kops.spark.reading.batch_source import BatchSource, Read
    from kops.spark.reading.ranges import TopicRange

_KINDS = {kind.slug: kind for kind in (OperationFailed, Refused, TimedOut, UsageProblem)}


@dataclass(frozen=True)
class StoreCounts:
    """A store that was computed, and its staged difference.

    :param live: live keys of its changelog by partition
    :param expired: windows that are neither expected nor written
    :param unsure: keys of which another order of records gives another value, or none
    :param unsure_times: those of which it gives another timestamp only
    :param elsewhere: keys that only another order gives
    :param examples: a few of the former, or else of the latter
    :param headers: records that it should have, or has, have headers
    :param on_disk: tasks in which it outgrew the memory of the program's JVM
    """

    staged: StagedPartitions
    keys: int
    live: Mapping[int, int]
    expired: int
    unsure: int = 0
    unsure_times: int = 0
    elsewhere: int = 0
    examples: tuple[bytes, ...] = ()
    headers: bool = False
    on_disk: int = 0


@dataclass(frozen=True)
class Ran:
    """What came of a sub-topology.

    :param records: how many were given to its tasks
    :param skipped: how many the library dropped, such as late ones
    :param wall_clock_schedules: how many punctuators wait for wall-clock time
    :param stream_time_schedules: how many wait for stream time
    :param without_key: repartition topics with records whose partition is any
    :param calls: of clocks, random numbers, the network and the environment that the program made, and where it asked for offsets
    :param initial_calls: those of constructors and static initializers outside of tasks, whatever they are of
    :param kept: fields of the program's functions and processors that changed between records
    :param orders: in how many it was run
    :param thrown: what it threw in another order than by time
    :param heap: the most that the heap of one of its JVMs could be, in bytes
    :param refused: how many records for each topic its producer refused as too large, and its handler of that passed over
    :param surroundings: what its JVMs said of theirs, as JSON
    """

    stores: Mapping[str, StoreCounts]
    records: int
    skipped: int
    wall_clock_schedules: int
    stream_time_schedules: int
    without_key: tuple[str, ...]
    calls: tuple[str, ...] = ()
    initial_calls: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    orders: int = 1
    thrown: str | None = None
    heap: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    surroundings: tuple[str, ...] = ()


def run_subtopology(batches: BatchSource, run: Run, tasks: Sequence[ProgramTask]) -> Ran:
    """Run all tasks of a sub-topology.

    :raises KopsError: what the first task that failed met: the program threw, its JVM ended, its class path is another
    """
    for stage in {store.stage for task in tasks for store in task.stores}:
        make_folder(stage)

    def give(number: int, read: Read) -> Iterator[pyarrow.Table]:
        yield run_task(run, tasks[number], read)

    what = f"run sub-topology {tasks[0].subtopology} of {run.application}"
    by_task = {each["task"]: each for each in facts_of_tasks(batches, run, what, len(tasks), give)}
    found = [(task, by_task[task.name]) for task in tasks]
    names = [store.name for store in tasks[0].stores]
    return Ran(
        {name: counts_of([(task.partition, facts["stores"][name]) for task, facts in found]) for name in names},
        records=sum(facts["records"] for _, facts in found),
        skipped=sum(facts["skipped"] for _, facts in found),
        wall_clock_schedules=sum(facts["wall_clock_schedules"] for _, facts in found),
        stream_time_schedules=sum(facts["stream_time_schedules"] for _, facts in found),
        without_key=tuple(sorted({name for _, facts in found for name in facts["without_key"]})),
        calls=tuple(sorted({call for _, facts in found for call in facts["calls"]})),
        initial_calls=tuple(sorted({call for _, facts in found for call in facts["initial_calls"]})),
        kept=tuple(sorted({field for _, facts in found for field in facts["kept"]})),
        orders=min(len(task.orders) for task in tasks),
        thrown=next((facts["thrown"] for _, facts in found if facts["thrown"]), None),
        heap=max(facts["heap"] for _, facts in found),
        surroundings=tuple(dict.fromkeys(facts["surroundings"] for _, facts in found if facts["surroundings"])),
        refused=dict(sum((Counter(facts["refused"]) for _, facts in found), Counter[str]())),
    )


def facts_of_tasks(
    batches: BatchSource, run: Run, what: str, count: int, give: Callable[[int, Read], Iterator[pyarrow.Table]]
) -> list[dict[str, Any]]:
    """Return the facts of tasks, one row of ``SCHEMA`` each.

    :param what: is done, should it fail
    :raises KopsError: what the first task that failed met
    """
    with explained(what):
        try:
            rows = batches.by_task(count, SCHEMA, give).collect()
        except Exception as error:
            raise_hidden_interrupt(error)
            failure = run.failure()
            if failure is None:
                raise
            raise _as_error(failure) from error
    return [json.loads(row.facts) for row in rows]


def keep_archived(session: SparkSession, run: Run, archived: ArchivedTopic, wanted: TopicRange) -> dict[int, int]:
    """Write what an archive has of a topic into a file for each partition, in the order of offsets.

    :return: partition -> the offset after what is in its file, for those of which an archive has a part; without records there is no file
    """
    old, _ = archived.divided(replace(wanted, headers=True))
    partitions = sorted(number for number, (start, end) in old.ranges.items() if start < end)
    if not partitions:
        return {}
    files = {number: run.archived(wanted.topic, number) for number in partitions}
    files[partitions[0]].parent.mkdir(parents=True)

    def write(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        from pyarrow import ipc

        coded = (_with_headers(batch) for batch in batches if batch.num_rows)
        first = next(coded, None)
        if first is not None:
            with ipc.new_file(str(files[first.column("partition")[0].as_py()]), first.schema) as writer:
                for batch in chain([first], coded):
                    writer.write_batch(batch)
        yield from ()

    with explained(f"read the archive of {wanted.topic}"):
        in_parts(archived.rows(session, old), partitions).mapInArrow(write, "partition int").collect()
    return {number: old.ranges[number][1] for number in partitions}


def _with_headers(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """Put headers as frames have them."""
    import pyarrow

    from kops.formats.runner_frames import encoded_headers

    found = batch.column("headers").to_pylist()
    coded = [encoded_headers([(each["key"], each["value"]) for each in some]) if some else None for some in found]
    columns = {name: batch.column(name) for name in ("partition", "offset", "timestamp_ms", "key", "value")}
    return pyarrow.RecordBatch.from_pydict({**columns, "headers": pyarrow.array(coded, pyarrow.binary())})


def counts_of(found: Sequence[tuple[int, Mapping[str, Any]]]) -> StoreCounts:
    """Add up what tasks counted of a store.

    :param found: by partition
    """
    from pyspark.sql import Row

    rows = [Row(**sums) for _, facts in found for sums in facts["sums"]]
    names = ("keys", "expired", "unsure", "unsure_times", "elsewhere")
    keys, expired, unsure, times, elsewhere = (sum(facts[name] for _, facts in found) for name in names)
    # Only of keys whose values differ, where there are any: in each task its examples are.
    examples = [bytes.fromhex(key) for _, facts in found if facts["unsure"] or not unsure for key in facts["examples"]]
    headers = any(facts["headers"] for _, facts in found)
    live = {partition: facts["held"] for partition, facts in found}
    on_disk = sum(facts.get("on_disk", False) for _, facts in found)
    return StoreCounts(staged_of(rows), keys, live, expired, unsure, times, elsewhere, tuple(examples), headers, on_disk)


def _as_error(failure: Mapping[str, Any]) -> KopsError:
    kind = _KINDS.get(failure["code"], OperationFailed)
    return kind(failure["message"], hint=failure.get("hint"), **failure.get("details", {}))

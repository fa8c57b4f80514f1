"""Spark jobs that run an application's own program: one per sub-topology, after the jobs of those that write into it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kops.core.errors import KopsError, MissingRequirement, OperationFailed, Refused, TimedOut, Unreachable, UsageProblem
from kops.spark.driver.failures import explained, raise_hidden_interrupt
from kops.spark.programs.disturbed import MOST_SAMPLED, after_all_ran
from kops.spark.programs.models import SAMPLE, ProgramTask, Run
from kops.spark.programs.tasks import SCHEMA, run_task, sample_task
from kops.spark.reading.archive import in_parts
from kops.spark.staging.stage import StagedPartitions, make_folder, staged_of

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from kops.spark.reading.archive import ArchivedTopic
    from kops.spark.reading.batch_source import BatchSource, Read
    from kops.spark.reading.ranges import TopicRange

Give = Callable[[Run, Any, "Read"], "pyarrow.Table"]
"""Runs a task, and returns a row of its facts."""
_KINDS = {kind.slug: kind for kind in (MissingRequirement, OperationFailed, Refused, TimedOut, Unreachable, UsageProblem)}


@dataclass(frozen=True)
class StoreCounts:
    """A computed store, and its staged difference from the changelog.

    :param live: live keys of its changelog by partition
    :param expired: windows that are neither expected nor written
    :param unsure: keys whose value differs, or is missing, when the program is disturbed
    :param unsure_times: keys of which only the timestamp differs then
    :param elsewhere: keys that exist only then
    :param examples: a few of the unsure keys, or else of those with unsure times
    :param depends_on: by what they differ, as ``kops.spark.programs.disturbed`` says it
    :param headers: some of its records, expected or present, have headers
    :param on_disk: number of tasks in which it outgrew the memory of the program's JVM
    """

    staged: StagedPartitions
    keys: int
    live: Mapping[int, int]
    expired: int
    unsure: int = 0
    unsure_times: int = 0
    elsewhere: int = 0
    examples: tuple[bytes, ...] = ()
    depends_on: tuple[str, ...] = ()
    headers: bool = False
    on_disk: int = 0


@dataclass(frozen=True)
class SubtopologyRun:
    """The outcome of running a sub-topology's tasks.

    :param records: number of input records
    :param skipped: number of records that the library dropped, such as late ones
    :param wall_clock_schedules: number of punctuators that wait for wall-clock time
    :param stream_time_schedules: number of punctuators that wait for stream time
    :param without_key: repartition topics with records that may be in any partition
    :param orders: number of orders in which the tasks ran
    :param disturbed: number of records that the tasks processed again in the disturbed run
    :param tasks: number of tasks with records, and of those among them that were disturbed
    :param restarts: number of restarts in the disturbed run
    :param thrown: error of the disturbed run
    :param not_restarted: why the program of a task could not be restarted
    :param passed_differing: number of records passed on that differ in the disturbed run
    :param passed_depends_on: causes of these differences
    :param heap: the most that the heap of one of its JVMs could be, in bytes
    :param refused: number of records per topic that were too large for its producer and that its exception handler skipped
    :param surroundings: as its JVMs reported them, in JSON
    """

    stores: Mapping[str, StoreCounts]
    records: int
    skipped: int
    wall_clock_schedules: int
    stream_time_schedules: int
    without_key: tuple[str, ...]
    orders: int = 1
    disturbed: int = 0
    tasks: tuple[int, int] = (1, 1)
    restarts: int = 0
    thrown: str | None = None
    not_restarted: str | None = None
    passed_differing: int = 0
    passed_depends_on: tuple[str, ...] = ()
    heap: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    surroundings: tuple[str, ...] = ()


class Jobs:
    """Jobs whose tasks run on this machine and exchange files in the run's folder.

    Nothing goes through Spark's JVM, which saves 3 s for a million staged keys (``stage.write_stage``); records for repartition topics are
    mapped into memory where they are read.

    :param batches: by which tasks read topics
    """

    def __init__(self, batches: BatchSource, run: Run) -> None:
        self.batches, self.run = batches, run

    def facts(self, what: str, items: Sequence[Any], give: Give, stages: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Run tasks and return their facts.

        :param what: the job in words, for its error
        :param items: one per task
        :param give: runs in a task, with the run as it is there and the item; returns one row of ``tasks.SCHEMA``
        :param stages: paths of the stages that the tasks write
        :raises KopsError: the error of the first task that failed
        """
        for stage in stages:
            make_folder(stage)
        run = self.run

        def given(number: int, read: Read) -> Iterator[pyarrow.Table]:
            yield give(run, items[number], read)

        with explained(what):
            try:
                rows = self.batches.by_task(len(items), SCHEMA, given).collect()
            except Exception as error:
                raise_hidden_interrupt(error)
                failure = run.failure()
                if failure is None:
                    raise
                raise as_error(failure) from error
        return [json.loads(row.facts) for row in rows]

    def keep_archived(self, archived: ArchivedTopic, wanted: TopicRange) -> dict[int, int]:
        """Put what an archive has of a topic where tasks find it: a file for each partition, in the order of offsets.

        :return: partition -> the offset after what is in its file, of which an archive has a part; without records there is no file
        """
        rows, ends = archived_rows(self.batches.session, archived, wanted)
        if rows is not None:
            run, topic = self.run, wanted.topic
            run.archived(topic, 0).parent.mkdir(parents=True)

            def write(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
                write_archived(batches, lambda partition: run.archived(topic, partition))
                yield from ()

            with explained(f"read the archive of {topic}"):
                rows.mapInArrow(write, "partition int").collect()
        return ends

    def close(self) -> None:
        """Drop what the tasks wrote for each other."""


def run_subtopology(jobs: Jobs, tasks: Sequence[ProgramTask]) -> SubtopologyRun:
    """Run all tasks of a sub-topology.

    :raises KopsError: the error of the first task that failed: the program threw, its JVM ended, its class path differs
    """
    stages = sorted({store.stage for task in tasks for store in task.stores})
    what = f"run sub-topology {tasks[0].subtopology} of {jobs.run.application}"
    several = sum(task.disturbed == SAMPLE for task in tasks) > MOST_SAMPLED
    now = [replace(task, disturbed="") if several and task.disturbed == SAMPLE else task for task in tasks]
    by_task = {each["task"]: each for each in jobs.facts(what, now, run_task, stages)}
    if several:
        by_task |= _sampled(jobs, tasks, by_task)
    found = [(task, by_task[task.name]) for task in tasks]
    names = [store.name for store in tasks[0].stores]
    return SubtopologyRun(
        {name: counts_of([(task.partition, facts["stores"][name]) for task, facts in found]) for name in names},
        records=sum(facts["records"] for _, facts in found),
        skipped=sum(facts["skipped"] for _, facts in found),
        wall_clock_schedules=sum(facts["wall_clock_schedules"] for _, facts in found),
        stream_time_schedules=sum(facts["stream_time_schedules"] for _, facts in found),
        without_key=tuple(sorted({name for _, facts in found for name in facts["without_key"]})),
        orders=min(len(task.orders) for task in tasks),
        disturbed=sum(facts["disturbed"] for _, facts in found),
        tasks=(sum(facts["records"] > 0 for _, facts in found), sum(facts["disturbed"] > 0 for _, facts in found)),
        restarts=sum(facts["restarts"] for _, facts in found),
        passed_differing=sum(facts["passed_differing"] for _, facts in found),
        passed_depends_on=tuple(sorted({each for _, facts in found for each in facts["passed_depends_on"]})),
        thrown=next((facts["thrown"] for _, facts in found if facts["thrown"]), None),
        not_restarted=next((facts["not_restarted"] for _, facts in found if facts["not_restarted"]), None),
        heap=max(facts["heap"] for _, facts in found),
        surroundings=tuple(dict.fromkeys(facts["surroundings"] for _, facts in found if facts["surroundings"])),
        refused=dict(sum((Counter(facts["refused"]) for _, facts in found), Counter[str]())),
    )


def _sampled(jobs: Jobs, tasks: Sequence[ProgramTask], ran: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Disturb samples of some tasks that have run; return their facts with what that showed, by name."""
    # Each task keeps its place in the job, by which what it reads is brought to it on a cluster.
    again = [replace(task, stores=tuple(replace(store, stage="") for store in task.stores)) for task in after_all_ran(tasks, ran)]
    before = {task.name: ran[task.name] for task in again if task.disturbed}

    def give(run: Run, task: ProgramTask, read: Read) -> pyarrow.Table:
        return sample_task(run, task, read, before.get(task.name))

    found = {}
    what = f"disturb sub-topology {tasks[0].subtopology} of {jobs.run.application}"
    for shown in jobs.facts(what, again, give) if before else ():
        if (facts := before.get(shown["task"])) is not None:
            stores = {name: {**facts["stores"][name], **each} for name, each in shown["stores"].items()}
            found[shown["task"]] = {**facts, **shown, "stores": stores}
    return found


def archived_rows(session: SparkSession, archived: ArchivedTopic, wanted: TopicRange) -> tuple[DataFrame | None, dict[int, int]]:
    """Return the archived records of a topic, one task per partition (None: there are none), and the offsets of ``keep_archived``."""
    old, _ = archived.divided(replace(wanted, headers=True))
    partitions = sorted(number for number, (start, end) in old.ranges.items() if start < end)
    if not partitions:
        return None, {}
    return in_parts(archived.rows(session, old), partitions), {number: old.ranges[number][1] for number in partitions}


def write_archived(batches: Iterable[pyarrow.RecordBatch], place: Callable[[int], Path]) -> int | None:
    """Write the records of a partition into a file, and return its number; None: there are none, and no file.

    :param place: gives the path for a partition
    """
    from pyarrow import ipc

    coded = (_with_headers(batch) for batch in batches if batch.num_rows)
    first = next(coded, None)
    if first is None:
        return None
    partition = int(first.column("partition")[0].as_py())
    with ipc.new_file(str(place(partition)), first.schema) as writer:
        for batch in chain([first], coded):
            writer.write_batch(batch)
    return partition


def _with_headers(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """Encode headers as frames do."""
    import pyarrow

    from kops.formats.runner_frames import encoded_headers

    found = batch.column("headers").to_pylist()
    coded = [encoded_headers([(each["key"], each["value"]) for each in some]) if some else None for some in found]
    columns = {name: batch.column(name) for name in ("partition", "offset", "timestamp_ms", "key", "value")}
    return pyarrow.RecordBatch.from_pydict({**columns, "headers": pyarrow.array(coded, pyarrow.binary())})


def counts_of(found: Sequence[tuple[int, Mapping[str, Any]]]) -> StoreCounts:
    """Add up the counts of a store's tasks.

    :param found: by partition
    """
    from pyspark.sql import Row

    rows = [Row(**sums) for _, facts in found for sums in facts["sums"]]
    names = ("keys", "expired", "unsure", "unsure_times", "elsewhere")
    keys, expired, unsure, times, elsewhere = (sum(facts[name] for _, facts in found) for name in names)
    # A task's examples are keys whose values differ if it has any, else keys whose times do: the two must not mix.
    examples = [bytes.fromhex(key) for _, facts in found if facts["unsure"] or not unsure for key in facts["examples"]]
    depends_on = tuple(sorted({each for _, facts in found for each in facts["depends_on"]}))
    headers = any(facts["headers"] for _, facts in found)
    live = {partition: facts["held"] for partition, facts in found}
    on_disk = sum(facts.get("on_disk", False) for _, facts in found)
    return StoreCounts(staged_of(rows), keys, live, expired, unsure, times, elsewhere, tuple(examples), depends_on, headers, on_disk)


def as_error(failure: Mapping[str, Any]) -> KopsError:
    """Return the error that ``KopsError.as_json`` described."""
    kind = _KINDS.get(failure["code"], OperationFailed)
    return kind(failure["message"], hint=failure.get("hint"), **failure.get("details", {}))

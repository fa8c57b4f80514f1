"""One task of an application's own program, in a task of Spark: its records go in, and what it writes comes out.

What it writes to its changelogs is compared with what they hold, and the difference is staged. What it writes to repartition topics goes
into files, from where the tasks of the next sub-topology read it: each task writes a file for each partition.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kops.core.errors import KopsError, OperationFailed
from kops.core.streams.program_doubts import BACKWARD, BY_TIME
from kops.formats import runner_frames as frames
from kops.spark.programs.inputs import of_files, of_topic
from kops.spark.programs.models import FAILURE, ProgramTask, Run, StoreTask
from kops.spark.programs.orders import HOW, DifferingKeys, by_time, one_by_one
from kops.spark.programs.rows import restored
from kops.spark.programs.spill import zip_parts
from kops.spark.programs.stores import staged, unexpired_rows
from kops.spark.programs.task_output import TaskOutput
from kops.spark.programs.worker_program import end_program, program_of

if TYPE_CHECKING:
    import pyarrow

    from kops.spark.reading.batch_source import Read

_SEEN = ("calls", "initial_calls", "kept")
_REFUSED = "refused."
_SCHEDULES = ("wall_clock_schedules", "stream_time_schedules")
SCHEMA = "facts string"
"""What a task returns: one row of JSON."""


def run_task(run: Run, task: ProgramTask, read: Read) -> pyarrow.Table:
    """Run a task; return its row.

    :raises KopsError: which is also in the file ``FAILURE``, since Spark keeps only its text
    """
    return row_of(run, f"task {task.name}", lambda: _facts(run, task, read))


def row_of(run: Run, what: str, make: Callable[[], Mapping[str, Any]]) -> pyarrow.Table:
    """Return the row of a task.

    :param what: names it, should it fail
    :param make: runs it, and returns its facts
    :raises KopsError: as ``run_task``
    """
    import pyarrow

    try:
        facts = make()
    except KopsError as error:
        _tell(run, error)
        raise
    except Exception as error:
        said = f"{what} of {run.application} failed: {type(error).__name__}: {error}"
        _tell(run, OperationFailed(said, trace=traceback.format_exc()))
        raise
    return pyarrow.table({"facts": [json.dumps(facts)]})


def _tell(run: Run, error: KopsError) -> None:
    part = run.folder / f".{FAILURE}.{os.getpid()}"
    part.write_text(json.dumps(error.as_json()), encoding="utf-8")
    try:
        os.link(part, run.folder / FAILURE)  # which fails where another task was first
    except FileExistsError:
        pass
    finally:
        part.unlink()


def _facts(run: Run, task: ProgramTask, read: Read) -> dict[str, Any]:
    """Run a task in its orders; stage what it wrote in the first, and compare the others with that."""
    first, *others = task.orders
    written, facts = run_in_order(run, task, first, read)
    stores = {store.name: staged(run, store, task.partition, written, read) for store in task.stores}
    found = {name: {*facts[name]} for name in (*_SEEN, "on_disk")}
    schedules = {name: facts[name] for name in _SCHEDULES}
    runs, thrown = [written], None
    for order in others:
        try:
            other, more = run_in_order(run, task, order, read)
        except OperationFailed as error:
            thrown = error.message
            break
        runs.append(other)
        for name, values in found.items():
            values |= {*more[name]}
        schedules = {name: max(count, more[name]) for name, count in schedules.items()}
    differing = {store.name: _differing(runs, store, task.partition) for store in task.stores}
    on_disk = found.pop("on_disk")
    seen = {**{name: sorted(values) for name, values in found.items()}, **schedules, "thrown": thrown}
    moved = {store.name: {"on_disk": not on_disk.isdisjoint({store.name, store.changelog})} for store in task.stores}
    return {**facts, **seen, "stores": {name: {**stores[name], **differing[name], **moved[name]} for name in stores}}


def _differing(runs: Sequence[TaskOutput], store: StoreTask, partition: int) -> dict[str, Any]:
    """Compare what a task wrote in several orders."""
    differing = DifferingKeys()
    if len(runs) > 1:
        for first, *others in zip_parts(*(unexpired_rows(written, store) for written in runs)):
            differing.add(first, others, partition)
    return differing.facts


def run_in_order(run: Run, task: ProgramTask, order: str, read: Read) -> tuple[TaskOutput, dict[str, Any]]:
    """Run a task in one order; return what it wrote, and what happened."""
    program = program_of(run, read)
    written = TaskOutput(run, task, order)
    pieces = {piece.topic: piece for piece in task.pieces}
    named = {name: of_topic(run, task, name, pieces.get(name), read) for name in (*task.archived, *pieces)}
    named |= {topic: of_files(run, topic, task, order) for topic in task.repartition}
    names, inputs = list(named), list(named.values())
    timed = order == BY_TIME and len({*names, *task.answers}) > 1
    request = {
        "subtopology": str(task.subtopology),
        "partition": str(task.partition),
        "order": "time" if timed else "given",
        "after": ",".join(f"{topic}:{rank}" for topic, rank in task.answers.items()),
        "changelogs": "last",
        "versions": ",".join(store.changelog for store in task.stores if store.history_ms is not None),
        "restores": str(bool(task.restored)).lower(),
        **{f"committed.{topic}": str(offset) for topic, (offset, _) in task.committed.items()},
        **{f"metadata.{topic}": metadata for topic, (_, metadata) in task.committed.items()},
        **HOW[order],
    }
    try:
        program.ask(frames.TASK, frames.encoded_map(request), written.take)
        for changelog, path in task.restored.items():
            for batch in restored(changelog, path, task.partition):
                program.ask(frames.RESTORE, frames.encoded_batch(batch))
        given = names, inputs, task.answers
        for kind, body in by_time(*given) if timed else one_by_one(*given, backward=order == BACKWARD):
            program.ask(kind, body, written.take)
        facts = program.ask(frames.FINISH, take=written.take)
    except BaseException:
        end_program()
        raise
    written.close()
    return written, _numbers(task, facts)


def _numbers(task: ProgramTask, facts: Mapping[str, str]) -> dict[str, Any]:
    counts = {name: int(facts.get(name, 0)) for name in ("records", "skipped", "heap", *_SCHEDULES)}
    without_key = [name for name in facts.get("without_key", "").split(",") if name]
    on_disk = facts.get("on_disk", "").split(",")
    seen = {name: facts.get(name, "").splitlines() for name in _SEEN}
    refused = {name.removeprefix(_REFUSED): int(count) for name, count in facts.items() if name.startswith(_REFUSED)}
    more = {"surroundings": facts.get("surroundings", "")}
    return {"task": task.name, **counts, **seen, **more, "without_key": without_key, "on_disk": on_disk, "refused": refused}

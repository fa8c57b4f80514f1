"""One run of a task: as it is, or varied."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kops.core.streams.program_doubts import BACKWARD, BY_TIME, FORWARD
from kops.formats import runner_frames as frames
from kops.spark.programs.inputs import repartitioned_batches, topic_batches
from kops.spark.programs.orders import HOW, by_time, one_by_one
from kops.spark.programs.rows import snapshot_batches
from kops.spark.programs.task_output import TaskOutput
from kops.spark.programs.worker_program import SLOW_SECONDS, end_program, program_of

if TYPE_CHECKING:
    from kops.spark.programs.models import ProgramTask, Run
    from kops.spark.reading.batch_source import Read

_SCHEDULES = ("wall_clock_schedules", "stream_time_schedules")
_REFUSED = "refused."
FEW = 4
"""Least number of restarts, also of a program that takes long to restart."""


@dataclass(frozen=True)
class Way:
    """How a task is run.

    :param surroundings: names of ``kops.gateways.machine.program.SURROUNDINGS`` that are changed; any other name stands for one more JVM
    :param restarts: numbers of records after which the program is restarted, ascending
    :param rarely: flush caches at the end, and call punctuators after many records; otherwise as ``HOW`` says for the order
    :param offsets: give records of repartition topics other offsets, as transactions between them would
    """

    order: str = BY_TIME
    surroundings: tuple[str, ...] = ()
    restarts: Sequence[int] = ()
    offsets: bool = False
    rarely: bool = False


def run_once(
    run: Run, task: ProgramTask, way: Way, read: Read, *, sample: Sequence[frames.Batch] | None = None, apart: bool = False
) -> tuple[TaskOutput, dict[str, Any]]:
    """Run a task; return its output, and the facts of the run.

    :param sample: part of its input, which is one partition; None: all of it
    :param apart: no other task reads what it passes on
    """
    program = program_of(run, read, way.surroundings)
    written = TaskOutput(run, task, None if apart else way.order)
    inputs = {each.topic: each for each in task.inputs}
    names = list(dict.fromkeys((*task.archived, *inputs, *task.repartition)))
    timed = way.order == BY_TIME and len({*names, *task.answers}) > 1
    request = {
        "subtopology": str(task.subtopology),
        "partition": str(task.partition),
        "order": "time" if timed else "given",
        "after": ",".join(f"{topic}:{rank}" for topic, rank in task.answers.items()),
        "changelogs": "last",
        "versions": ",".join(store.changelog for store in task.stores if store.history_ms is not None),
        "restores": str(bool(task.restored)).lower(),
        "restarted": str(bool(way.restarts)).lower(),
        **{f"committed.{topic}": str(offset) for topic, (offset, _) in task.committed.items()},
        **{f"metadata.{topic}": metadata for topic, (_, metadata) in task.committed.items()},
        **HOW[FORWARD if way.rarely else way.order],
    }
    restarts = 0
    try:
        program.ask(frames.TASK, frames.encoded_map(request), written.take)
        for changelog, path in task.restored.items():
            for batch in snapshot_batches(changelog, path, task.partition):
                program.ask(frames.RESTORE, frames.encoded_batch(batch))
        named = inputs_of(run, task, read, way.order) if sample is None else {names[0]: iter(sample)}
        if way.offsets:
            named = {name: _renumbered(each) if name in task.repartition else each for name, each in named.items()}
        given = list(named), list(named.values()), task.answers
        items = by_time(*given) if timed else one_by_one(*given, backward=way.order == BACKWARD)
        for item in _with_restarts(items, way.restarts):
            if item is None:
                program.ask(frames.RESTART, take=written.take)
                restarts += 1
            elif isinstance(item, str):
                program.ask(frames.END, frames.encoded_map({"topic": item}), written.take)
            else:
                program.ask(frames.RECORDS, frames.encoded_batch(item), written.take)
        facts = program.ask(frames.FINISH, take=written.take)
    except BaseException:
        end_program(way.surroundings)
        written.discard()
        raise
    written.close()
    return written, {**_numbers(task, facts), "restarts": restarts}


def inputs_of(run: Run, task: ProgramTask, read: Read, order: str = BY_TIME) -> dict[str, Iterator[frames.Batch]]:
    """Return the records of each topic that a task reads."""
    inputs = {each.topic: each for each in task.inputs}
    named = {name: topic_batches(run, task, name, inputs.get(name), read) for name in (*task.archived, *inputs)}
    return {**named, **{topic: repartitioned_batches(run, topic, task, order) for topic in task.repartition}}


def _renumbered(batches: Iterable[frames.Batch]) -> Iterator[frames.Batch]:
    for batch in batches:
        yield replace(batch, offset=batch.offset * 3 + 1000)


def _with_restarts(items: Iterable[frames.Batch | str], restarts: Sequence[int]) -> Iterator[frames.Batch | str | None]:
    """Yield the items, and None where the program is restarted."""
    left, count, done = deque(restarts), 0, 0
    for item in items:
        if isinstance(item, str):
            yield item
            continue
        rest, here = item, len(item.offset)
        while left and left[0] <= count + here:
            size = left.popleft() - count
            yield sliced(rest, slice(size))
            began = time.monotonic()
            yield None
            done += 1
            if done == 1 and time.monotonic() - began > SLOW_SECONDS:
                left = deque(list(left)[:: max(1, len(left) // (FEW - 1))])
            rest, here, count = sliced(rest, slice(size, None)), here - size, count + size
        if here:
            yield rest
        count += here


def sliced(batch: frames.Batch, rows: Any) -> frames.Batch:
    """Return some rows of a batch.

    :param rows: a slice, or their numbers as numpy has them
    """
    numbers = {name: getattr(batch, name)[rows] for name in ("topic", "partition", "offset", "timestamp")}
    texts = {name: getattr(batch, name) for name in ("key", "value", "headers")}
    if isinstance(rows, slice):
        return replace(batch, **numbers, **{name: column[rows] for name, column in texts.items()})
    return replace(batch, **numbers, **{name: column.take(rows) for name, column in texts.items()})


def _numbers(task: ProgramTask, facts: Mapping[str, str]) -> dict[str, Any]:
    counts = {name: int(facts.get(name, 0)) for name in ("records", "skipped", "heap", "commits", *_SCHEDULES)}
    without_key = [name for name in facts.get("without_key", "").split(",") if name]
    on_disk = facts.get("on_disk", "").split(",")
    refused = {name.removeprefix(_REFUSED): int(count) for name, count in facts.items() if name.startswith(_REFUSED)}
    more = {"surroundings": facts.get("surroundings", "")}
    return {"task": task.name, **counts, "without_key": without_key, "on_disk": on_disk, "refused": refused, **more}

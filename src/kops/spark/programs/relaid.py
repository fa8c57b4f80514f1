"""A program's input put where it would be with another number of partitions, and its tasks run over that.

What they compute is compared with what the changelogs hold, whose keys were put into these partitions too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kops.core.errors import OperationFailed, Refused
from kops.core.streams.program_doubts import BY_TIME
from kops.spark.columns.difference import stage_rows
from kops.spark.programs.inputs import encoded_headers_column
from kops.spark.programs.jobs import Jobs
from kops.spark.programs.models import ProgramTask, Run, StoreTask
from kops.spark.programs.orders import EXAMPLES, DifferingKeys, first_keys
from kops.spark.programs.rows import snapshot_rows, staged_rows
from kops.spark.programs.spill import Rows, Spill, zip_parts
from kops.spark.programs.stores import latest_window, rows_wanted, unexpired_rows, without_expired
from kops.spark.programs.task_output import PartitionFiles, TaskOutput
from kops.spark.programs.task_run import Way, run_once
from kops.spark.programs.tasks import facts_row

if TYPE_CHECKING:
    import pyarrow

    from kops.formats.batches.columns import RecordColumns
    from kops.spark.reading.batch_source import Read, TaskInput

INPUT = 99_999
"""In the names of files, in place of the sub-topology that wrote them: they are the same in every order."""
_ERASED = "erased"


def relay(jobs: Jobs, pieces: Sequence[TaskInput], old: int, new: int) -> int:
    """Write a topic's records into files, by the partition that each would have; return how many there are.

    :param old: the number of partitions that they were produced for, and ``new``: the number after the move
    :raises Refused: when a record is not where the default partitioner puts it among the old ones
    """

    def give(run: Run, piece: TaskInput, read: Read) -> pyarrow.Table:
        return facts_row(run, f"{piece.topic}:{piece.partition}", lambda: {"records": _relaid(run, piece, read, old, new)})

    if not pieces:
        return 0
    return sum(found["records"] for found in jobs.facts(f"read {pieces[0].topic}", pieces, give))


def _relaid(run: Run, piece: TaskInput, read: Read, old: int, new: int) -> int:
    import pyarrow

    from kops.formats.murmur2_columns import partitions_of

    files, count = PartitionFiles(run, BY_TIME, INPUT, piece.partition), 0
    for columns in read(piece):
        keys = columns.keys()
        _refuse_misplaced(piece, columns, keys, old)
        found = [pyarrow.array(columns.timestamps), keys, columns.values(), encoded_headers_column(columns)]
        table = pyarrow.table(found, names=["timestamp", "key", "value", "headers"])
        files.add(piece.topic, partitions_of(keys, new).to_numpy(), table)
        count += len(columns)
    files.close()
    return count


def _refuse_misplaced(piece: TaskInput, columns: RecordColumns, keys: pyarrow.Array, old: int) -> None:
    """Refuse records of which it is not known which partition they would have."""
    import numpy

    from kops.formats.murmur2_columns import partitions_of

    usual = partitions_of(keys, old).fill_null(-1).to_numpy()
    odd = numpy.flatnonzero(usual != piece.partition)
    if not len(odd):
        return
    at, place = int(columns.offsets[odd[0]]), int(usual[odd[0]])
    what = "has no key" if place < 0 else f"would be in partition {place} by the default partitioner of {old} partitions"
    raise Refused(
        f"{piece.topic}:{piece.partition} has a record at offset {at} that {what}: which task would read it after the move is not known",
        hint="a state file moves what the changelogs hold, whatever the input is: `kops state init APPLICATION` writes a template",
    )


@dataclass(frozen=True)
class RelaidCheck:
    """A store that was computed over the input of another number of partitions, beside what its changelog holds.

    :param keys: that the changelog holds
    :param wrong: keys that every order gives otherwise than the changelog has them, and all orders alike
    :param open: those that every order gives otherwise, and not all alike
    :param by_order: those that the order by time gives otherwise, and another one as the changelog has them
    :param examples: a few of those that are wrong, or else of those that are open
    :param orders: in how many the tasks were run; fewer where the program threw in one
    :param heap: the most that the heap of one of the JVMs could be, in bytes
    """

    keys: int
    wrong: int
    open: int
    by_order: int
    examples: tuple[bytes, ...]
    orders: int
    heap: int = 0


def check_subtopology(jobs: Jobs, tasks: Sequence[ProgramTask]) -> dict[str, RelaidCheck]:
    """Run all tasks of a sub-topology, and compare their stores with what is staged for them."""

    def give(run: Run, task: ProgramTask, read: Read) -> pyarrow.Table:
        return facts_row(run, f"task {task.name}", lambda: _checked(run, task, read))

    found = jobs.facts(f"run sub-topology {tasks[0].subtopology} of {jobs.run.application}", tasks, give)
    return {store.name: _added([each["stores"][store.name] for each in found]) for store in tasks[0].stores}


def _added(found: Sequence[Mapping[str, Any]]) -> RelaidCheck:
    keys, wrong, unsure, by_order = (sum(each[name] for each in found) for name in ("keys", "wrong", "open", "by_order"))
    examples = [bytes.fromhex(key) for each in found if each["wrong"] or not wrong for key in each["examples"]]
    orders, heap = min(each["orders"] for each in found), max(each["heap"] for each in found)
    return RelaidCheck(keys, wrong, unsure, by_order, tuple(examples[:EXAMPLES]), orders, heap)


def _checked(run: Run, task: ProgramTask, read: Read) -> dict[str, Any]:
    runs, heap = list[TaskOutput](), 0
    for order in task.orders:
        try:
            written, facts = run_once(run, task, Way(order), read)
        except OperationFailed:
            if not runs:
                raise
            continue
        runs.append(written)
        heap = max(heap, facts["heap"])
    counts = {store.name: _counted(run, store, task.partition, runs) for store in task.stores}
    return {"stores": {name: {**each, "orders": len(runs), "heap": heap} for name, each in counts.items()}}


def _counted(run: Run, store: StoreTask, partition: int, runs: Sequence[TaskOutput]) -> dict[str, Any]:
    """Compare what the orders gave with what is held, and with each other."""
    wanted = [_ExpectedRows(run, store, partition, written) for written in runs]
    counts, differing = dict.fromkeys(("keys", "wrong", "open", "by_order"), 0), DifferingKeys()
    examples: dict[str, list[bytes]] = {"wrong": [], "open": []}
    for held, *parts in zip_parts(_held(run, store, partition), *(each.rows for each in wanted), *(each.lasting for each in wanted)):
        rows, (first, *others) = parts[: len(wanted)], parts[len(wanted) :]
        unlike = [each.unlike(some, held) for each, some in zip(wanted, rows, strict=True)]
        by_all = set.intersection(*unlike)
        unsure = by_all & differing.add(first, others, partition)
        found = {"wrong": by_all - unsure, "open": unsure, "by_order": unlike[0] - by_all}
        counts |= {"keys": counts["keys"] + held.num_rows, **{name: counts[name] + len(keys) for name, keys in found.items()}}
        examples = {name: first_keys(some, found[name]) for name, some in examples.items()}
    return {**counts, "examples": [key.hex() for key in examples["wrong"] or examples["open"]]}


class _ExpectedRows:
    """What an order gave of a store."""

    def __init__(self, run: Run, store: StoreTask, partition: int, written: TaskOutput) -> None:
        self._store, self._partition = store, partition
        self.rows, self._timed = rows_wanted(run, store, written)
        self.lasting = unexpired_rows(written, store)
        self._latest = latest_window(self.rows, store)

    def unlike(self, rows: pyarrow.Table, held: pyarrow.Table) -> set[bytes]:
        """Return the keys of a part that differ from what is held; one that should not be there and is not does not."""
        wanted, _ = without_expired(rows, held, self._store, self._latest)
        return {
            key
            for batch in stage_rows(wanted, held, self._partition, timed=self._timed)
            for key, action in zip(batch.column("key").to_pylist(), batch.column("action").to_pylist(), strict=True)
            if action != _ERASED
        }


def _held(run: Run, store: StoreTask, partition: int) -> Rows:
    spill = Spill(run.folder, {store.name: None})
    for table in snapshot_rows(store.snapshot, partition) if store.snapshot is not None else staged_rows(store.stage, partition):
        spill.add(store.name, table)
    return spill.rows(store.name)

"""One task of an application's own program, in a task of Spark: its records go in, and what it writes comes out.

What it writes to its changelogs is compared with what they hold, and the difference is staged. What it writes to repartition topics goes
into files, from where the tasks of the next sub-topology read it: each task writes a file for each partition.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any

from kops.core.errors import KopsError, OperationFailed, Refused
from kops.core.streams.program_doubts import BACKWARD, BY_TIME
from kops.formats import runner_frames as frames
from kops.gateways.machine.program import Program, ProgramStart
from kops.spark.columns.difference import stage_rows
from kops.spark.programs.orders import HOW, Differing, by_time, one_by_one
from kops.spark.reading.gathering import GATHERED_BYTES, GATHERED_RECORDS, newest_of_each_key
from kops.spark.staging.stage_files import SUMS_SCHEMA, write_file

if TYPE_CHECKING:
    import pyarrow

    from kops.formats.batches.columns import RecordColumns
    from kops.spark.reading.batch_source import Piece, Read

SCHEMA = "facts string"
"""What a task returns: one row of JSON."""
FAILURE = "failure.json"
"""A file in the folder of a run: the first error that a task met."""
_BATCH = 50_000
_AHEAD = 2
_SUMS = tuple(name.split()[0] for name in SUMS_SCHEMA.split(", "))

Key = tuple["bytes | None", "bytes | None", int]
"""Key, value and timestamp."""


@dataclass(frozen=True)
class Run:
    """What all tasks of a run have in common.

    :param settings: of the frame that configures the runner
    :param global_pieces: what is read of the topics of global stores
    :param application: which the program must be
    :param topology: what the runner must say of it
    :param varied: sub-topologies that are run in several orders
    """

    start: ProgramStart
    settings: Mapping[str, str]
    application: str
    topology: Mapping[str, str]
    global_pieces: tuple[Piece, ...] = ()
    varied: frozenset[int] = frozenset()

    @property
    def folder(self) -> Path:
        return Path(self.start.folder)

    def repartitioned(self, topic: str, partition: int, order: str) -> Path:
        """Return the folder of what goes through a repartition topic."""
        return self.folder / "repartitioned" / order / topic / str(partition)

    def files(self, topic: str, partition: int, order: str) -> list[Path]:
        """Return the files that were written there, in the order of the tasks: those that run in one order only did so by time."""
        folders = {BY_TIME, order}
        found = [file for each in folders for file in self.repartitioned(topic, partition, each).glob("*.arrow")]
        return sorted(file for file in found if (order if int(file.name[:5]) in self.varied else BY_TIME) == file.parents[2].name)

    def archived(self, topic: str, partition: int) -> Path:
        return self.folder / "archived" / topic / f"{partition}.arrow"

    def failure(self) -> dict[str, Any] | None:
        """Return the error that a task met, as ``KopsError.as_json``."""
        file = self.folder / FAILURE
        return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else None


@dataclass(frozen=True)
class StoreTask:
    """A store of which a task computes a partition.

    :param held: what its changelog holds; None: nothing
    :param snapshot: path of a snapshot's rows that stand for its changelog; None: none do
    :param stage: folder of the difference
    :param time_at: of a store of windows, where in its keys the time stands by which they expire; negative, from the end
    :param expires_ms: how much older than the latest time a window is certainly gone
    """

    name: str
    changelog: str
    held: Piece | None
    stage: str
    time_at: int = 0
    expires_ms: int = 0
    snapshot: str | None = None


@dataclass(frozen=True)
class ProgramTask:
    """One task of the program.

    :param pieces: what is read of its topics, at most one piece of each
    :param repartition: repartition topics that it reads
    :param waiting: records of those that the application has yet to process, in their order; they must not count
    :param passes_on: repartition topics that it writes
    :param orders: in which it is run, by time first
    :param archived: topics of which an archive has what comes before their pieces
    :param answers: topics with answers of foreign-key joins: read after all else, or not at all
    """

    subtopology: int
    partition: int
    pieces: tuple[Piece, ...]
    repartition: tuple[str, ...] = ()
    waiting: Mapping[str, Sequence[Key]] = field(default_factory=dict)
    stores: tuple[StoreTask, ...] = ()
    passes_on: tuple[str, ...] = ()
    orders: tuple[str, ...] = (BY_TIME,)
    archived: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.subtopology}_{self.partition}"


_programs: dict[str, Program] = {}
"""The program of this Python worker, by the folder of its run: a JVM takes longer to start than a task to run."""


def run_task(run: Run, task: ProgramTask, read: Read) -> pyarrow.Table:
    """Run a task; return its row.

    :raises KopsError: which is also in the file ``FAILURE``, since Spark keeps only its text
    """
    import pyarrow

    try:
        facts = _facts(run, task, read)
    except KopsError as error:
        _tell(run, error)
        raise
    except Exception as error:
        said = f"task {task.name} of {run.application} failed: {type(error).__name__}: {error}"
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


def _program(run: Run, read: Read) -> Program:
    found = _programs.get(run.start.folder)
    if found is not None:
        return found
    for folder in list(_programs):
        _programs.pop(folder).close()
    program = Program(run.start)
    try:
        _, hello = program.ask(frames.CONFIGURE, frames.encoded_map(run.settings))
        _refuse_another(run, hello)
        for piece in run.global_pieces:
            for columns in read(piece):
                program.ask(frames.GLOBAL, frames.encoded_batch(_of_columns(piece.topic, piece.partition, columns)))
    except BaseException:
        program.close()
        raise
    _programs[run.start.folder] = program
    return program


def _refuse_another(run: Run, hello: Mapping[str, str]) -> None:
    """Refuse a program that is another than the captured one although its class path is the same: by its variables, say."""
    again = "start it with the settings and variables of then, or capture it again"
    if hello["application"] != run.application:
        raise Refused(f"the program is now {hello['application']}, and {run.application} was captured", hint=again)
    for name, topics in run.topology.items():
        if hello.get(name) != topics:
            _, number, what = name.split(".")
            text = f"the {what} of its sub-topology {number} are {hello.get(name) or 'none'}, and were {topics or 'none'}"
            raise Refused(f"the program {run.application} has another topology than when it was captured: {text}", hint=again)


def _facts(run: Run, task: ProgramTask, read: Read) -> dict[str, Any]:
    """Run a task in its orders; stage what it wrote in the first, and compare the others with that."""
    first, *others = task.orders
    written, facts = _run(run, task, first, read)
    stores = {store.name: _staged(run, store, task, written, read) for store in task.stores}
    differing = {store.name: Differing() for store in task.stores}
    calls, schedules = {*facts["calls"]}, facts["wall_clock_schedules"]
    thrown = None
    for order in others:
        try:
            other, more = _run(run, task, order, read)
        except OperationFailed as error:
            thrown = error.message
            break
        calls |= {*more["calls"]}
        schedules = max(schedules, more["wall_clock_schedules"])
        for store in task.stores:
            differing[store.name].add(_lasting(written.of(store), store), _lasting(other.of(store), store), task.partition)
    seen = {"calls": sorted(calls), "wall_clock_schedules": schedules, "thrown": thrown}
    return {**facts, **seen, "stores": {name: {**stores[name], **differing[name].facts} for name in stores}}


def _run(run: Run, task: ProgramTask, order: str, read: Read) -> tuple[_Written, dict[str, Any]]:
    """Run a task in one order; return what it wrote, and what happened."""
    program = _program(run, read)
    written = _Written(run, task, order)
    pieces = {piece.topic: piece for piece in task.pieces}
    named = {name: _of_topic(run, task, name, pieces.get(name), read) for name in (*task.archived, *pieces)}
    named |= {topic: _of_files(run, topic, task, order) for topic in task.repartition}
    names, inputs = list(named), list(named.values())
    timed = order == BY_TIME and len({*names, *task.answers}) > 1
    request = {
        "subtopology": str(task.subtopology),
        "partition": str(task.partition),
        "order": "time" if timed else "given",
        "after": ",".join(task.answers),
        "changelogs": "last",
        **HOW[order],
    }
    try:
        written.take(program.ask(frames.TASK, frames.encoded_map(request))[0])
        given = names, inputs, task.answers
        for kind, body in by_time(*given) if timed else one_by_one(*given, backward=order == BACKWARD):
            written.take(program.ask(kind, body)[0])
        batches, facts = program.ask(frames.FINISH)
        written.take(batches)
    except BaseException:
        _programs.pop(run.start.folder, program).close()
        raise
    written.close()
    return written, _numbers(task, facts)


def _numbers(task: ProgramTask, facts: Mapping[str, str]) -> dict[str, Any]:
    counts = {name: int(facts.get(name, 0)) for name in ("records", "processed", "skipped", "commits", "wall_clock_schedules")}
    without_key = [name for name in facts.get("without_key", "").split(",") if name]
    return {"task": task.name, **counts, "without_key": without_key, "calls": facts.get("calls", "").splitlines()}


def _of_topic(run: Run, task: ProgramTask, topic: str, piece: Piece | None, read: Read) -> Iterator[frames.Batch]:
    """Yield the records of a topic: first those that only an archive has."""
    if topic in task.archived:
        yield from _of_archive(run, topic, task.partition)
    if piece is not None:
        yield from _of_piece(piece, read)


def _of_archive(run: Run, topic: str, partition: int) -> Iterator[frames.Batch]:
    import numpy
    import pyarrow
    from pyarrow import ipc

    file = run.archived(topic, partition)
    if not file.exists():
        return
    whole = ipc.open_file(pyarrow.memory_map(str(file))).read_all()
    for start in range(0, whole.num_rows, _BATCH):
        rows = whole.slice(start, _BATCH).combine_chunks()
        zeros, partitions = numpy.zeros(rows.num_rows, numpy.int32), numpy.full(rows.num_rows, partition, numpy.int32)
        columns = [rows[name].combine_chunks() if rows[name].num_chunks != 1 else rows[name].chunk(0) for name in _TEXTS]
        yield frames.Batch([topic], zeros, partitions, rows["offset"].to_numpy(), rows["timestamp_ms"].to_numpy(), *columns)


def _of_piece(piece: Piece, read: Read) -> Iterator[frames.Batch]:
    return ahead(_of_columns(piece.topic, piece.partition, each) for columns in read(piece) for each in _slices(columns))


def _slices(columns: RecordColumns) -> Iterator[RecordColumns]:
    for start in range(0, len(columns), _BATCH):
        yield columns.where(slice(start, start + _BATCH))


def ahead(items: Iterable[Any]) -> Iterator[Any]:
    """Yield items that a thread makes ahead, so that reading goes on while the program works."""
    made: Queue[tuple[bool, Any]] = Queue(_AHEAD)
    stopped = False

    def make() -> None:
        try:
            for item in items:
                if stopped:
                    return
                made.put((True, item))
            made.put((False, None))
        except BaseException as error:
            made.put((False, error))

    thread = Thread(target=make, daemon=True)
    thread.start()
    try:
        while True:
            is_item, item = made.get()
            if is_item:
                yield item
            elif item is None:
                return
            else:
                raise item
    finally:
        stopped = True
        while thread.is_alive():  # it may wait for room
            while not made.empty():
                made.get_nowait()
            thread.join(0.01)


def _of_columns(topic: str, partition: int, columns: RecordColumns) -> frames.Batch:
    import numpy

    topics, partitions = numpy.zeros(len(columns), numpy.int32), numpy.full(len(columns), partition, numpy.int32)
    texts = columns.keys(), columns.values(), _headers(columns)
    return frames.Batch([topic], topics, partitions, columns.offsets, columns.timestamps, *texts)


def _headers(columns: RecordColumns) -> pyarrow.Array:
    """Return the headers of each record as frames have them; null if it has none."""
    import numpy
    import pyarrow

    with_headers = columns.has_headers()
    if not with_headers.any():
        return pyarrow.nulls(len(columns), pyarrow.binary())
    found: list[bytes | None] = [None] * len(columns)
    for row in numpy.flatnonzero(with_headers).tolist():
        found[row] = frames.encoded_headers(columns.headers(row))
    return pyarrow.array(found, pyarrow.binary())


def _of_files(run: Run, topic: str, task: ProgramTask, order: str) -> Iterator[frames.Batch]:
    """Yield what tasks wrote to a partition of a repartition topic: of each in its order, and several by their time, or one by one."""
    import numpy
    import pyarrow
    from pyarrow import ipc

    tables = [ipc.open_file(pyarrow.memory_map(str(file))).read_all() for file in run.files(topic, task.partition, order)]
    if not tables:
        if order == BY_TIME:
            _refuse_waiting(topic, task, task.waiting.get(topic, ()))
        return
    whole = pyarrow.concat_tables(reversed(tables) if order == BACKWARD else tables)
    if len(tables) > 1 and order == BY_TIME:
        reached = numpy.concatenate([numpy.maximum.accumulate(table["timestamp"].to_numpy()) for table in tables])
        whole = whole.take(pyarrow.array(numpy.argsort(reached, kind="stable")))
    whole, left = _without(whole, task.waiting.get(topic, ()))
    if order == BY_TIME:  # in another, what a cache passes on may be other records
        _refuse_waiting(topic, task, left)
    for start in range(0, whole.num_rows, _BATCH):
        rows = whole.slice(start, _BATCH).combine_chunks()
        count = rows.num_rows
        offsets = numpy.arange(start, start + count, dtype=numpy.int64)
        zeros, partitions = numpy.zeros(count, numpy.int32), numpy.full(count, task.partition, numpy.int32)
        columns = [rows[name].combine_chunks() if rows[name].num_chunks != 1 else rows[name].chunk(0) for name in _TEXTS]
        yield frames.Batch([topic], zeros, partitions, offsets, rows["timestamp"].to_numpy(), *columns)


_TEXTS = ("key", "value", "headers")


def _without(whole: pyarrow.Table, records: Sequence[Key]) -> tuple[pyarrow.Table, list[Key]]:
    """Leave out the records that wait, of equal ones the last; return those that are not there too."""
    import numpy
    import pyarrow

    waiting = list(records)
    if not waiting:
        return whole, []
    wanted: dict[Key, int] = {}
    for key in waiting:
        wanted[key] = wanted.get(key, 0) + 1
    keep = numpy.ones(whole.num_rows, bool)
    keys, values, times = (whole[name].to_pylist() for name in ("key", "value", "timestamp"))
    for row in range(whole.num_rows - 1, -1, -1):
        key = (keys[row], values[row], times[row])
        if wanted.get(key):
            keep[row] = False
            wanted[key] -= 1
            waiting.remove(key)
            if not waiting:
                break
    return whole.filter(pyarrow.array(keep)), waiting


def _refuse_waiting(topic: str, task: ProgramTask, left: Sequence[Key]) -> None:
    if left:
        raise Refused(
            f"{topic}:{task.partition} holds {len(left)} records not processed by the application, such as of the key {left[0][0]!r}, which"
            " the program does not write again: they would count twice",
            hint="start the application until it has caught up, and stop it again",
        )


class _Written:
    """What a task writes: to changelogs, kept; to repartition topics, into files."""

    def __init__(self, run: Run, task: ProgramTask, order: str) -> None:
        self._run, self._task, self._order = run, task, order
        self._kept: dict[str, list[pyarrow.Table]] = {store.changelog: [] for store in task.stores}
        self._files: dict[tuple[str, int], tuple[Any, Path, Path]] = {}

    def take(self, batches: Iterable[frames.Batch]) -> None:
        for batch in batches:
            for number, topic in enumerate(batch.topics):
                if topic in self._kept or topic in self._task.passes_on:
                    self._take(topic, batch, batch.topic == number)

    def _take(self, topic: str, batch: frames.Batch, chosen: Any) -> None:
        import numpy
        import pyarrow

        mask = pyarrow.array(chosen)
        found = {"partition": pyarrow.array(batch.partition), "timestamp": pyarrow.array(batch.timestamp)}
        table = pyarrow.table({**found, "key": batch.key, "value": batch.value, "headers": batch.headers}).filter(mask)
        if topic in self._kept:
            self._kept[topic].append(table)
            return
        numbers = table["partition"].to_numpy()
        for partition in numpy.unique(numbers).tolist():
            self._pass_on(topic, partition, table.filter(pyarrow.array(numbers == partition)).drop_columns(["partition"]))

    def _pass_on(self, topic: str, partition: int, table: pyarrow.Table) -> None:
        from pyarrow import ipc

        if (topic, partition) not in self._files:
            folder = self._run.repartitioned(topic, partition, self._order)
            folder.mkdir(parents=True, exist_ok=True)
            target = folder / f"{self._task.subtopology:05}-{self._task.partition:05}.arrow"
            part = target.with_name(f".{target.name}.{os.getpid()}")
            self._files[topic, partition] = ipc.new_file(str(part), table.schema), part, target
        self._files[topic, partition][0].write_table(table)

    def close(self) -> None:
        for writer, part, target in self._files.values():
            writer.close()
            part.replace(target)

    def of(self, store: StoreTask) -> pyarrow.Table:
        """Return the last row of each key: key, value, timestamp (-1: the producer's), headers (empty: none)."""
        import pyarrow
        from pyarrow import compute

        empty = _held_schema().empty_table()
        found = pyarrow.concat_tables([empty, *(table.select(empty.column_names) for table in self._kept[store.changelog])])
        return found.set_column(3, "headers", compute.fill_null(found["headers"], b""))


def _staged(run: Run, store: StoreTask, task: ProgramTask, written: _Written, read: Read) -> dict[str, Any]:
    """Stage what the changelog lacks; return the counts.

    Where the program gives no timestamp, as suppressions do not, that of a record is when it was sent, and is not compared.
    """
    import pyarrow
    from pyarrow import compute

    wanted = written.of(store)
    timed = not compute.any(compute.less(wanted["timestamp"], 0)).as_py()
    if not timed:
        wanted = wanted.set_column(2, "timestamp", pyarrow.array([int(run.settings["wall_clock"])] * len(wanted), pyarrow.int64()))
    held, rows = [_held_schema().empty_table()], 0
    for table in _rows_held(store, task.partition, read):
        held.append(table)
        rows += held[-1].num_rows
        if rows > GATHERED_RECORDS or sum(table.nbytes for table in held) > GATHERED_BYTES:
            held = [newest_of_each_key(pyarrow.concat_tables(held).combine_chunks())]
            rows = 0
    found = newest_of_each_key(pyarrow.concat_tables(held).combine_chunks())
    wanted, expired = _without_expired(wanted, found, store)
    rows_to_stage = stage_rows(wanted, found, task.partition, timed=timed)
    sums = pyarrow.Table.from_batches([*write_file(rows_to_stage, store.stage)] or [_no_sums()]).to_pylist()
    return {
        "sums": sums,
        "headers": any(compute.any(compute.greater(compute.binary_length(table["headers"]), 0)).as_py() for table in (wanted, found)),
        "keys": wanted.num_rows - wanted["value"].null_count,
        "held": found.num_rows - found["value"].null_count,
        "expired": expired,
    }


def _lasting(wanted: pyarrow.Table, store: StoreTask) -> pyarrow.Table:
    """Return the rows that are values, of windows those that have not expired."""
    from pyarrow import compute

    return _without_expired(wanted.filter(compute.is_valid(wanted["value"])), _held_schema().empty_table(), store)[0]


def _rows_held(store: StoreTask, partition: int, read: Read) -> Iterator[pyarrow.Table]:
    if store.snapshot is not None:
        yield _of_snapshot(store.snapshot, partition)
    elif store.held is not None:
        for columns in read(store.held):
            yield _held(columns)


def _of_snapshot(folder: str, partition: int) -> pyarrow.Table:
    import pyarrow
    from pyarrow import compute, dataset

    rows = dataset.dataset(folder, format="parquet").to_table(
        columns=["key", "value", "timestamp", "headers"], filter=compute.field("partition") == partition
    )
    lists = rows["headers"].to_pylist()
    headers = [frames.encoded_headers([(one["key"], one["value"]) for one in each or ()]) for each in lists]
    columns = [rows["key"], rows["value"], rows["timestamp"], pyarrow.array(headers, pyarrow.binary())]
    return pyarrow.table(columns, names=_held_schema().names).cast(_held_schema())


def _without_expired(wanted: pyarrow.Table, found: pyarrow.Table, store: StoreTask) -> tuple[pyarrow.Table, int]:
    """Leave out windows that have expired, unless the changelog still has them: nothing deletes them there, and time did elsewhere."""
    import numpy
    import pyarrow
    from pyarrow import compute

    if not store.time_at or not wanted.num_rows:
        return wanted, 0
    keys = wanted["key"].combine_chunks()
    texts = b"".join(key[store.time_at : store.time_at + 8] for key in keys.to_pylist())
    times = numpy.frombuffer(texts, ">i8")
    gone = times < times.max() - store.expires_ms
    gone &= ~compute.is_in(keys, value_set=found["key"].combine_chunks()).to_numpy(zero_copy_only=False)
    return (wanted.filter(pyarrow.array(~gone)) if gone.any() else wanted), int(gone.sum())


def _no_sums() -> pyarrow.RecordBatch:
    import pyarrow

    return pyarrow.RecordBatch.from_pydict({name: pyarrow.array([], pyarrow.int64()) for name in _SUMS})


def _held_schema() -> pyarrow.Schema:
    import pyarrow

    binary = pyarrow.binary()
    return pyarrow.schema([("key", binary), ("value", binary), ("timestamp", pyarrow.int64()), ("headers", binary)])


def _held(records: RecordColumns) -> pyarrow.Table:
    import pyarrow

    columns = records.where(records.key_lengths >= 0) if (records.key_lengths < 0).any() else records
    found = [columns.keys(), columns.values(), pyarrow.array(columns.timestamps), _headers(columns).fill_null(b"")]
    return pyarrow.table(found, schema=_held_schema())

"""Jobs whose tasks run the program on other machines: what they write into files there travels as rows.

Files for the tasks behind them go through Spark's shuffles, those of a stage into the stage, and what was seen of the input to this
machine. A task that is lost with its worker runs again, and its rows count once.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kops.core.errors import KopsError, OperationFailed
from kops.spark.driver.failures import explained
from kops.spark.frames import expression
from kops.spark.programs.jobs import Give, Jobs, as_error
from kops.spark.programs.models import REPARTITIONED, ProgramTask, Run
from kops.spark.programs.worker_program import moved_here
from kops.spark.reading.batch_source import BatchSource, reader
from kops.spark.staging.difference import HEADER_COLUMNS, HEADER_TYPES
from kops.spark.staging.stage import SCHEMA, staged_of, sums_of, write_parquet

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import Column, DataFrame

_SCHEMA = "kind string, owner string, partition int, path string, at bigint, content binary"
"""A part of a file: its path in the folder of a run, where the part begins, and whose it is: a topic and partition, or a stage."""
_FACTS, _FAILURE, _SEEN, _STAGE, _TASK = "facts", "failure", "seen", "stage", "task"
_STAGES, _REPORTS = "stages", "reports"
_PART_BYTES = 4 << 20
_ROWS_AT_ONCE = "spark.sql.execution.arrow.maxRecordsPerBatch"
_PARTS_AT_ONCE = "16"
"""So that a Python worker is given 64 MB at once."""
_COLLIDE = 30
"""How many numbers are tried for each task, to find one whose hash is that of no other task."""


class ClusterJobs(Jobs):
    """A context manager: its rows are kept on the executors' disks until it ends."""

    def __init__(self, batches: BatchSource, run: Run) -> None:
        super().__init__(batches, run)
        self._kept: list[DataFrame] = []
        session = batches.session
        self._rows_at_once = session.conf.get(_ROWS_AT_ONCE) or "20000"
        session.conf.set(_ROWS_AT_ONCE, _PARTS_AT_ONCE)

    def close(self) -> None:
        for frame in self._kept:
            frame.unpersist()
        self.batches.session.conf.set(_ROWS_AT_ONCE, self._rows_at_once)

    def facts(self, what: str, items: Sequence[Any], give: Give, stages: Sequence[str] = ()) -> list[dict[str, Any]]:
        from pyspark import StorageLevel

        with explained(what):
            made = self._placed(items).mapInArrow(_Tasks(self.run, items, give, stages, dict(self.batches.settings)), _SCHEMA)
            made = made.persist(StorageLevel.DISK_ONLY)
            self._kept.append(made)
            rows = made.where(f"kind in ('{_FACTS}', '{_FAILURE}', '{_SEEN}')").collect()
            failed = next((json.loads(row.content) for row in rows if row.kind == _FAILURE), None)
            if failed is not None:
                raise as_error(failed)
            self._note_seen(row for row in rows if row.kind == _SEEN)
            facts = [json.loads(row.content) for row in rows if row.kind == _FACTS]
            for number, path in enumerate(stages):
                write_parquet(_rows_of_stage(made, number), path)
                name = next(store.name for item in items for store in item.stores if store.stage == path)
                self._check(path, [sums for each in facts for sums in each["stores"][name]["sums"]])
        return facts

    def _check(self, path: str, sums: Sequence[Mapping[str, Any]]) -> None:
        """Compare a stage with what its tasks counted: where a worker was lost in between, that of a second run is in it.

        :raises OperationFailed: when they differ
        """
        from pyspark.sql import Row

        if staged_of(sums_of(self.batches.session, path, headers=True)) != staged_of([Row(**each) for each in sums]):
            raise OperationFailed(
                "a worker of Spark was lost, and the program gave other results when its tasks ran again",
                hint="nothing was written; run it again",
            )

    def _placed(self, items: Sequence[Any]) -> DataFrame:
        """Return the numbers of tasks, each in a partition of its own, with the files that it reads."""
        session, count = self.batches.session, max(1, len(items))
        nothing = [f"cast(null as {kind}) as {name}" for name, kind in (("path", "string"), ("at", "bigint"), ("content", "binary"))]
        tasks = session.range(0, len(items), 1, count).selectExpr(f"'{_TASK}' as kind", "cast(id as int) as task", *nothing)
        read = sorted({topic for item in items if isinstance(item, ProgramTask) for topic in item.repartition})
        if not read or not self._kept:
            return tasks
        named = ", ".join(f"'{topic}'" for topic in read)
        wanted = f"kind = '{REPARTITIONED}' and owner in ({named}) and partition < {len(items)}"
        for made in self._kept:
            tasks = tasks.unionByName(made.where(wanted).selectExpr("kind", "partition as task", "path", "at", "content"))
        return tasks.repartition(count, self._places(count))

    def _places(self, count: int) -> Column:
        """Return for each task a number that Spark's hash puts into a partition of its own."""
        session = self.batches.session
        tried = session.range(0, _COLLIDE * count + 100, 1, 1).selectExpr("id", f"pmod(hash(id), {count}) as place").collect()
        by_place = {row.place: row.id for row in tried}
        numbers = ", ".join(f"{by_place.get(place, place)}L" for place in range(count))
        return expression(f"element_at(array({numbers}), task + 1)")

    def _note_seen(self, rows: Iterable[Any]) -> None:
        if self.batches.progress_folder is None:
            return
        for row in rows:
            file = Path(self.batches.progress_folder, row.path)
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(row.content)


class _Tasks:
    """What runs in Spark's tasks; one of these may have several of the program's."""

    def __init__(self, run: Run, items: Sequence[Any], give: Give, stages: Sequence[str], settings: Mapping[str, str]) -> None:
        self._run, self._items, self._give, self._stages, self._settings = run, items, give, stages, settings

    def __call__(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        try:
            run = moved_here(self._run)
        except KopsError as error:
            yield _row(_FAILURE, _as_json(error))
            return
        _clear(run)
        numbers = []
        for batch in batches:
            for row in batch.select(["kind", "task"]).to_pylist():
                if row["kind"] == _TASK:
                    numbers.append(row["task"])
            _put(batch, run.folder)
        given = _files(run.folder / REPARTITIONED)
        for number in numbers:
            yield from self._ran(run, number, given)
        _clear(run)

    def _ran(self, run: Run, number: int, given: Collection[Path]) -> Iterator[pyarrow.RecordBatch]:
        item, reports = self._items[number], run.folder / _REPORTS
        for folder in (reports, *(self._stage(run, stage) for stage in self._stages)):
            folder.mkdir(parents=True)
        if isinstance(item, ProgramTask) and self._stages:
            item = replace(item, stores=tuple(replace(store, stage=str(self._stage(run, store.stage))) for store in item.stores))
        try:
            found = self._give(run, item, reader(self._settings, str(reports), ""))
        except KopsError as error:
            yield _row(_FAILURE, _as_json(error))
            return
        yield _row(_FACTS, found["facts"][0].as_py().encode())
        for file in _files(reports / _SEEN):
            yield _row(_SEEN, file.read_bytes(), path=str(file.relative_to(reports)))
        shutil.rmtree(reports)
        for stage in map(str, range(len(self._stages))):
            for file in _files(run.folder / _STAGES / stage):
                yield from _rows(run, file, _STAGE, stage)
        shutil.rmtree(run.folder / _STAGES, ignore_errors=True)
        for file in _files(run.folder / REPARTITIONED) - {*given}:
            *_, topic, partition, _ = file.parts
            yield from _rows(run, file, REPARTITIONED, topic, int(partition))
            file.unlink()

    def _stage(self, run: Run, stage: str) -> Path:
        return run.folder / _STAGES / str(self._stages.index(stage))


def _as_json(error: KopsError) -> bytes:
    return json.dumps(error.as_json()).encode()


def _clear(run: Run) -> None:
    """Delete what tasks left in the folder of this worker, where one was stopped."""
    for name in (REPARTITIONED, _STAGES, _REPORTS):
        shutil.rmtree(run.folder / name, ignore_errors=True)


def _files(folder: Path) -> set[Path]:
    return {file for file in folder.rglob("*") if file.is_file()}


def _rows(run: Run, file: Path, kind: str, owner: str, partition: int | None = None) -> Iterator[pyarrow.RecordBatch]:
    at = 0
    with file.open("rb") as content:
        while part := content.read(_PART_BYTES):
            yield _row(kind, part, owner=owner, partition=partition, path=str(file.relative_to(run.folder)), at=at)
            at += len(part)


def _row(kind: str, content: bytes, *, owner: str = "", partition: int | None = None, path: str = "", at: int = 0) -> pyarrow.RecordBatch:
    import pyarrow

    columns = {
        "kind": pyarrow.array([kind]),
        "owner": pyarrow.array([owner]),
        "partition": pyarrow.array([partition], pyarrow.int32()),
        "path": pyarrow.array([path]),
        "at": pyarrow.array([at], pyarrow.int64()),
        "content": pyarrow.array([content], pyarrow.binary()),
    }
    return pyarrow.RecordBatch.from_pydict(columns)


def _put(batch: pyarrow.RecordBatch, folder: Path) -> None:
    """Write parts of files where they belong; they come in any order."""
    parts = batch.filter(batch.column("content").is_valid())
    for path, at, content in zip(*(parts.column(name) for name in ("path", "at", "content")), strict=True):
        file = folder / path.as_py()
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("r+b" if file.exists() else "wb") as out:
            out.seek(at.as_py())
            out.write(content.as_buffer())


def _of_stage(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """Return rows of a file of a stage as Spark writes them: with headers, if only null."""
    import pyarrow

    headers = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))
    columns = {name: batch.column(name) for name in batch.schema.names}
    columns["action"] = columns["action"].cast(pyarrow.string())
    return pyarrow.RecordBatch.from_pydict({**{name: pyarrow.nulls(batch.num_rows, headers) for name in HEADER_COLUMNS}, **columns})


def _rows_of_stage(made: DataFrame, number: int) -> DataFrame:
    """Return the rows of a stage from the parts of its files, which are in their order here."""

    def rows(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        from pyarrow import parquet

        parts = ((path.as_py(), content) for batch in batches for path, content in zip(batch["path"], batch["content"], strict=True))
        ahead = next(parts, None)
        while ahead is not None:
            path = ahead[0]
            with tempfile.TemporaryFile() as file:
                while ahead is not None and ahead[0] == path:
                    file.write(ahead[1].as_buffer())
                    ahead = next(parts, None)
                with parquet.ParquetFile(file) as found:
                    yield from map(_of_stage, found.iter_batches())

    return made.where(f"kind = '{_STAGE}' and owner = '{number}'").select("path", "content").mapInArrow(rows, f"{HEADER_TYPES}, {SCHEMA}")

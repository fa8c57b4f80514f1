"""Jobs whose tasks run the program on other machines: the files that they write there travel as rows.

Files for the next sub-topologies go through Spark's shuffles, staged files into the stage, and reports about the input to this machine.
Archived records and snapshots go to the tasks in the same way. A task that is lost with its worker runs again, and its rows count once.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from kops.core.errors import KopsError, OperationFailed
from kops.spark.driver.failures import explained
from kops.spark.frames import expression, numbers_of_tasks
from kops.spark.programs.jobs import Give, Jobs, archived_rows, as_error, write_archived
from kops.spark.programs.models import ARCHIVED, REPARTITIONED, ProgramTask, Run
from kops.spark.programs.worker_program import moved_here
from kops.spark.reading.archive import in_tasks
from kops.spark.reading.batch_source import BatchSource, reader
from kops.spark.staging.difference import HEADER_COLUMNS, HEADER_TYPES
from kops.spark.staging.stage import SCHEMA, staged_of, sums_of, write_parquet

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

    from kops.spark.reading.archive import ArchivedTopic
    from kops.spark.reading.ranges import TopicRange

_SCHEMA = "kind string, owner string, partition int, path string, at bigint, content binary"
"""A part of a file: its path in the folder of a run, where the part begins, and whose it is: a topic and partition, or a stage."""
_FACTS, _FAILURE, _SEEN, _SENT, _RECEIVED = _REPORTED = "facts", "failure", "seen", "sent", "received"
_STAGE, _COPY, _TASK = "stage", "copy", "task"
_STAGES, _COPIES, _REPORTS = "stages", "copies", "reports"
_PART_BYTES = 4 << 20
_ROWS_AT_ONCE = "spark.sql.execution.arrow.maxRecordsPerBatch"
_PARTS_AT_ONCE = "16"
"""Parts of files: a Python worker is given 64 MB at once."""


class ClusterJobs(Jobs):
    """The rows stay on the executors' disks until these jobs are closed."""

    def __init__(self, batches: BatchSource, run: Run) -> None:
        super().__init__(batches, run)
        self._kept: list[DataFrame] = []
        self._archived: dict[str, DataFrame] = {}
        self._sent = SentFiles()
        self._numbers: dict[int, list[int]] = {}
        self.copies: list[str] = []
        """Folders that tasks have read: a task knows each by its number here."""
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
            placed = self._placed(items, stages)
            made = placed.mapInArrow(_Tasks(self, items, give, stages), _SCHEMA)
            made = made.persist(StorageLevel.DISK_ONLY)  # for the stage, and for later jobs: the program must not run again for each
            self._kept.append(made)
            rows = made.where(f"kind in {_REPORTED}").collect()
            failed = next((json.loads(row.content) for row in rows if row.kind == _FAILURE), None)
            if failed is not None:
                raise as_error(failed)
            self._note_seen(row for row in rows if row.kind == _SEEN)
            self._compare(items, _merged(rows, _RECEIVED))
            self._sent.add(made, items, _merged(rows, _SENT))
            facts = [json.loads(row.content) for row in rows if row.kind == _FACTS]
            for number, path in enumerate(stages):
                write_parquet(_rows_of_stage(made, number), path)
                name = next(store.name for item in items for store in item.stores if store.stage == path)
                self._check(path, [sums for each in facts for sums in each["stores"][name]["sums"]])
        return facts

    def keep_archived(self, archived: ArchivedTopic, wanted: TopicRange) -> dict[int, int]:
        rows, ends = archived_rows(self.batches.session, archived, wanted)
        if rows is not None:
            self._archived[wanted.topic] = rows.mapInArrow(_Archived(wanted.topic), _SCHEMA)
        return ends

    def _check(self, path: str, sums: Sequence[Mapping[str, Any]]) -> None:
        """Compare a stage with the counts of its tasks: if a worker was lost in between, it has rows of their second run.

        :raises OperationFailed: when they differ
        """
        from pyspark.sql import Row

        if staged_of(sums_of(self.batches.session, path, headers=True)) != staged_of([Row(**each) for each in sums]):
            raise _lost()

    def _compare(self, items: Sequence[Any], received: Mapping[str, Sequence[int]]) -> None:
        """Compare what tasks received with what earlier tasks reported as sent: these may have run again since.

        :raises OperationFailed: when they differ
        """
        places = {(topic, item.partition) for item in items if isinstance(item, ProgramTask) for topic in item.repartition}
        if self._sent.digests(places) != received:
            raise _lost()

    def _placed(self, items: Sequence[Any], stages: Sequence[str]) -> DataFrame:
        """Return the numbers of tasks, one per partition, each with the files that it reads."""
        session, count = self.batches.session, max(1, len(items))
        nothing = [f"cast(null as {kind}) as {name}" for name, kind in (("path", "string"), ("at", "bigint"), ("content", "binary"))]
        placed = session.range(0, len(items), 1, count).selectExpr(f"'{_TASK}' as kind", "cast(id as int) as task", *nothing)
        read = list(self._read([item for item in items if isinstance(item, ProgramTask)], stages))
        if not read:
            return placed
        for frame in read:
            wanted = frame.where(f"partition < {count}").selectExpr("kind", "partition as task", "path", "at", "content")
            placed = placed.unionByName(wanted)
        if count not in self._numbers:
            self._numbers[count] = numbers_of_tasks(session, count)
        numbers = ", ".join(f"{number}L" for number in self._numbers[count])
        return placed.repartition(count, expression(f"element_at(array({numbers}), task + 1)"))

    def _read(self, tasks: Sequence[ProgramTask], stages: Sequence[str]) -> Iterator[DataFrame]:
        """Yield the files that tasks read, as rows."""
        for made, topics in self._sent.of({topic for task in tasks for topic in task.repartition}):
            names = ", ".join(f"'{topic}'" for topic in topics)
            yield made.where(f"kind = '{REPARTITIONED}' and owner in ({names})")
        for topic in sorted({topic for task in tasks for topic in task.archived}):
            yield self._archived[topic]
        for path in sorted({path for task in tasks for path in _copied(task, stages)}):
            if path not in self.copies:
                self.copies.append(path)
            rows = in_tasks(self.batches.session.read.parquet(path), range(len(tasks)))
            yield rows.mapInArrow(_Copied(self.copies.index(path)), _SCHEMA)

    def _note_seen(self, rows: Iterable[Any]) -> None:
        if self.batches.progress_folder is None:
            return
        for row in rows:
            file = Path(self.batches.progress_folder, row.path)
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(row.content)


class SentFiles:
    """The files that tasks sent to those behind them, by the job whose rows they are.

    A sub-topology that takes answers of foreign-key joins runs several times, and sends files of the same paths each time. Those of its
    last run count, which has read more.
    """

    def __init__(self) -> None:
        self._jobs: list[tuple[DataFrame, Mapping[str, Sequence[int]]]] = []
        self._last: dict[tuple[str, int | None], int] = {}

    def add(self, made: DataFrame, items: Sequence[Any], digests: Mapping[str, Sequence[int]]) -> None:
        """Note what the tasks of a job sent.

        :param made: the job's rows
        :param digests: of the files by their paths
        """
        for item in items:
            topics, writer = (item.passes_on, item.subtopology) if isinstance(item, ProgramTask) else ((item.topic,), None)
            self._last |= {(topic, writer): len(self._jobs) for topic in topics}
        self._jobs.append((made, digests))

    def of(self, topics: Collection[str]) -> Iterator[tuple[DataFrame, list[str]]]:
        """Yield the rows of each job that sent what counts of some topics, with those topics."""
        for job, (made, _) in enumerate(self._jobs):
            if found := sorted(self._topics(job) & {*topics}):
                yield made, found

    def digests(self, places: Collection[tuple[str, int]]) -> dict[str, Sequence[int]]:
        """Return those of the files that count of some partitions."""
        return {
            path: digest
            for job, (_, digests) in enumerate(self._jobs)
            for path, digest in digests.items()
            if _place(path) in places and _place(path)[0] in self._topics(job)
        }

    def _topics(self, job: int) -> set[str]:
        return {topic for (topic, _), last in self._last.items() if last == job}


def _copied(task: ProgramTask, stages: Sequence[str]) -> set[str]:
    """Return the folders of snapshots, and of stages that other tasks wrote, from which a task reads its partition."""
    rows = {path for store in task.stores for path in (store.base, store.snapshot) if path is not None}
    return rows | {*task.restored.values()} | {store.stage for store in task.stores if store.stage and store.stage not in stages}


def _lost() -> OperationFailed:
    return OperationFailed(
        "a worker of Spark was lost, and the program gave other results when its tasks ran again", hint="nothing was written; run it again"
    )


def _merged(rows: Iterable[Any], kind: str) -> dict[str, Sequence[int]]:
    return {path: digest for row in rows if row.kind == kind for path, digest in json.loads(row.content).items()}


def _place(path: str) -> tuple[str, int]:
    """Return the topic and the partition of a file, by its path in the folder of a run."""
    *_, topic, partition, _ = Path(path).parts
    return topic, int(partition)


class _Tasks:
    """Runs in Spark's tasks, of which one may have several tasks of the program."""

    def __init__(self, jobs: ClusterJobs, items: Sequence[Any], give: Give, stages: Sequence[str]) -> None:
        self._run, self._items, self._give, self._settings = jobs.run, items, give, dict(jobs.batches.settings)
        self._stages, self._copies = [*stages], [*jobs.copies]

    def __call__(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        try:
            yield from self._made(batches)
        except KopsError as error:  # raised, it would make Spark run the task again
            yield _row(_FAILURE, json.dumps(error.as_json()).encode())

    def _made(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        run = moved_here(self._run)
        _clear(run)
        numbers = []
        for batch in batches:
            for row in batch.select(["kind", "task"]).to_pylist():
                if row["kind"] == _TASK:
                    numbers.append(row["task"])
            _put(batch, run.folder)
        given = _files(run.folder / REPARTITIONED)
        yield _row(_RECEIVED, _digests(run, given))
        for number in numbers:
            yield from self._ran(run, number, given)
        _clear(run)

    def _ran(self, run: Run, number: int, given: Collection[Path]) -> Iterator[pyarrow.RecordBatch]:
        item, reports = self._items[number], run.folder / _REPORTS
        reports.mkdir()
        found = self._give(run, self._here(run, item), reader(self._settings, str(reports), ""))
        yield _row(_FACTS, found["facts"][0].as_py().encode())
        for file in _files(reports / _SEEN):
            yield _row(_SEEN, file.read_bytes(), path=str(file.relative_to(reports)))
        for stage in map(str, range(len(self._stages))):
            for file in _files(run.folder / _STAGES / stage):
                yield from _rows(file, _STAGE, stage, number, str(file.relative_to(run.folder)))
        sent = _files(run.folder / REPARTITIONED) - {*given}
        yield _row(_SENT, _digests(run, sent))
        for file in sent:
            path = str(file.relative_to(run.folder))
            yield from _rows(file, REPARTITIONED, *_place(path), path)
            file.unlink()
        _clear(run, _REPORTS, _STAGES)

    def _here(self, run: Run, item: Any) -> Any:
        """Return a task with the paths of its folders on this machine."""
        if not isinstance(item, ProgramTask):
            return item

        def moved(path: str | None) -> str | None:
            if not path:
                return path
            kind, paths = (_STAGES, self._stages) if path in self._stages else (_COPIES, self._copies)
            folder = run.folder / kind / str(paths.index(path))
            folder.mkdir(parents=True, exist_ok=True)
            return str(folder)

        stores = (
            replace(store, base=moved(store.base), snapshot=moved(store.snapshot), stage=moved(store.stage) or "") for store in item.stores
        )
        return replace(item, stores=tuple(stores), restored={name: moved(path) or "" for name, path in item.restored.items()})


class _Archived:
    """Writes the archived records of a partition into a file."""

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def __call__(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        with tempfile.TemporaryDirectory() as folder:
            partition = write_archived(batches, lambda _: Path(folder, "records"))
            if partition is not None:
                path = f"{ARCHIVED}/{self._topic}/{partition}.arrow"
                yield from _rows(Path(folder, "records"), ARCHIVED, self._topic, partition, path)


class _Copied:
    """Writes the rows of a partition in a folder of Parquet into a file."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __call__(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        from pyarrow import parquet

        writer, partition = None, 0
        with tempfile.NamedTemporaryFile() as file:
            for batch in batches:
                if batch.num_rows:
                    writer = writer or parquet.ParquetWriter(file.name, batch.schema)
                    partition = batch.column("partition")[0].as_py()
                    writer.write_batch(batch)
            if writer is not None:
                writer.close()
                path = f"{_COPIES}/{self._number}/part-{partition:05}.parquet"
                yield from _rows(Path(file.name), _COPY, str(self._number), partition, path)


def _digests(run: Run, files: Iterable[Path]) -> bytes:
    return json.dumps({str(file.relative_to(run.folder)): _digest(file) for file in files}).encode()


def _digest(file: Path) -> list[int]:
    """Return the number of records in a file, and a checksum of each column, whatever the batches are."""
    from pyarrow import ipc, memory_map

    count, sums = 0, dict[str, int]()
    with memory_map(str(file)) as mapped, ipc.open_file(mapped) as content:
        for batch in map(content.get_batch, range(content.num_record_batches)):
            count += batch.num_rows
            parts = {"timestamp": batch.column("timestamp").to_numpy()}
            for name in ("key", "value", "headers"):
                parts |= {f"{name} lengths": _lengths(batch.column(name)), name: _content(batch.column(name))}
            sums |= {name: crc32(part, sums.get(name, 0)) for name, part in parts.items()}
    return [count, *sums.values()]


def _lengths(texts: pyarrow.Array) -> Any:
    from pyarrow import compute

    return compute.fill_null(compute.binary_length(texts), -1).to_numpy()


def _content(texts: pyarrow.Array) -> Any:
    import numpy

    _, offsets, content = texts.buffers()
    ends = numpy.frombuffer(offsets, numpy.int32)[texts.offset : texts.offset + len(texts) + 1]
    return memoryview(content)[ends[0] : ends[-1]] if len(texts) and content is not None else b""


def _clear(run: Run, *names: str) -> None:
    """Delete the files of earlier tasks in this worker's folder."""
    for name in names or (REPARTITIONED, ARCHIVED, _STAGES, _COPIES, _REPORTS):
        shutil.rmtree(run.folder / name, ignore_errors=True)


def _files(folder: Path) -> set[Path]:
    return {file for file in folder.rglob("*") if file.is_file()}


def _rows(file: Path, kind: str, owner: str, partition: int, path: str) -> Iterator[pyarrow.RecordBatch]:
    """Yield the parts of a file.

    :param path: where it is to be, in the folder of a run
    """
    at = 0
    with file.open("rb") as content:
        while part := content.read(_PART_BYTES):
            yield _row(kind, part, owner=owner, partition=partition, path=path, at=at)
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

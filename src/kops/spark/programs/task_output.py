"""The output of a program's task: changelog records are kept, those of repartition topics go into files for the next sub-topologies."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kops.spark.programs.changelogs import Changelogs
from kops.spark.programs.rows import rows_schema, snapshot_rows

if TYPE_CHECKING:
    import pyarrow

    from kops.formats import runner_frames as frames
    from kops.spark.programs.models import ProgramTask, Run, StoreTask
    from kops.spark.programs.spill import Rows


class PartitionFiles:
    """A file per partition of a topic, complete or absent: timestamp, key, value, headers.

    :param writer: sub-topology and partition of the task that writes, by which files of a partition are ordered
    """

    def __init__(self, run: Run, order: str, *writer: int) -> None:
        self._run, self._order, self._name = run, order, "-".join(f"{each:05}" for each in writer)
        self._files: dict[tuple[str, int], tuple[Any, Path, Path]] = {}

    def add(self, topic: str, numbers: Any, table: pyarrow.Table) -> None:
        """Add records.

        :param numbers: of their partitions, as numpy has them
        """
        import numpy
        import pyarrow

        for partition in numpy.unique(numbers).tolist():
            self._writer(topic, partition, table.schema).write_table(table.filter(pyarrow.array(numbers == partition)))

    def _writer(self, topic: str, partition: int, schema: pyarrow.Schema) -> Any:
        from pyarrow import ipc

        if (topic, partition) not in self._files:
            folder = self._run.repartitioned(topic, partition, self._order)
            folder.mkdir(parents=True, exist_ok=True)
            target = folder / f"{self._name}.arrow"
            part = target.with_name(f".{target.name}.{os.getpid()}")
            self._files[topic, partition] = ipc.new_file(str(part), schema), part, target
        return self._files[topic, partition][0]

    def close(self, topics: Iterable[str] = ()) -> None:
        """Complete the files.

        :param topics: of which the writer's files of an earlier run go, too where this one has no records
        """
        for topic in topics:
            for file in self._run.repartitioned(topic, 0, self._order).parent.glob(f"*/{self._name}.arrow"):
                file.unlink()
        for writer, part, target in self._files.values():
            writer.close()
            part.replace(target)

    def discard(self) -> None:
        for writer, part, _ in self._files.values():
            writer.close()
            part.unlink()


class TaskOutput:
    """The output of one run of a task.

    :param order: of the run; None: records for repartition topics are kept in ``passed``, since no other task reads them
    """

    def __init__(self, run: Run, task: ProgramTask, order: str | None) -> None:
        self.passed: dict[str, list[pyarrow.Table]] = {}
        bases = {store.changelog: store.base for store in task.stores if store.base is not None}
        self._kept, self._changelogs = {store.changelog for store in task.stores}, Changelogs(run.folder, task.stores, repeating=bases)
        self._passes_on = task.passes_on
        self._files = None if order is None else PartitionFiles(run, order, task.subtopology, task.partition)
        for changelog, base in bases.items():
            for table in snapshot_rows(base, task.partition):
                self._changelogs.add(changelog, table)

    def take(self, batch: frames.Batch) -> None:
        for number, topic in enumerate(batch.topics):
            if topic in self._kept or topic in self._passes_on:
                self._take(topic, batch, batch.topic == number)

    def _take(self, topic: str, batch: frames.Batch, chosen: Any) -> None:
        import pyarrow
        from pyarrow import compute

        mask = pyarrow.array(chosen)
        found = {"partition": pyarrow.array(batch.partition), "timestamp": pyarrow.array(batch.timestamp)}
        table = pyarrow.table({**found, "key": batch.key, "value": batch.value, "headers": batch.headers}).filter(mask)
        if topic in self._kept:
            rows = table.select(rows_schema().names)
            self._changelogs.add(topic, rows.set_column(3, "headers", compute.fill_null(rows["headers"], b"")))
            return
        if self._files is None:
            self.passed.setdefault(topic, []).append(table)
        else:
            self._files.add(topic, table["partition"].to_numpy(), table.drop_columns(["partition"]))

    def close(self) -> None:
        if self._files is not None:
            self._files.close(self._passes_on)

    def discard(self) -> None:
        """Delete the files for other tasks: the run failed."""
        if self._files is not None:
            self._files.discard()

    def of(self, store: StoreTask) -> Rows:
        """Return the last row of each key, with what the store started from; of versioned stores the versions."""
        return self._changelogs.of(store.changelog)

    def timed(self, store: StoreTask) -> bool:
        """Whether the program gives each row a timestamp (otherwise -1: the producer's), as suppressions do not."""
        return self._changelogs.timed(store.changelog)

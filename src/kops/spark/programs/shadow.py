"""The job that compares changelogs of a shadow with those of its application, and stages what the latter lack."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kops.spark.driver.failures import explained
from kops.spark.programs.jobs import StoreCounts, counts_of
from kops.spark.programs.models import StoreTask
from kops.spark.programs.orders import DifferingKeys
from kops.spark.programs.stores import compared, newest, rows_of
from kops.spark.programs.tasks import SCHEMA
from kops.spark.staging.stage import make_folder

if TYPE_CHECKING:
    import pyarrow

    from kops.spark.reading.batch_source import BatchSource, Piece, Read


@dataclass(frozen=True)
class ShadowTask:
    """One partition of a store.

    :param written: what the shadow's changelog holds; None: nothing
    :param timed: its timestamps are those of its input's records, and are compared
    """

    store: StoreTask
    partition: int
    written: Piece | None
    timed: bool


def compare_with_shadow(batches: BatchSource, tasks: Sequence[ShadowTask]) -> dict[str, StoreCounts]:
    """Compare all partitions of some stores."""
    for stage in {task.store.stage for task in tasks}:
        make_folder(stage)

    def give(number: int, read: Read) -> Iterator[pyarrow.Table]:
        import pyarrow

        yield pyarrow.table({"facts": [json.dumps({"number": number, **_facts(tasks[number], read)})]})

    with explained("compare the shadow's changelogs"):
        rows = batches.by_task(len(tasks), SCHEMA, give).collect()
    found = {each["number"]: each for each in (json.loads(row.facts) for row in rows)}
    names = dict.fromkeys(task.store.name for task in tasks)
    return {
        name: counts_of([(task.partition, found[number]) for number, task in enumerate(tasks) if task.store.name == name]) for name in names
    }


def _facts(task: ShadowTask, read: Read) -> dict[str, object]:
    wanted = newest(task.store, rows_of(task.written, read) if task.written else ())
    return {**compared(wanted, task.store, task.partition, read, timed=task.timed), **DifferingKeys().facts}

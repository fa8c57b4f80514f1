"""The view of a store that is computed from tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kops.core.statefile import Store
from kops.core.statefile.table_models import Table
from kops.spark.driver.observing import Watch, watched
from kops.spark.job import FATES, Seen
from kops.spark.staging.difference import COLUMNS, MIXED, SURE, TIMED
from kops.spark.stores.joins import last_rows
from kops.spark.stores.partitions import placed
from kops.spark.stores.tables import Expressions, Topics
from kops.spark.stores.tables_changes import changes
from kops.spark.stores.tables_groups import as_bytes, grouped
from kops.spark.stores.views import View

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kops.spark.job import Job
    from kops.spark.reading.source import KafkaSource


def tables_view(kafka: KafkaSource, job: Job, *, any_order: bool) -> View:  # noqa: ARG001 - the contract: sums say themselves whether they round
    """Compute a table derived from others, or the groups of one.

    A record that tasks cannot judge makes the view void; without ``kafka.batches`` no work is left to tasks.
    """
    table = job.store.table
    if table is None:
        raise TypeError(f"{job.store.name} is not a table")
    topics = Topics(kafka, job, clocks=len(job.sources) > 1 and (table.needs_order or bool(job.store.key_by)))
    place = Expressions(job.state_file, job.store, table)
    if job.store.key_by:
        rows = grouped(changes(topics, table), job.store, place, loose=job.loose)
    else:
        rows = _stored(last_rows(topics, table), place, table)
    counts = {"keys": "value is not null", "mixed": f"doubt = {MIXED}", "timed": f"doubt = {TIMED}"}
    counted, of_keys = watched(rows, {name: f"count_if({condition})" for name, condition in counts.items()})
    where = placed(kafka, counted, job) if job.store.key_by else counted
    return View(where, lambda: _seen(topics, of_keys), empty=_empty(job.store) if job.loose else None)


def _empty(store: Store) -> bytes | None:
    """Return the value of a group from which everything was removed."""
    if store.aggregate.kind not in ("count", "sum"):
        return None
    from kops.plugins.loader import load_format

    return load_format(store.aggregate.form.name).encode(0)


def _stored(rows: DataFrame, place: Expressions, table: Table) -> DataFrame:
    """Return the rows of a table in the form that its changelog has."""
    value = as_bytes(rows, place, table.form) if table.joins else "_raw"
    doubt = f"if(value is null or _sure, {SURE}, {TIMED}) as doubt"
    return rows.selectExpr(
        "_partition as partition", "_key as key", f"if(value is null, null, {value}) as value", "_ts as timestamp", doubt
    ).select(*COLUMNS)


def _seen(topics: Topics, of_keys: Watch) -> Seen:
    fates, keys = topics.fates(), of_keys.get
    dropped = {name: fates[name] for name in FATES.values()}
    return Seen(fates["read"], dropped, keys["keys"], keys["mixed"], topics.unfit, noted={"timed": keys["timed"], "late": topics.expired})

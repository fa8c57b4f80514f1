"""What a store held before the records that are read: the rows of a snapshot, placed before those of the input.

An aggregate becomes the first record of its key. What it is added to, compared with or replaced by is then the same as in Kafka Streams,
where the store holds it when the next record arrives. A reducer starts with it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kops.core.statefile import Aggregation, Form, Store
from kops.spark.reading.codec import decoding
from kops.spark.reading.snapshot import read_snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kops.spark.job import Job

BASE = "base"
"""The column that marks a row of the snapshot."""
BEFORE_ALL = -1
"""The offset of such a row."""


def adding_on(store: Store) -> Store:
    """Return the store as it is computed from a base: a count becomes a sum of ones added to it."""
    return replace(store, aggregate=Aggregation("sum", Form("long"), "value")) if store.aggregate.kind == "count" else store


def with_base(kept: DataFrame, job: Job, value_type: str, *, merged: bool = False) -> DataFrame:
    """Put the rows of the job's snapshot before the records that count, with the column ``BASE``; without a snapshot, change nothing.

    :param kept: as returned by ``prepare.Prepared.kept``
    :param value_type: the Spark type of ``v``
    :param merged: whether there are several topics, whose keys start with their partition if they stay in it (``streams.merged_view``)
    """
    if job.base is None:
        return kept
    store = job.store
    in_key = merged and not store.key_by
    partition = "cast(null as int) as partition" if merged or store.moves else "partition"
    offset = f"named_struct('offset', {BEFORE_ALL}L, 'member', 0) as offset" if store.explode else f"{BEFORE_ALL}L as offset"
    key = "concat(cast(partition as binary), key) as key" if in_key else "key"
    rows = read_snapshot(kept.sparkSession, job.base)
    of_base = rows.selectExpr(partition, offset, "timestamp as timestamp_ms", key, f"{_value(store, value_type)} as v", f"true as {BASE}")
    one = "1L as v" if store.aggregate.kind == "count" else "v"
    return kept.selectExpr("partition", "offset", "timestamp_ms", "key", one, f"false as {BASE}").unionByName(of_base)


def wrong_in_base(session: SparkSession, store: Store, path: str) -> int:
    is_wrong = decoding("value", _form(store)).is_wrong
    return 0 if is_wrong is None else read_snapshot(session, path).where(is_wrong).count()


def _value(store: Store, value_type: str) -> str:
    """Return SQL of an aggregate as the value of a record: its bytes, for a reducer and for values that are kept as they are."""
    if value_type == "binary":
        return "value"
    return decoding("value", _form(store)).value


def _form(store: Store) -> Form:
    """Return the format of the aggregates, whose inner fields are never read; bytes if they are kept as they were read."""
    return Form("bytes") if store.aggregate.is_whole_value else Form(store.aggregate.form.name)

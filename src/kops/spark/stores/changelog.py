"""What a changelog holds, for topics that are too large for one process. DataFrame to DataFrame; the rules are passed as Spark SQL.

Records have the columns of ``KafkaSource.read``, with headers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kops.core.records.models import Record
from kops.spark.frames import expression, expressions, with_murmur2

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

RECORD = ("partition", "offset", "timestamp_ms", "key", "value", "headers")
Wrong = Callable[[bytes, "bytes | None", tuple[tuple[str, "bytes | None"], ...]], object]


def matching(records: DataFrame, conditions: Iterable[str], *, inner: str, key: bytes | None = None) -> DataFrame:
    """Return the records that meet all conditions and, if given, have this application key.

    :param inner: the application's key, as Spark SQL
    """
    found = records
    for condition in conditions:
        found = found.where(condition)
    return found if key is None else found.where(f"{inner} = X'{key.hex()}'")


def latest(records: DataFrame, *, versions: bool) -> DataFrame:
    """Return what log compaction would keep: the last record of each key.

    :param versions: of each key and timestamp
    """
    identity = ("partition", "key", "timestamp_ms") if versions else ("partition", "key")
    whole = f"struct({', '.join(name for name in RECORD if name not in identity)})"
    keyed = records.where("key is not null").selectExpr(*identity, "offset as at", f"{whole} as it")
    last = keyed.groupBy(*identity).agg(expression("max_by(it, at) as it"))
    return last.selectExpr(*(name if name in identity else f"it.{name} as {name}" for name in RECORD))


def with_home(frame: DataFrame, inner: str, partitions: int) -> DataFrame:
    """Add ``home``: the partition given by murmur2 of the application's key; null if there is no key.

    :param inner: the application's key, as Spark SQL
    """
    return with_murmur2(frame.selectExpr("*", f"{inner} as inner"), {"home": partitions}, key="inner").drop("inner")


def with_wrong(records: DataFrame, condition: str | None, make_check: Callable[[], Wrong]) -> DataFrame:
    """Add ``wrong``: whether a record cannot be decoded; false for records without a key.

    :param condition: the same as Spark SQL; None: each record is checked in Python
    :param make_check: returns the check of key, value and headers, which returns None if nothing is wrong
    """
    if condition is not None:
        return records.selectExpr("*", f"key is not null and coalesce({condition}, false) as wrong")

    def judge(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        check = make_check()
        for batch in batches:
            verdicts = [record is not None and check(*record) is not None for record in _keyed_records(batch)]
            yield batch.set_column(batch.schema.get_field_index("wrong"), "wrong", pyarrow.array(verdicts, pyarrow.bool_()))

    given = records.selectExpr("*", "false as wrong")
    return given.mapInArrow(judge, given.schema)


def _keyed_records(batch: pyarrow.RecordBatch) -> Iterator[tuple[bytes, Any, tuple[tuple[str, Any], ...]] | None]:
    """Yield key, value and headers of each record; None for one without a key."""
    for key, value, headers in zip(*(batch.column(name).to_pylist() for name in ("key", "value", "headers")), strict=True):
        yield None if key is None else (key, value, tuple((one["key"], one["value"]) for one in headers or ()))


def ids_in(records: DataFrame, ids_seen: Callable[[Iterable[Any]], Sequence[set[int]]]) -> dict[int, set[int]]:
    """Return the schema ids of a registry that records contain, by the number of their part.

    :param ids_seen: takes key, value and headers of records, and returns the ids in each part
    """

    def collect(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        records = (record for batch in batches for record in _keyed_records(batch) if record is not None)
        pairs = [(part, number) for part, ids in enumerate(ids_seen(records)) for number in ids]
        columns = [pyarrow.array([pair[at] for pair in pairs], pyarrow.int32()) for at in (0, 1)]
        yield pyarrow.RecordBatch.from_arrays(columns, ["part", "id"])

    found: dict[int, set[int]] = {}
    for row in records.mapInArrow(collect, "part int, id int").distinct().collect():
        found.setdefault(row.part, set()).add(row.id)
    return found


def per_key(records: DataFrame, *, versions: bool) -> DataFrame:
    """Return one row per key: the number, bytes and timestamps of its records, and its last record.

    :param records: with ``wrong``
    :param versions: one row per key and timestamp
    """
    sizes = records.selectExpr(
        "partition", "key", "timestamp_ms", "offset", "wrong", "coalesce(length(value), 0) as bytes", "value is null as gone"
    )
    identity = ("partition", "key", "timestamp_ms") if versions else ("partition", "key")
    columns = [
        "count(*) as records",
        "count_if(wrong) as undecodable",
        "sum(bytes) as value_bytes",
        "min(timestamp_ms) as oldest",
        "max(timestamp_ms) as newest",
        "max_by(struct(offset, bytes, gone), offset) as last",
    ]
    grouped = sizes.groupBy(*identity).agg(*expressions(columns))
    return grouped.selectExpr(
        "partition", "key", "records", "undecodable", "value_bytes", "oldest", "newest", "last.offset", "last.bytes", "last.gone"
    )


def per_partition(keys: DataFrame) -> DataFrame:
    """Return the sums of :func:`per_key` (with ``home``) per partition."""
    columns = [
        "sum(records) as records",
        "sum(if(key is null, records, 0)) as unkeyed",
        "count_if(key is not null) as distinct",
        "count_if(key is not null and not gone) as keys",
        "count_if(key is not null and not gone and home != partition) as wrong_partition",
        "sum(undecodable) as undecodable",
        "sum(coalesce(length(key), 0) * records) as key_bytes",
        "sum(value_bytes) as value_bytes",
        "min(oldest) as oldest",
        "max(newest) as newest",
    ]
    return keys.groupBy("partition").agg(*expressions(columns))


def in_between(records: DataFrame, offsets: Mapping[int, list[int]]) -> DataFrame:
    """Return per partition how many records lie before each of these offsets, and after the last.

    :param offsets: ascending, by partition
    :returns: partition, slot (0: before the first), records
    """

    def slots(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import numpy
        import pyarrow

        for batch in batches:
            partitions, places = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("partition", "offset"))
            found = numpy.zeros(len(places), numpy.int64)
            for partition in numpy.unique(partitions):
                here = partitions == partition
                found[here] = numpy.searchsorted(numpy.array(offsets.get(int(partition), []), numpy.int64), places[here], "left")
            yield pyarrow.RecordBatch.from_arrays([batch.column("partition"), pyarrow.array(found)], ["partition", "slot"])

    found = records.select("partition", "offset").mapInArrow(slots, "partition int, slot bigint")
    return found.groupBy("partition", "slot").agg(expression("count(*) as records"))


def summed(frame: DataFrame, **counts: str) -> Any:
    return frame.agg(*(expression(f"{count} as {name}") for name, count in counts.items())).collect()[0]


def as_record(row: Any, topic: str) -> Record:
    headers = tuple((one.key, None if one.value is None else bytes(one.value)) for one in row.headers or ())
    key, value = (None if data is None else bytes(data) for data in (row.key, row.value))
    return Record(topic, row.partition, row.offset, row.timestamp_ms, key, value, headers)

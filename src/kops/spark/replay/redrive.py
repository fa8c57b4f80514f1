"""Dead letters as DataFrames: where each came from and why, which are sent back, and their content then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kops.formats.dead_letters import NAMES, PREFIXES, SHARE_GROUP, dead_letter
from kops.spark.reading.batch_source import RowBuilder
from kops.spark.reading.ranges import HEADERS, HEADERS_TYPE
from kops.spark.reading.ranges import SCHEMA as RECORD

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import Column, DataFrame

    from kops.core.intervals import Intervals
    from kops.formats.batches.columns import RecordColumns

COUNTER = "kops-redrive-attempts"
"""The header that counts how often a record was sent back."""
SEND, PARKED, EXCEEDED, OTHER, NO_ORIGIN, NO_COPY = "send", "parked", "exceeded", "other", "no origin", "no copy"
"""What becomes of a dead letter; all but the first two stay where they are."""
_FIELDS = (
    "written_by string, topic string, partition int, offset bigint, timestamp_ms bigint, connector string, task int, group string,"
    " stage string, exception string, message string, delivery_count int, cause string, kind string"
)
_TYPES = dict(field.split() for field in _FIELDS.split(", "))
LETTER = f"dead_letter struct<{', '.join(f'`{name}`: {kind}' for name, kind in _TYPES.items())}>, attempts int"
SCHEMA = f"{RECORD}, {HEADERS}, {LETTER}"
_ISLANDS = "offset - row_number() over (partition by `partition` order by offset) as island"


@dataclass(frozen=True)
class DeadLetterRowBuilder:
    """Makes a row of each dead letter; runs in tasks.

    :param offsets: partition -> a set of offsets
    :param inside: whether to return the records in these sets, or all others
    """

    offsets: Mapping[int, Intervals]
    inside: bool

    def __call__(self, records: Iterator[RecordColumns], partition: int) -> Iterator[pyarrow.Table]:
        import numpy

        some = numpy.array(self.offsets.get(partition, ()), dtype=numpy.int64).reshape(-1, 2)
        for columns in records:
            at = numpy.searchsorted(some[:, 0], columns.offsets, side="right") - 1
            held = (at >= 0) & (columns.offsets < some[numpy.maximum(at, 0), 1]) if len(some) else numpy.zeros(len(columns), dtype=bool)
            chosen = columns.where(held if self.inside else ~held)
            if len(chosen):
                yield from (_with_letters(table, chosen) for table in RowBuilder()(iter([chosen]), partition))


def _with_letters(table: pyarrow.Table, columns: RecordColumns) -> pyarrow.Table:
    import pyarrow

    kinds = {"string": pyarrow.string(), "int": pyarrow.int32(), "bigint": pyarrow.int64()}
    struct = pyarrow.struct([(name, kinds[kind]) for name, kind in _TYPES.items()])
    letters: list[dict[str, Any] | None] = []
    attempts = []
    for row in range(len(columns)):
        headers = columns.headers(row)
        found = dead_letter(headers)
        named = {name: getattr(found, "kind_of_cause" if name == "kind" else name) for name in _TYPES} if found else None
        letters.append(named)
        attempts.append(_count(headers))
    with_letters = table.append_column("dead_letter", pyarrow.array(letters, struct))
    return with_letters.append_column("attempts", pyarrow.array(attempts, pyarrow.int32()))


def _count(headers: Sequence[tuple[str, bytes | None]]) -> int:
    for name, data in reversed(headers):
        if name == COUNTER and data is not None and data.isdigit():
            return min(int(data), 2**31 - 2)
    return 0


def judged(
    seen: DataFrame, *, where: str | None, causes: Sequence[str], route: str | None, max_attempts: int, parked: str | None
) -> DataFrame:
    """Decide where each goes (``to_topic``), and what becomes of it (``fate``).

    :param seen: as returned by ``expressions.decoded``, with ``dead_letter`` and ``attempts``
    :param where: a condition that Spark has accepted
    :param causes: texts, one of which the cause must contain; empty: any cause
    """
    from pyspark.sql import functions

    col, lit = functions.col, functions.lit
    to: Column = functions.coalesce(col("dead_letter.topic"), lit(route).cast("string"))
    matches = functions.expr("true") if where is None else functions.coalesce(functions.expr(where), functions.expr("false"))
    if causes:
        cause = functions.coalesce(col("dead_letter.cause"), lit(""))
        kind = functions.coalesce(col("dead_letter.kind"), lit(""))
        named = [functions.lower(cause).contains(text.lower()) | (kind == text) for text in causes]
        some = named[0]
        for each in named[1:]:
            some |= each
        matches &= some
    no_copy = (col("dead_letter.written_by") == SHARE_GROUP) & col("_key").isNull() & col("_value").isNull()
    fate = (
        functions.when(~matches, OTHER)
        .when(functions.coalesce(no_copy, functions.expr("false")), NO_COPY)
        .when(col("attempts") >= max_attempts, PARKED if parked else EXCEEDED)
        .when(to.isNull(), NO_ORIGIN)
        .otherwise(SEND)
    )
    target = functions.when(fate == PARKED, lit(parked).cast("string")).otherwise(to)
    return seen.withColumn("fate", fate).withColumn("to_topic", target)


@dataclass(frozen=True)
class LetterGroup:
    """Dead letters with the same cause and fate.

    :param placed: number of those that state their partition; ``furthest``: the highest partition
    :param sample: key, value, partition and offset of the first
    """

    kind: str | None
    written_by: str | None
    topic: str | None
    fate: str
    count: int
    example: str | None
    placed: int
    furthest: int | None
    sample: tuple[bytes | None, bytes | None, int, int]


def grouped(letters: DataFrame) -> list[LetterGroup]:
    """Count by cause, most frequent first."""
    from pyspark.sql import functions

    names = ("dead_letter.kind as kind", "dead_letter.written_by as written_by", "to_topic", "fate")
    rows = letters.selectExpr(
        *names, "dead_letter.cause as cause", "dead_letter.partition as place", "partition", "offset", "_key", "_value"
    )
    columns = (
        "count(*) as letters",
        "min(cause) as example",
        "count(place) as placed",
        "max(place) as furthest",
        "min_by(struct(_key, _value, partition, offset), struct(offset, partition)) as sample",
    )
    found = rows.groupBy("kind", "written_by", "to_topic", "fate").agg(*(functions.expr(column) for column in columns)).collect()
    groups = [LetterGroup(*(*row[:-1], tuple(row.sample))) for row in found]
    return sorted(groups, key=lambda one: (-one.count, str(one.kind), str(one.topic), one.fate))


def offsets_chosen(letters: DataFrame) -> dict[int, list[tuple[int, int]]]:
    """Return the offsets of what is sent or parked, by partition, as intervals that contain no other record."""
    from pyspark.sql import functions

    chosen = letters.where(functions.col("fate").isin(SEND, PARKED)).selectExpr("partition", "offset", _ISLANDS)
    bounds = (functions.min("offset").alias("first"), functions.max("offset").alias("last"))
    found: dict[int, list[tuple[int, int]]] = {}
    for row in chosen.groupBy("partition", "island").agg(*bounds).collect():
        found.setdefault(row.partition, []).append((row["first"], row["last"] + 1))
    return {number: sorted(some) for number, some in found.items()}


def sent_back(letters: DataFrame, counts: Mapping[str, int]) -> DataFrame:
    """Decide which partition each goes to (``to_partition``), and remove the error headers; parked records keep theirs.

    :param letters: as returned by ``judged``
    :param counts: number of partitions of each target
    """
    from pyspark.sql import functions

    pairs = [functions.lit(each) for name, count in counts.items() for each in (name, count)]
    there = functions.element_at(functions.create_map(*pairs), functions.col("to_topic"))
    errors = " or ".join(f"startswith(each.key, '{prefix}')" for prefix in PREFIXES)
    names = ", ".join(f"'{name}'" for name in (*NAMES, COUNTER))
    kept = f"filter(headers, each -> not ({errors}) and each.key not in ({names}))"
    more = f"array(named_struct('key', '{COUNTER}', 'value', cast(cast(attempts + 1 as string) as binary)))"
    cleaned = f"if(fate = '{PARKED}', headers, cast(concat({kept}, {more}) as {HEADERS_TYPE}))"
    place = functions.when(functions.col("fate") == PARKED, functions.expr("partition") % there).otherwise(
        functions.coalesce(functions.col("dead_letter.partition"), functions.expr("partition") % there)
    )
    return (
        letters.withColumn("to_partition", place.cast("int"))
        .withColumn("_headers", functions.col("headers"))
        .withColumn("_timestamp_ms", functions.col("timestamp_ms"))
        .withColumn("headers", functions.expr(cleaned))
    )


def unchanged_where_parked(records: DataFrame) -> DataFrame:
    """Restore the original content of parked records, after others were changed."""
    from pyspark.sql import functions

    before = {"new_key": "_key", "new_value": "_value", "timestamp_ms": "_timestamp_ms", "headers": "_headers"}
    for name, original in before.items():
        records = records.withColumn(name, functions.expr(f"if(fate = '{PARKED}', {original}, {name})"))
    return records

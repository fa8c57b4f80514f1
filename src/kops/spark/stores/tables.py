"""The final state of tables: the last row of every key, deletions included. DataFrame to DataFrame.

A row has the columns ``ROW``: the partition of its task, its key as bytes and decoded, its value decoded (null: deleted) and, if it is a
record's own, as bytes; the timestamp of its last change and the position of that change in the processing order of a task
(``PartitionGroup``: among the topics that have records, the one whose next record is the oldest); and whether all this is certain.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kops.core.statefile import Source
from kops.core.statefile.models import TABLE, Table
from kops.spark.columns.partial_aggregates import FATES as COUNTED
from kops.spark.columns.partial_aggregates import SCHEMA, PartialAggregate, is_plain
from kops.spark.driver.observing import Watch, sums, watched
from kops.spark.frames import expression
from kops.spark.job import FATES, KEPT, NEGATIVE_TIME, NULL_KEY, UNDECODABLE
from kops.spark.reading.codec import written_again
from kops.spark.stores.prepare import ExpressionPlace, PreparedRecords, decoded_records
from kops.spark.stores.views import observed_records, refuse_undecodable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kops.spark.job import Job
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.reading.source import KafkaSource

ROW = ("_partition", "_key", "key", "value", "_raw", "_ts", "_ord", "_sure")
_SO_FAR = "over (partition by {by} order by offset rows between unbounded preceding and {until})"


@dataclass
class StoreTopics:
    """The topics of a store as DataFrames of their records, each judged and counted once.

    :param clocks: compute a record's position among those of other topics, which costs a sort of every partition
    """

    kafka: KafkaSource
    job: Job
    clocks: bool
    _seen: dict[str, tuple[PreparedRecords, Watch]] = field(default_factory=dict)
    _newest: dict[str, Watch] = field(default_factory=dict)
    _expired: dict[str, Watch] = field(default_factory=dict)

    def records(self, table: Table, source: Source) -> DataFrame:
        """Return the records of a table's topic that count: ``_partition, _key, key, value, _raw, _ts, _ord, offset``."""
        prepared = self._prepared(table, source, self.kafka.read(replace(self.range_of(source), split=not self.clocks)))
        if source.topic in self._seen:
            judged = prepared.judged
        else:
            judged, observation = observed_records(prepared)
            self._seen[source.topic] = prepared, observation
        kept = _kept(judged)
        return _columns(kept if table.history_ms is None else self.not_expired(kept, table.history_ms, source.topic))

    def not_expired(self, records: DataFrame, history_ms: int, topic: str) -> DataFrame:
        """Leave out what a versioned store never accepted, and count it (``expired``)."""
        aged = with_newest(records, history_ms)
        if topic not in self._expired:
            aged, self._expired[topic] = watched(aged, {"late": "count_if(expired)"})
        return aged.where("not expired").drop("expired")

    @property
    def expired(self) -> int:
        """Return how many records were too old for the history of their versioned table; only after all were computed."""
        return sum(int(watch.get["late"]) for watch in self._expired.values())

    def newest(self, table: Table, source: Source) -> DataFrame:
        """Return, of the records that count, at least the last one per key; tasks find those if they can (``partial_aggregates``)."""
        batches, wanted = self.kafka.batches, self.range_of(source)
        if batches is None or self.clocks or table.history_ms is not None or source.extracts:
            return self.records(table, source)
        if not is_plain(source.key, source.value):
            return self.records(table, source)
        rows = batches.reduced(wanted, SCHEMA, PartialAggregate(TABLE, source.key, source.value))
        if source.topic not in {*self._newest, *self._seen}:
            rows, self._newest[source.topic] = watched(rows, sums(COUNTED))
        records = rows.where("key is not null").select("key", "value", "partition", "offset", "timestamp_ms")
        return _columns(_kept(self._prepared(table, source, records).judged))

    @property
    def unfit(self) -> int:
        """Return how many records tasks cannot judge; only after all were computed."""
        return sum(int(watch.get["unfit"]) for watch in self._newest.values())

    def range_of(self, source: Source) -> TopicRange:
        return next(wanted for wanted in self.job.sources if wanted.topic == source.topic)

    def fates(self) -> dict[str, int]:
        """Return how many records were read and what became of them; only after all were computed.

        :raises UndecodableInput: when some are not in the declared formats, and must not be skipped
        """
        total = dict.fromkeys(("read", *FATES.values()), 0)
        for watch in (watch for topic, watch in self._newest.items() if topic not in self._seen):
            total = {name: count + watch.get.get(name, 0) for name, count in total.items()}
        for topic, (prepared, observation) in self._seen.items():
            found = observation.get
            source = next(source for source in self.job.store.inputs if source.topic == topic)
            job = replace(self.job, source=self.range_of(source), store=replace(self.job.store, source=source))
            refuse_undecodable(prepared, job, found["undecodable"])
            total = {name: count + found[name] for name, count in total.items()}
        return total

    def _prepared(self, table: Table, source: Source, records: DataFrame) -> PreparedRecords:
        store = replace(self.job.store, source=source)
        place = Expressions(self.job.state_file, store, table)
        decoded = decoded_records(records, store, place, lenient=self.job.skip_undecodable)
        fate = (
            f"case when key_wrong or value_wrong or time_wrong then {UNDECODABLE} when timestamp_ms < 0 then {NEGATIVE_TIME}"
            f" when _key is null then {NULL_KEY} else {KEPT} end as fate"
        )
        clock = f"max(timestamp_ms) {_SO_FAR.format(by='partition', until='current row')}" if self.clocks else "0L"
        feed = [wanted.topic for wanted in self.job.sources].index(source.topic)
        return PreparedRecords(
            decoded.selectExpr(
                "partition",
                "offset",
                "timestamp_ms",
                f"{written_again('key', '_key', source.key)} as _key",
                "key",
                "value",
                f"{written_again('value', '_value', source.value)} as _raw",
                "key_wrong",
                "time_wrong",
                fate,
                f"{clock} as clock",
                f"{feed} as feed",
            ),
            "",
        )


def _kept(judged: DataFrame) -> DataFrame:
    return judged.where(f"fate = {KEPT}").drop("fate", "key_wrong", "time_wrong")


def _columns(kept: DataFrame) -> DataFrame:
    return kept.selectExpr(
        "partition as _partition",
        "_key",
        "key",
        "value",
        "_raw",
        "timestamp_ms as _ts",
        "struct(clock, feed, offset) as _ord",
        "offset",
    )


@dataclass(frozen=True)
class Expressions(ExpressionPlace):
    """Where the expressions of a table appear, for error messages."""

    table: Table

    def columns(self) -> str:
        return "columns: key and value; in a join key, left and right. JSON needs a schema to use its fields"

    def name(self, field: str) -> str:
        return f"{self.state_file.path}: {self.table.place}.{field}"


def not_expired(records: DataFrame, history_ms: int) -> DataFrame:
    """Leave out what a versioned store never accepted: records older than the newest one before them by more than its history.

    ``RocksDBVersionedStore.put``; the changelog has such records all the same.
    """
    return with_newest(records, history_ms).where("not expired").drop("expired")


def with_newest(records: DataFrame, history_ms: int) -> DataFrame:
    """Add ``expired``: whether a record is older than the newest one before it by more than the history of a versioned store."""
    newest = f"max(timestamp_ms) {_SO_FAR.format(by='partition', until='1 preceding')}"
    return records.selectExpr("*", f"coalesce(timestamp_ms < {newest} - {history_ms}, false) as expired")


def filtered(rows: DataFrame, table: Table, place: Expressions, column: str = "value") -> DataFrame:
    """Apply ``where`` to a column of values: a value for which it is not true counts as deleted (``KTableFilter``)."""
    if not table.where:
        return rows
    swapped = rows if column == "value" else rows.withColumnsRenamed({"value": "_other", column: "value"})
    passes = f"value is not null and coalesce(({place.boolean(swapped, table.where)}), false)"
    kept = swapped.withColumn("value", expression(f"if({passes}, value, null)"))
    return kept if column == "value" else kept.withColumnsRenamed({"value": column, "_other": "value"})

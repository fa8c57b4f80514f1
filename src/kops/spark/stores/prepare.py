"""From Kafka records to the input of the aggregation: decoded, filtered, with their new key. DataFrame to DataFrame.

The rules are those of ``KStreamAggregate`` and ``KStreamReduce``: a record with a null key or null value is dropped, where the value is
what the deserializer (and then ``mapValues``) made of the bytes; after a new key, a null key is dropped before the repartition topic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kops.core.errors import ConfigError
from kops.core.records.column_types import ddl
from kops.core.statefile import Form, StateFile, Store
from kops.core.statefile.models import SESSION, TABLE, WINDOW
from kops.formats.registered_columns import column_of
from kops.spark.job import FILTERED, KEPT, NEGATIVE_TIME, NULL_KEY, NULL_VALUE, UNDECODABLE
from kops.spark.reading.codec import WIDENS, decoding, encoding, sql_type, written_again
from kops.spark.reading.registered import BY_PYTHON, with_read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_JSON = ("json", "json-schema")
_PART = "case when key_wrong then 'key' when time_wrong then 'timestamp' else 'value' end as part"
TAKES_NULLS = (WINDOW, SESSION)
"""Stores whose processors (``KStreamWindowAggregate``, ``KStreamSessionWindowAggregate``) drop null keys only."""


@dataclass(frozen=True)
class PreparedRecords:
    """Records ready to be aggregated.

    :param judged: every record, with ``fate``; every member of a record if the store explodes them
    :param value_type: the Spark type of ``v``
    :param records: SQL that counts the records in ``judged``
    :param member: format of the members of records that are passed to a reducer
    """

    judged: DataFrame
    value_type: str
    records: str = "count(*)"
    member: Form | None = None

    @property
    def undecodable(self) -> DataFrame:
        """Return the records that are not in the declared formats, with the part that is wrong."""
        return self.judged.where(f"fate = {UNDECODABLE}").selectExpr("partition", "offset", _PART)

    def kept(self, judged: DataFrame | None = None) -> DataFrame:
        """Return what is aggregated: partition, offset, timestamp_ms, key (bytes), v."""
        frame = self.judged if judged is None else judged
        order = "struct(offset, member) as offset" if "member" in frame.columns else "offset"
        return frame.where("fate = 0").selectExpr("partition", order, "timestamp_ms", "key", "v")


def prepare(records: DataFrame, state_file: StateFile, store: Store, *, lenient: bool = False) -> PreparedRecords:
    """Decode, filter and re-key the records of a store's topic.

    :param records: as ``KafkaSource.read`` returns them
    :param lenient: treat no text as undecodable (``codec.decoding``)
    :raises ConfigError: when an expression cannot be used, naming its field
    """
    place = ExpressionPlace(state_file, store)
    decoded = decoded_records(records, store, place, lenient=lenient)
    member = ["member"] if store.explode else []
    if store.explode:
        decoded = _exploded(decoded, store.explode, place)
    where = place.boolean(decoded, store.where) if store.where else "true"
    key = place.typed(decoded, "key_by", store.key_by, sql_type(store.key_form)) if store.key_by else None
    form = _member_form(decoded, store, place)
    value, value_type = _value(decoded, store, place, form)
    keyed = decoded.selectExpr(
        "partition",
        "offset",
        "timestamp_ms",
        "key_wrong",
        "value_wrong",
        "time_wrong",
        *member,
        f"({where}) as passes",
        f"{_key(records, state_file, store, key)} as new_key",
        f"{value} as v",
    )
    fate = (
        f"case when key_wrong or value_wrong or time_wrong then {UNDECODABLE} when timestamp_ms < 0 then {NEGATIVE_TIME}"
        f" when not coalesce(passes, false) then {FILTERED} when new_key is null then {NULL_KEY} "
        f" when {_is_dropped(store)} then {NULL_VALUE} else {KEPT} end as fate"
    )
    judged = keyed.selectExpr("partition", "offset", "timestamp_ms", "new_key as key", "v", "key_wrong", "time_wrong", fate, *member)
    return PreparedRecords(judged, value_type, "count_if(coalesce(member, 0) = 0)" if store.explode else "count(*)", form)


def decoded_records(records: DataFrame, store: Store, place: ExpressionPlace, *, lenient: bool) -> DataFrame:
    """Add the decoded ``key`` and ``value`` that expressions refer to, and keep the bytes as ``_key`` and ``_value``."""
    columns = ["key as _key", "value as _value", "partition", "offset", "timestamp_ms", f"'{store.source.topic}' as topic"]
    raw = records.selectExpr(*columns, *(["headers"] if store.source.needs_headers else []))
    try:
        keys, values = decoding("_key", store.source.key, lenient=lenient), decoding("_value", store.source.value, lenient=lenient)
        raw = with_read(raw, {"_key": store.source.key, "_value": store.source.value})
        decoded = raw.selectExpr("*", f"{keys.value} as key", f"{values.value} as value", "timestamp_millis(timestamp_ms) as timestamp")
        judged = decoded.selectExpr("*", f"{keys.judged('key')} as key_wrong", f"{values.judged('value')} as value_wrong")
    except ConfigError:
        raise
    except Exception as error:
        raise place.wrong("from", "a schema", error) from error
    return _timed(judged, store.source.extracts, place)


def timed_records(records: DataFrame, state_file: StateFile, store: Store) -> DataFrame:
    """Return records with the timestamps that the application assigns to them; unchanged if those are the records' own."""
    if store.source.extracts is None:
        return records
    decoded = decoded_records(records, store, ExpressionPlace(state_file, store), lenient=True)
    return decoded.where("not key_wrong and not value_wrong and timestamp_ms >= 0")


def _timed(decoded: DataFrame, extracts: str | None, place: ExpressionPlace) -> DataFrame:
    """Replace the records' timestamps by what the application's extractor returns; ``time_wrong`` if that is not a timestamp."""
    if extracts is None:
        return decoded.selectExpr("*", "false as time_wrong")
    time = place.milliseconds(decoded, "from.timestamp", extracts)
    others = [name for name in decoded.columns if name not in ("timestamp", "timestamp_ms")]
    timed = decoded.selectExpr(*others, f"{time} as timestamp_ms")
    return timed.selectExpr(
        "*", "timestamp_millis(timestamp_ms) as timestamp", "not key_wrong and not value_wrong and timestamp_ms is null as time_wrong"
    )


def _exploded(decoded: DataFrame, expression: str, place: ExpressionPlace) -> DataFrame:
    """Make a record of each member of an array, as ``flatMapValues`` does; a record without members remains, with a null value."""
    place.array(decoded, "explode", expression)
    others = [name for name in decoded.columns if name != "value"]
    members = decoded.selectExpr(*others, f"{expression} as members")  # separate: a generator cannot be combined with kops' functions
    return members.selectExpr(*others, "posexplode_outer(members) as (member, value)")


def _is_dropped(store: Store) -> str:
    """Return SQL of whether a record is dropped for its value: never for a table; windows and sessions accept null values too."""
    if store.type in TAKES_NULLS or store.aggregate.kind == TABLE:
        return "member is null" if store.explode else "false"
    return "v is null"


def _key(records: DataFrame, state_file: StateFile, store: Store, new: str | None) -> str:
    """Return SQL of the bytes of a record's key in the store."""
    if new:
        return encoding(new, store.key_form)
    if store.key_form.name == store.source.key.name:
        return written_again("key", "_key", store.source.key)
    return f"{_faust_keys(records, ascii_only=state_file.json_module == 'json')}(key)"


def _faust_keys(records: DataFrame, *, ascii_only: bool) -> str:
    """Return the name of a function that writes keys as a Faust table does; Spark itself would escape them differently."""
    from kops.formats.streams import faust

    def write(key: Any) -> bytes | None:
        return None if key is None else faust.encode(key, ascii_only=ascii_only)

    name = f"kops_faust_key_{'ascii' if ascii_only else 'utf8'}"
    records.sparkSession.udf.register(name, write, "binary")
    return name


def _value(decoded: DataFrame, store: Store, place: ExpressionPlace, member: Form | None) -> tuple[str, str]:
    aggregate = store.aggregate
    if aggregate.kind == "count":
        return "1" if store.type in TAKES_NULLS else "if(value is null, null, 1)", "int"
    if aggregate.is_whole_value and aggregate.form.name == store.source.value.name and not store.explode:
        return written_again("value", "_value", store.source.value), "binary"
    if member is not None:
        return encoding("value", member), "binary"
    if aggregate.kind == "reducer":
        return "if(value is null, null, _value)", "binary"
    wanted = sql_type(aggregate.form)
    field = "value" if aggregate.kind == TABLE else f"aggregate.{aggregate.kind}"
    return place.typed(decoded, field, aggregate.expression, wanted), wanted


def _member_form(decoded: DataFrame, store: Store, place: ExpressionPlace) -> Form | None:
    if not store.explode or store.aggregate.kind != "reducer":
        return None
    kind = place.type_of(decoded, "explode", "value")
    for name in ("string", "long", "int", "short", "double", "float", "bytes"):
        if sql_type(Form(name)) == kind:
            return Form(name)
    hint = "texts or numbers, such as java_split(value, ' ')"
    raise ConfigError(f"{place.name('explode')} gives members of the type {kind}, which a reducer does not take", hint=hint)


@dataclass(frozen=True)
class ExpressionPlace:
    """Where expressions appear, for error messages."""

    state_file: StateFile
    store: Store

    def boolean(self, frame: DataFrame, expression: str) -> str:
        kind = self.type_of(frame, "where", expression)
        if kind != "boolean":
            raise ConfigError(f"{self.name('where')} is {kind}, not a condition: {expression}", hint="such as: value.price is not null")
        return expression

    def array(self, frame: DataFrame, field: str, expression: str) -> None:
        kind = self.type_of(frame, field, expression)
        if not kind.startswith("array<"):
            raise ConfigError(f"{self.name(field)} is {kind}, not an array: {expression}", hint="such as: java_split(value, ' ')")

    def typed(self, frame: DataFrame, field: str, expression: str, wanted: str) -> str:
        """Return an expression converted as in Java, after checking that its type is one that Java converts."""
        kind = self.type_of(frame, field, expression)
        if field in ("aggregate.min", "aggregate.max") and wanted == "string" and kind not in WIDENS[wanted]:
            hint = "name the numbers' own format; where the application stores the greatest number as a text, a reducer says so"
            raise ConfigError(f"{self.name(field)} is {kind}, and as: string would compare its digits: {expression}", hint=hint)
        if kind not in WIDENS[wanted]:
            raise ConfigError(
                f"{self.name(field)} is {kind}, which does not go into {wanted} by itself: {expression}",
                hint=("0.1 is a decimal number in Spark SQL, and 0.1D a double; " if kind.startswith("decimal") else "")
                + f"say how it is converted, such as cast({expression} as {wanted}), or name another format",
            )
        return f"cast(({expression}) as {wanted})"

    def milliseconds(self, frame: DataFrame, field: str, expression: str) -> str:
        """Return an expression of a time as milliseconds since the epoch, after checking its type."""
        kind = self.type_of(frame, field, expression)
        if kind in WIDENS["bigint"]:
            return f"cast(({expression}) as bigint)"
        if kind in ("timestamp", "timestamp_ntz"):
            return f"unix_millis(cast(({expression}) as timestamp))"
        hint = "milliseconds since the epoch, such as value.created_ms, or a timestamp, such as to_timestamp(value.created)"
        raise ConfigError(f"{self.name(field)} is {kind}, not a time: {expression}", hint=hint)

    def wrong(self, field: str, what: str, error: Exception) -> ConfigError:
        reason = str(error).strip().splitlines()[0].split(" SQLSTATE")[0]
        return ConfigError(f"{self.name(field)} has {what} that Spark cannot use: {reason}", hint=self.columns())

    def type_of(self, frame: DataFrame, field: str, expression: str) -> str:
        define_functions(frame.sparkSession, expression)
        try:
            found = frame.selectExpr(f"({expression}) as it").schema["it"].dataType.simpleString()
        except Exception as error:
            raise self.wrong(field, f"an expression ({expression})", error) from error
        return found

    def columns(self) -> str:
        kind = self.store.source.value
        fields = f" ({kind.schema})" if kind.schema else " (give json a schema to use its fields)" if kind.name in _JSON else ""
        if kind.name in BY_PYTHON:
            fields = f" ({ddl(column_of(kind)[0])})"
        if kind.plugin:
            fields = " (text; JSON for anything else)"
        headers = ", headers (in from.timestamp)" if self.store.source.extracts else ""
        return f"columns: key, value{fields}, timestamp, timestamp_ms, topic, partition, offset{headers}"

    def name(self, field: str) -> str:
        return f"{self.state_file.path}: stores.{self.store.name}.{field}"


# String.split(regex) drops trailing empty parts, and returns the text itself if nothing matches; Spark's split keeps them.
_SPLIT = "split(text, regex)"
_LAST_WITH_LETTERS = f"array_max(transform({_SPLIT}, (part, at) -> if(part = '', 0, at + 1)))"
FUNCTIONS = {
    "java_split": (
        "text STRING, regex STRING",
        "ARRAY<STRING>",
        f"if(size({_SPLIT}) < 2, {_SPLIT}, slice({_SPLIT}, 1, {_LAST_WITH_LETTERS}))",
    )
}
"""By name: parameters, type and SQL of the result."""


def define_functions(session: SparkSession, expression: str) -> None:
    """Define, for this session, those functions that an expression uses."""
    for name, (parameters, result, body) in FUNCTIONS.items():
        if name in expression:
            session.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION {name}({parameters}) RETURNS {result} RETURN {body}")

"""Stores filled from one stream: aggregated by key, or by key and window."""

from __future__ import annotations

import re

from kops.core.durations import duration_text
from kops.core.statefile.fields import Fields
from kops.core.statefile.models import (
    CUSTOM,
    DEFAULT,
    FLOATING,
    INTEGRAL,
    KEY_VALUE,
    KINDS,
    PARTITIONERS,
    PLAIN,
    SESSION,
    SLIDING,
    TABLE,
    WINDOW,
    Aggregation,
    Store,
    Windows,
)
from kops.core.statefile.sources import (
    FORMATS,
    NAME,
    Form,
    Source,
    read_duration,
    read_form,
    read_internal_name,
    read_name,
    read_optional_name,
    read_start,
    read_starts,
)
from kops.core.statefile.versions import EXPLICIT_GRACE, RETENTION_OF_WINDOWS, SESSION_GAP, Version, line_of

_TO_TABLE = ("to_table", "value", "as")
"""The fields of ``KStream.toTable()``, and of the ``mapValues`` before it."""
_IN_PLACE = ("in_place",)
_TIMESTAMPED = ("timestamped",)
"""The field of stores of which there are two kinds, with timestamps and without; sessions and processors' stores are of one."""
_FROM = ("key", "value", "timestamp", "start")
_FIELDS = ("type", "from", "explode", "where", "key_by", "key_as", "repartition", "partitioner", "changelog", "output", "aggregate")


def read_stream_store(stores: Fields, name: str, kind: str, application: str, version: Version | None = None) -> Store:
    """Read a key-value, window or session store, and how the records of its topic are transformed before it."""
    windowed = kind not in (KEY_VALUE, PLAIN)
    more = WINDOW_FIELDS if windowed else _TO_TABLE if kind == KEY_VALUE else _IN_PLACE
    fields = stores.inside(name, (*_FIELDS, *more, *(_TIMESTAMPED if kind not in (PLAIN, SESSION) else ())))
    source, others = read_sources(fields) if kind == KEY_VALUE else (read_source(fields), ())
    key_by = fields.text("key_by")
    for extra in ("key_as", "repartition", "partitioner"):
        if key_by is None and fields.body.get(extra) is not None:
            raise fields.wrong(extra, "only means something with key_by", "without key_by the record's own key and partition stay")
    to_table = not windowed and _says_to_table(fields)
    in_place = kind == PLAIN and _says_in_place(fields, key_by)
    aggregate = _kept_by_table(fields, source) if to_table else read_aggregate(fields, source)
    if kind == PLAIN and aggregate.kind not in (TABLE, "reducer"):
        hint = (
            "a processor that fills a plain store is code of your own: say it as a reducer, or leave it out where it puts the value itself"
        )
        raise fields.wrong("aggregate", f"is {aggregate.kind}, and Kafka Streams keeps those with a timestamp", hint)
    if windowed and aggregate.kind == TABLE:
        raise fields.wrong("aggregate", "is missing: what is kept of each window", "such as {count: true}")
    where, explode = fields.text("where"), fields.text("explode")
    _refuse_exploded(fields, explode, aggregate, windowed=windowed)
    if others and aggregate.kind in (TABLE, "reducer"):
        what = "has one topic" if aggregate.kind == TABLE else "needs an order, and between topics there is none"
        raise fields.wrong("from.topics", f"are several, and a {aggregate.kind} {what}", "name one topic, or another aggregate")
    if kind == PLAIN and aggregate.kind == TABLE and explode:
        raise fields.wrong(
            "explode", "needs a reducer, which says what is kept of the members", "aggregate: {reducer: MODULE:NAME, as: FORMAT}"
        )
    if aggregate.kind == TABLE and not to_table and kind != PLAIN and (where or key_by or explode):
        hint = "`to_table: true` where the application calls toTable() on that stream; builder.table() stores a table before it is filtered"
        raise fields.wrong("where" if where else "key_by" if key_by else "explode", "cannot be used without an aggregate", hint)
    store = Store(
        name=name,
        source=source,
        aggregate=aggregate,
        key_form=read_form(fields, "key_as", "string") if key_by else source.key,
        changelog=read_internal_name(fields, "changelog", application, name),
        where=where,
        explode=explode,
        key_by=key_by,
        repartition_topic=read_internal_name(fields, "repartition", application, name) if key_by and not in_place else None,
        type=kind,
        window=read_windows(fields, kind, application, version) if windowed else None,
        others=others,
        custom_partitioner=read_partitioner(fields, windowed=windowed),
        to_table=to_table,
        in_place=in_place,
        output=read_optional_name(fields, "output"),
        timestamped=read_timestamped(fields),
    )
    if store.output:
        _refuse_output(fields, store)
    return store


def _refuse_output(fields: Fields, store: Store) -> None:
    """Refuse an output topic whose records cannot have the same bytes and timestamps as the store."""
    if store.type != KEY_VALUE:
        raise fields.wrong("output", f"is of a store of the type {store.type}", "only records of a key-value store are like its entries")
    for part, form in (("keys", store.key_form), ("values", store.aggregate.form)):
        if form.name == "json" or form.is_only_read:  # formats in which one value has many encodings
            what = f"is of {part} in {form.name}, which a serde can write in other bytes there"
            raise fields.wrong("output", what, "leave it out")
    own = {store.changelog, store.repartition_topic, *(source.topic for source in store.inputs)}
    if store.output in own:
        what = f"is {store.output}, which is the store's own changelog, repartition topic or input"
        raise fields.wrong("output", what, "the topic that the application writes the table to")


def read_timestamped(fields: Fields) -> bool:
    """Read whether the store keeps the timestamps of its values."""
    return fields.flag("timestamped", "false for a store by Stores.persistentKeyValueStore or the like", default=True)


def _says_in_place(fields: Fields, key_by: str | None) -> bool:
    """Read whether a processor changes the key itself, without a repartition topic."""
    given = fields.flag("in_place", "true if a processor writes keys of its own")
    if given and (key_by is None or fields.body.get("repartition") is not None):
        what = "only means something with key_by" if key_by is None else "does not go with a repartition topic"
        raise fields.wrong("in_place", what, "a key that is changed in place stays in the partition of its record")
    return given


def _says_to_table(fields: Fields) -> bool:
    given = fields.flag("to_table", "true where the application calls KStream.toTable()")
    if given and fields.body.get("aggregate") is not None:
        raise fields.wrong("aggregate", "does not go with to_table", "toTable() keeps the last value of a key, and a null value deletes it")
    for name in ("value", "as"):
        if not given and fields.body.get(name) is not None:
            raise fields.wrong(name, "only means something with to_table: true", "put this expression under `aggregate`")
    return given


def _kept_by_table(fields: Fields, source: Source) -> Aggregation:
    """Read what ``toTable()`` stores: the records' values, or what ``mapValues`` makes of them."""
    expression = fields.text("value") or ""
    if fields.body.get("as") is None:
        if expression not in ("", "value") or fields.body.get("explode") is not None:
            raise fields.wrong("as", "is missing: the format of the table's values", f"one of: {', '.join(FORMATS)}")
        return Aggregation(TABLE, source.value, expression)
    return Aggregation(TABLE, read_form(fields, "as"), expression or "value")


def read_partitioner(fields: Fields, *, windowed: bool = False) -> bool:
    """Read whether the application uses its own partitioner for new keys (``Repartitioned.withStreamPartitioner``)."""
    custom = fields.one_of("partitioner", PARTITIONERS, DEFAULT) == CUSTOM
    if custom and windowed:
        what = f"is {CUSTOM}, and without it kops cannot know which records a task of windows has seen, nor what was late there"
        raise fields.wrong("partitioner", what, "leave the store out")
    return custom


def read_source(fields: Fields) -> Source:
    """Read ``from``: a topic and its formats."""
    origin = fields.inside("from", ("topic", *_FROM))
    return Source(read_name(origin, "topic", "the input topic"), *_forms(origin), read_start(origin), origin.text("timestamp"))


def _forms(origin: Fields) -> tuple[Form, Form]:
    return read_form(origin, "key", read_only=True), read_form(origin, "value", read_only=True)


def read_sources(fields: Fields) -> tuple[Source, tuple[Source, ...]]:
    """Read ``from`` if it may name several ``topics`` of the same formats: return the first, and the others."""
    names = fields.inside("from").body.get("topics")
    if names is None:
        return read_source(fields), ()
    origin = fields.inside("from", ("topics", *_FROM))
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and NAME.fullmatch(name) for name in names):
        raise origin.wrong("topics", "must be a list of names of topics", "such as [orders, returns]")
    if len(set(names)) < len(names):
        raise origin.wrong("topics", "names a topic twice")
    starts = read_starts(origin, names)
    first, *others = (Source(name, *_forms(origin), starts[name], origin.text("timestamp")) for name in names)
    return first, tuple(others)


def _refuse_exploded(fields: Fields, explode: str | None, aggregate: Aggregation, *, windowed: bool) -> None:
    if explode and aggregate.kind == "reducer" and windowed:
        raise fields.wrong(
            "explode", "cannot be used with a reducer of windows, which takes the bytes of records", "name another aggregate"
        )
    if explode and aggregate.kind not in ("count", TABLE) and fields.inside("aggregate").body.get("as") is None:
        raise fields.wrong("aggregate.as", "is missing: a member of a record has no format of its own", f"one of: {', '.join(FORMATS)}")


_NUMBERS = "tinyint|smallint|int|bigint|float|double|decimal"
_NUMBER = re.compile(rf"(?:{_NUMBERS})\s*\(.*\)|(?:try_)?cast\s*\(.*\bas\s+(?:{_NUMBERS})\b[^)]*\)+", re.IGNORECASE | re.DOTALL)
"""Spark SQL whose result is always a number."""


def read_aggregate(fields: Fields, source: Source) -> Aggregation:
    """Read how the records of a key become one value; without ``aggregate`` the store is a table of its topic."""
    if fields.body.get("aggregate") is None:
        return Aggregation(TABLE, source.value)
    inner = fields.inside("aggregate", (*KINDS, "as"))
    named = [kind for kind in KINDS if inner.body.get(kind) is not None]
    if len(named) != 1:
        raise fields.wrong("aggregate", f"names {' and '.join(named) or 'no aggregate'}", f"exactly one of: {', '.join(KINDS)}")
    kind = named[0]
    if kind == "count":
        return _count(inner)
    expression = inner.needed(kind)
    if inner.body.get("as") is None:
        if expression != "value":
            raise inner.wrong("as", "is missing: the format of the aggregate's bytes", f"one of: {', '.join(FORMATS)}")
        if source.value.is_only_read and kind not in ("last", "first"):
            raise inner.wrong("as", f"is missing: a {kind} is not {source.value}", f"one of: {', '.join(FORMATS)}")
        return Aggregation(kind, source.value, expression)
    form = read_form(inner, "as", read_only=True)
    if form.is_only_read and (kind not in ("last", "first") or expression != "value" or form.name != source.value.name):
        raise inner.wrong("as", f"is {form}, which kops keeps as it was read and does not write", "last or first: value, of such a topic")
    numbers = (*INTEGRAL, *FLOATING)
    if kind == "sum" and form.name not in numbers:
        raise inner.wrong("as", f"is {form}, and a sum is a number", f"one of: {', '.join(numbers)}")
    if kind in ("min", "max") and form.name == "string" and _NUMBER.fullmatch(expression):
        hint = "the numbers' own format, such as as: int; where the application stores the greatest number as a text, a reducer says so"
        raise inner.wrong(kind, f"compares numbers ({expression}), and as: string would compare their digits", hint)
    if kind in ("min", "max") and form.name in ("json", "bytes", "uuid"):
        raise inner.wrong("as", f"is {form}, which has no order", "use a reducer")
    return Aggregation(kind, form, expression)


def _count(inner: Fields) -> Aggregation:
    if inner.body["count"] is not True:
        raise inner.wrong("count", "must be true", "count: true")
    form = read_form(inner, "as", "long")
    if form.name != "long":
        raise inner.wrong("as", f"is {form}, and Kafka Streams counts in long", "leave it out")
    return Aggregation("count", form)


WINDOW_FIELDS = ("window", "emit", "suppress")
"""The fields that only windowed stores have."""
EMIT = ("on-update", "on-close")
_LENGTH = {WINDOW: "size", SLIDING: "difference", SESSION: "gap"}
"""The name of a window's length: as in ``TimeWindows``, ``SlidingWindows``, ``SessionWindows``."""
_OTHERS = {WINDOW: ("advance", "alignment", "grace", "retention"), SLIDING: ("grace", "retention"), SESSION: ("grace", "retention")}
_DEFAULT_CALL = {WINDOW: "TimeWindows.of", SLIDING: "SlidingWindows", SESSION: "SessionWindows.with"}


def read_windows(fields: Fields, kind: str, application: str, version: Version | None) -> Windows:
    """Read ``window``, ``emit`` and ``suppress``, with the defaults and the limits of Kafka Streams.

    :raises ConfigError: for what Kafka Streams refuses too, and for a missing field that has no reliable default
    """
    length_name = _LENGTH[kind]
    inner = fields.inside("window", (length_name, *_OTHERS[kind]))
    length = read_duration(inner, length_name, None)
    if kind != SLIDING and length == 0:
        raise inner.wrong(length_name, "is nothing", "longer than 0ms")
    stated = _needed(inner, kind, version)
    grace = read_duration(inner, "grace", 0)
    advance = read_duration(inner, "advance", length) if kind == WINDOW else length
    if kind == WINDOW and not 0 < advance <= length:
        raise inner.wrong("advance", f"is {duration_text(advance)}", f"more than 0ms and no more than the size, {duration_text(length)}")
    alignment = read_duration(inner, "alignment", 0) if kind == WINDOW else 0
    if alignment and alignment >= advance:
        raise inner.wrong("alignment", f"is {duration_text(alignment)}", f"less than from one start to the next, {duration_text(advance)}")
    # TimeWindowedKStreamImpl, SlidingWindowedKStreamImpl and SessionWindowedKStreamImpl refuse a retention below this.
    least = (2 * length if kind == SLIDING else length) + grace
    retention = read_duration(inner, "retention", least)
    if retention < least:
        what = "twice the difference" if kind == SLIDING else f"the {length_name}"
        raise inner.wrong("retention", f"is {duration_text(retention)}", f"at least {what} and the grace, {duration_text(least)}")
    closing = fields.one_of("emit", EMIT, EMIT[0]) == EMIT[1]
    buffer = read_optional_name(fields, "suppress")
    return Windows(
        kind,
        length,
        advance,
        grace,
        retention,
        closing,
        f"{application}-{buffer}-changelog" if buffer else None,
        closes_after_gap=line_of(stated) >= SESSION_GAP,
        alignment_ms=alignment,
        says_retention=inner.body.get("retention") is not None,
    )


def _needed(inner: Fields, kind: str, version: Version | None) -> Version:
    """Return the version, after checking that the file states everything that the version does not decide.

    :raises ConfigError: naming what is missing, and the application's default for it
    """
    if version is None:
        hint = 'the version of kafka-streams decides how long windows take records and stay, such as streams: {version: "3.9"}'
        raise Fields(inner.file, "streams", {}).wrong("version", f"is missing, and {inner.place.rpartition('.')[0]} has windows", hint)
    if line_of(version) >= EXPLICIT_GRACE:
        return version
    of = ".".join(map(str, version))
    if inner.body.get("grace") is None:
        length = _LENGTH[kind]
        default = f"; {_DEFAULT_CALL[kind]}(..) without one keeps windows open for 24h less the {length}" if kind != SLIDING else ""
        raise inner.wrong(
            "grace", f"is missing, and kafka-streams {of} has no default to rely on", f"as the application's windows have it{default}"
        )
    if inner.body.get("retention") is None:
        usual = "a day, or more where the windows are longer" if line_of(version) < RETENTION_OF_WINDOWS else "size and grace"
        hint = f"{usual}, unless Materialized.withRetention says otherwise: the changelog's retention.ms has it, and a day that is added"
        raise inner.wrong("retention", f"is missing, and kafka-streams {of} has no default to rely on", hint)
    return version

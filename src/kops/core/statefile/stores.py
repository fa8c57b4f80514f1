"""Stores of one stream: aggregated by key, or by key and window."""

from __future__ import annotations

from kops.core.statefile.aggregates import read_aggregate
from kops.core.statefile.fields import Fields
from kops.core.statefile.forms import NAME, read_form, read_name, read_optional_name
from kops.core.statefile.models import (
    CUSTOM,
    DEFAULT,
    FORMATS,
    KEY_VALUE,
    PARTITIONERS,
    PLAIN,
    TABLE,
    Aggregation,
    Form,
    Source,
    Store,
)
from kops.core.statefile.starts import read_start, read_starts
from kops.core.statefile.versions import Version
from kops.core.statefile.windows import WINDOW_FIELDS, read_windows

_FIELDS = ("type", "from", "explode", "where", "key_by", "key_as", "repartition", "partitioner", "changelog", "aggregate")


def read_stream_store(stores: Fields, name: str, kind: str, application: str, version: Version | None = None) -> Store:
    """Read a key-value store, or one of windows or sessions, with what is done to the records of its topic before.

    :param kind: the type of the store
    :param version: of kafka-streams
    """
    windowed = kind not in (KEY_VALUE, PLAIN)
    fields = stores.inside(name, (*_FIELDS, *(WINDOW_FIELDS if windowed else [])))
    source, others = read_sources(fields) if kind == KEY_VALUE else (read_source(fields), ())
    key_by = fields.text("key_by")
    for extra in ("key_as", "repartition", "partitioner"):
        if key_by is None and fields.body.get(extra) is not None:
            raise fields.wrong(extra, "only means something with key_by", "without key_by the record's own key and partition stay")
    aggregate = read_aggregate(fields, source)
    if kind == PLAIN and aggregate.kind not in (TABLE, "reducer"):
        hint = (
            "a processor that fills a plain store is code of your own: say it as a reducer, or leave it out where it puts the value itself"
        )
        raise fields.wrong("aggregate", f"is {aggregate.kind}, and Kafka Streams keeps those with a timestamp", hint)
    if windowed and aggregate.kind == TABLE:
        raise fields.wrong("aggregate", "is missing: what is kept of each window", "such as {count: true}")
    where, explode = fields.text("where"), fields.text("explode")
    _refuse_exploded(fields, explode, aggregate)
    if others and aggregate.kind in (TABLE, "reducer"):
        what = "has one topic" if aggregate.kind == TABLE else "needs an order, and between topics there is none"
        raise fields.wrong("from.topics", f"are several, and a {aggregate.kind} {what}", "name one topic, or another aggregate")
    if aggregate.kind == TABLE and (where or key_by or explode):
        hint = "Kafka Streams stores the table first and filters it afterwards; name an aggregate such as last for a filtered stream"
        raise fields.wrong("where" if where else "key_by" if key_by else "explode", "cannot be used without an aggregate", hint)
    return Store(
        name=name,
        source=source,
        aggregate=aggregate,
        key_form=read_form(fields, "key_as", "string") if key_by else source.key,
        changelog=read_optional_name(fields, "changelog") or f"{application}-{name}-changelog",
        where=where,
        explode=explode,
        key_by=key_by,
        repartition_topic=(read_optional_name(fields, "repartition") or f"{application}-{name}-repartition") if key_by else None,
        type=kind,
        window=read_windows(fields, kind, application, version) if windowed else None,
        others=others,
        custom_partitioner=read_partitioner(fields, windowed=windowed),
    )


def read_partitioner(fields: Fields, *, windowed: bool = False) -> bool:
    """Tell whether the application sends new keys to partitions of its own choice (``Repartitioned.withStreamPartitioner``)."""
    custom = fields.one_of("partitioner", PARTITIONERS, DEFAULT) == CUSTOM
    if custom and windowed:
        what = f"is {CUSTOM}, and without it kops cannot know which records a task of windows has seen, nor what was late there"
        raise fields.wrong("partitioner", what, "leave the store out")
    return custom


def read_source(fields: Fields) -> Source:
    """Read ``from``: a topic and its formats."""
    origin = fields.inside("from", ("topic", "key", "value", "start"))
    return Source(read_name(origin, "topic", "the input topic"), *_forms(origin), start=read_start(origin))


def _forms(origin: Fields) -> tuple[Form, Form]:
    return read_form(origin, "key", read_only=True), read_form(origin, "value", read_only=True)


def read_sources(fields: Fields) -> tuple[Source, tuple[Source, ...]]:
    """Read ``from`` where it may name several ``topics`` of the same formats: the first, and the others."""
    names = fields.inside("from").body.get("topics")
    if names is None:
        return read_source(fields), ()
    origin = fields.inside("from", ("topics", "key", "value", "start"))
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and NAME.fullmatch(name) for name in names):
        raise origin.wrong("topics", "must be a list of names of topics", "such as [orders, returns]")
    if len(set(names)) < len(names):
        raise origin.wrong("topics", "names a topic twice")
    starts = read_starts(origin, names)
    first, *others = (Source(name, *_forms(origin), start=starts[name]) for name in names)
    return first, tuple(others)


def _refuse_exploded(fields: Fields, explode: str | None, aggregate: Aggregation) -> None:
    if explode and aggregate.kind == "reducer":
        raise fields.wrong("explode", "cannot be used with a reducer, which takes the bytes of records", "name another aggregate")
    if explode and aggregate.kind not in ("count", TABLE) and fields.inside("aggregate").body.get("as") is None:
        raise fields.wrong("aggregate.as", "is missing: a member of a record has no format of its own", f"one of: {', '.join(FORMATS)}")

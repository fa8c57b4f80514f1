"""From the YAML of a state file, already loaded, to what it says."""

from __future__ import annotations

import re
from typing import Any

from kops.core.statefile.fields import Fields, nearest
from kops.core.statefile.models import FORMATS, GUARANTEES, KINDS, STORE_TYPES, TABLE, Aggregation, Form, Source, StateFile, Store

_TOP = ("application", "streams", "stores")
_STORE = ("type", "from", "where", "key_by", "key_as", "repartition", "changelog", "aggregate")
_FORM = ("format", "schema")
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def parse_state_file(path: str, body: Any) -> StateFile:
    """Read a state file.

    :param path: for messages
    :param body: what YAML made of it
    :raises ConfigError: naming the file, the field and the nearest name
    """
    top = Fields(path, "", body, _TOP)
    application = _name(top, "application", "the application.id of the Kafka Streams application")
    streams = Fields(path, "streams", body.get("streams") or {}, ("version", "guarantee"))
    stores = top.inside("stores")
    if not stores.body:
        raise top.wrong("stores", "has no stores")
    return StateFile(
        path=path,
        application=application,
        stores=tuple(_store(stores, name, application) for name in stores.body),
        guarantee=streams.one_of("guarantee", GUARANTEES, GUARANTEES[0]),
        streams_version=streams.text("version"),
    )


def _store(stores: Fields, name: str, application: str) -> Store:
    if not _NAME.fullmatch(name):
        raise stores.wrong(name, "is not a name that a store can have", "letters, digits, dot, underscore and hyphen")
    fields = stores.inside(name, _STORE)
    fields.one_of("type", STORE_TYPES, STORE_TYPES[0])
    origin = fields.inside("from", ("topic", "key", "value"))
    source = Source(_name(origin, "topic", "the input topic"), _form(origin, "key"), _form(origin, "value"))
    key_by = fields.text("key_by")
    for extra in ("key_as", "repartition"):
        if key_by is None and fields.body.get(extra) is not None:
            raise fields.wrong(extra, "only means something with key_by", "without key_by the record's own key and partition stay")
    aggregate = _aggregate(fields, source)
    where = fields.text("where")
    if aggregate.kind == TABLE and (where or key_by):
        hint = "Kafka Streams stores the table first and filters it afterwards; name an aggregate such as last for a filtered stream"
        raise fields.wrong("where" if where else "key_by", "cannot be used without an aggregate", hint)
    return Store(
        name=name,
        source=source,
        aggregate=aggregate,
        key_form=_form(fields, "key_as", "string") if key_by else source.key,
        changelog=_optional_name(fields, "changelog") or f"{application}-{name}-changelog",
        where=where,
        key_by=key_by,
        repartition_topic=(_optional_name(fields, "repartition") or f"{application}-{name}-repartition") if key_by else None,
    )


def _aggregate(fields: Fields, source: Source) -> Aggregation:
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
        return Aggregation(kind, source.value, expression)
    form = _form(inner, "as")
    numbers = ("long", "int", "short", "double", "float")
    if kind == "sum" and form.name not in numbers:
        raise inner.wrong("as", f"is {form}, and a sum is a number", f"one of: {', '.join(numbers)}")
    if kind in ("min", "max") and form.name in ("json", "bytes", "uuid"):
        raise inner.wrong("as", f"is {form}, which has no order", "use a reducer")
    return Aggregation(kind, form, expression)


def _count(inner: Fields) -> Aggregation:
    if inner.body["count"] is not True:
        raise inner.wrong("count", "must be true", "count: true")
    form = _form(inner, "as", "long")
    if form.name != "long":
        raise inner.wrong("as", f"is {form}, and Kafka Streams counts in long", "leave it out")
    return Aggregation("count", form)


def _form(fields: Fields, name: str, default: str | None = None) -> Form:
    """Read a format: its name, or ``{format: json, schema: ...}``."""
    given = fields.body.get(name)
    if given is None:
        if default is None:
            raise fields.wrong(name, "is missing", f"one of: {', '.join(FORMATS)}")
        return Form(default)
    schema = None
    if isinstance(given, str):
        format_name = given.strip()
    else:
        inner = fields.inside(name, _FORM)
        format_name, schema = inner.needed("format"), inner.text("schema")
        if schema is not None and format_name != "json":
            raise inner.wrong("schema", f"does not go with the format {format_name}", "it is for json")
    if format_name not in FORMATS:
        raise fields.wrong(name, f"is the unknown format {format_name!r}", f"{nearest(format_name, FORMATS)}one of: {', '.join(FORMATS)}")
    return Form(format_name, schema)


def _name(fields: Fields, name: str, what: str) -> str:
    value = fields.needed(name, what)
    if not _NAME.fullmatch(value):
        raise fields.wrong(name, f"is {value!r}, which is no name in Kafka", "letters, digits, dot, underscore and hyphen")
    return value


def _optional_name(fields: Fields, name: str) -> str | None:
    return None if fields.body.get(name) is None else _name(fields, name, "")

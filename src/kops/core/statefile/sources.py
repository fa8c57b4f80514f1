"""The topics that a state file names: their formats, and where the application started reading them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from kops.core.durations import parse_duration
from kops.core.errors import UsageProblem
from kops.core.schemas.models import KIND_OF, RegisteredSchema
from kops.core.statefile.fields import Fields, nearest
from kops.core.times import parse_time

OFFSET, TIME, LATEST = "offset", "time", "latest"
FORMATS = ("string", "bytes", "long", "int", "short", "double", "float", "json", "uuid")
WALL_CLOCK = "wall-clock"
"""Used instead of an expression for a record's time: the application's own clock, which is not recorded anywhere."""
_HINT = "an offset, {0: 5, 1: 7} for each partition, a time such as '@2026-11-20T14:05', or latest"
_RELATIVE = ("@-", "@now")
REGISTERED = tuple(KIND_OF)
"""Formats whose schemas are in a registry: kops reads them but does not write them."""


@dataclass(frozen=True)
class Form:
    """The format of a key or a value.

    :param name: one of ``FORMATS`` or ``REGISTERED``, or the name of a plugin's format
    :param schema: for JSON used in expressions: its fields as a Spark DDL schema, ``item string, price double``
    :param reader: for Avro: the schema that the application was compiled with, as a registry's SUBJECT, SUBJECT:VERSION or id
    :param registered: the schemas of the records, once known
    :param read_as: the schema that ``reader`` names, once known
    :param plugin: whether it is a plugin's format
    """

    name: str
    schema: str | None = None
    reader: str | None = None
    registered: tuple[RegisteredSchema, ...] = ()
    read_as: RegisteredSchema | None = None
    plugin: bool = False

    @property
    def is_only_read(self) -> bool:
        """Whether kops reads it but does not write it: values of such a topic are kept as they were read."""
        return self.plugin or self.name in REGISTERED

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Start:
    """Where the application started reading a topic.

    :param kind: ``OFFSET``, ``TIME``, or ``LATEST``: at the log end of that time, which is now unknown
    :param value: the offset of every partition, or milliseconds since the epoch
    :param offsets: (partition, offset) of every partition, if they differ
    """

    kind: str
    value: int = 0
    offsets: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Source:
    """A topic that a store is computed from.

    :param start: where the application started reading it; None: at its beginning
    :param timestamp: Spark SQL of the result of the application's ``TimestampExtractor``, or ``WALL_CLOCK``; None: the record's own
    """

    topic: str
    key: Form
    value: Form
    start: Start | None = None
    timestamp: str | None = None

    @property
    def extracts(self) -> str | None:
        """The expression for a record's time; None if it is the record's own, or the wall clock."""
        return None if self.timestamp == WALL_CLOCK else self.timestamp

    @property
    def needs_headers(self) -> bool:
        """Whether that expression may use headers."""
        return self.extracts is not None and "headers" in self.extracts


def read_start(fields: Fields) -> Start | None:
    given = fields.body.get("start")
    return None if given is None else _start(fields, "start", given)


def read_starts(fields: Fields, topics: Sequence[str]) -> Mapping[str, Start | None]:
    """Read ``start`` for several topics: one value for all, or a mapping by topic."""
    given = fields.body.get("start")
    if not isinstance(given, Mapping):
        return dict.fromkeys(topics, read_start(fields))
    unknown = [str(name) for name in given if name not in topics]
    if unknown:
        raise fields.wrong(
            "start", f"names {unknown[0]}, which is not one of the topics", f"of several topics, by topic: {', '.join(topics)}"
        )
    return {topic: _start(fields, f"start.{topic}", given[topic]) if given.get(topic) is not None else None for topic in topics}


def _start(fields: Fields, name: str, given: Any) -> Start:
    if isinstance(given, Mapping):
        return Start(OFFSET, offsets=_by_partition(fields, name, given))
    if given == LATEST:
        return Start(LATEST)
    if (offset := _number(given)) is not None:
        return Start(OFFSET, value=offset)
    if isinstance(given, str) and given.startswith("@"):
        if given.startswith(_RELATIVE):
            raise fields.wrong(name, f"is {given!r}, which moves with the clock", "a date and time, such as '@2026-11-20T14:05'")
        try:
            return Start(TIME, value=parse_time(given, datetime.fromtimestamp(0, timezone.utc)))
        except UsageProblem as wrong:
            raise fields.wrong(name, f"is {given!r}, which is not a valid time", wrong.hint) from wrong
    if isinstance(given, datetime):
        raise fields.wrong(name, "is a date without the @ of a time", f"write '@{given:%Y-%m-%dT%H:%M:%S}'")
    raise fields.wrong(name, f"is {given!r}", _HINT)


def _by_partition(fields: Fields, name: str, given: Mapping[Any, Any]) -> tuple[tuple[int, int], ...]:
    found = {}
    for partition, offset in given.items():
        number, at = _number(partition), _number(offset)
        if number is None or at is None:
            raise fields.wrong(name, f"has {partition!r}: {offset!r}, which is not an offset of a partition", _HINT)
        found[number] = at
    if not found:
        raise fields.wrong(name, "names no partition", _HINT)
    return tuple(sorted(found.items()))


def _number(given: Any) -> int | None:
    """Return a number of 0 or more, otherwise None; JSON has strings as keys of mappings."""
    if isinstance(given, str) and given.isascii() and given.isdigit() and len(given) <= _MOST_DIGITS:
        return int(given)
    return given if isinstance(given, int) and not isinstance(given, bool) and given >= 0 else None


_MOST_DIGITS = 19
NAME = re.compile(r"[A-Za-z0-9._-]+")
"""A valid name of a topic, application or store."""

_FORM = ("format", "schema", "reader")


def read_form(fields: Fields, name: str, default: str | None = None, *, read_only: bool = False) -> Form:
    """Read a format: its name, possibly that of a plugin, ``{format: json, schema: ...}`` or ``{format: avro, reader: ...}``.

    :param read_only: also accept formats that kops reads but does not write

    :raises ConfigError: if it is missing and has no default, or is not valid
    """
    known = (*FORMATS, *REGISTERED) if read_only else FORMATS
    given = fields.body.get(name)
    if given is None:
        if default is None:
            raise fields.wrong(name, "is missing", f"one of: {', '.join(known)}")
        return Form(default)
    schema = reader = None
    if isinstance(given, str):
        format_name = given.strip()
    else:
        inner = fields.inside(name, _FORM)
        format_name, schema, reader = inner.needed("format"), inner.text("schema"), inner.text("reader")
        if schema is not None and format_name not in ("json", "json-schema"):
            raise inner.wrong("schema", f"does not go with the format {format_name}", "it is for json and json-schema")
        if reader is not None and format_name != "avro":
            raise inner.wrong("reader", f"does not go with the format {format_name}", "it is for avro")
    plugins = () if format_name in known else fields.plugin_formats()
    if not read_only and format_name in (*REGISTERED, *plugins):
        raise fields.wrong(name, f"is {format_name}, which kops reads and does not write", f"one of: {', '.join(FORMATS)}")
    if format_name in plugins:
        return Form(format_name, plugin=True)
    if format_name not in known:
        known = (*known, *plugins) if read_only else known
        raise fields.wrong(name, f"is the unknown format {format_name!r}", f"{nearest(format_name, known)}one of: {', '.join(known)}")
    return Form(format_name, schema, reader)


def read_name(fields: Fields, name: str, what: str) -> str:
    value = fields.needed(name, what)
    if not NAME.fullmatch(value):
        raise fields.wrong(name, f"is {value!r}, which is not a valid name in Kafka", "letters, digits, dot, underscore and hyphen")
    return value


def read_optional_name(fields: Fields, name: str) -> str | None:
    return None if fields.body.get(name) is None else read_name(fields, name, "")


def read_internal_name(fields: Fields, name: str, application: str, store: str) -> str:
    """Read the name of a ``changelog`` or ``repartition`` topic; by default the one that Kafka Streams gives it."""
    return read_optional_name(fields, name) or f"{application}-{store}-{name}"


def read_duration(fields: Fields, name: str, default: int | None) -> int:
    """Read a duration in milliseconds; it is required unless it has a default."""
    text = fields.text(name)
    if text is None:
        if default is None:
            raise fields.wrong(name, "is missing", "such as 1m")
        return default
    try:
        return parse_duration(text)
    except UsageProblem as wrong:
        raise fields.wrong(name, f"is {text!r}, which is not a valid duration", wrong.hint) from wrong

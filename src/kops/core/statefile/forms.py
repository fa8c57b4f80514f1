"""Names and formats, which several parts of a state file use."""

from __future__ import annotations

import re

from kops.core.durations import parse_duration
from kops.core.errors import UsageProblem
from kops.core.statefile.fields import Fields, nearest
from kops.core.statefile.sources import FORMATS, REGISTERED, Form

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
    """Read the name of something in Kafka.

    :param what: what it is the name of, for the hint if it is missing
    """
    value = fields.needed(name, what)
    if not NAME.fullmatch(value):
        raise fields.wrong(name, f"is {value!r}, which is not a valid name in Kafka", "letters, digits, dot, underscore and hyphen")
    return value


def read_optional_name(fields: Fields, name: str) -> str | None:
    """Read the optional name of something in Kafka."""
    return None if fields.body.get(name) is None else read_name(fields, name, "")


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

"""The aggregate of a store, as a state file declares it."""

from __future__ import annotations

import re

from kops.core.statefile.fields import Fields
from kops.core.statefile.forms import read_form
from kops.core.statefile.models import KINDS, TABLE, Aggregation
from kops.core.statefile.sources import FORMATS, Source

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
    numbers = ("long", "int", "short", "double", "float")
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

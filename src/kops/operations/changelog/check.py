"""Whether a record fits a type of store and the formats; in a module of its own, since Spark's workers use it too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kops.core.errors import UndecodableRecord
from kops.core.statefile import Form
from kops.formats.base import Format
from kops.formats.confluent import schema_id
from kops.formats.streams import store_types as types
from kops.formats.streams.reading import Headers
from kops.operations.changelog.layouts import LAYOUTS, Layout

Check = Callable[[bytes, bytes | None, Headers], tuple[str, str] | None]
"""Given key, value and headers: which part is wrong, and why; None when none is."""

_WIDTHS = {"long": 8, "int": 4, "short": 2, "double": 8, "float": 4}
_TIMED = (types.WINDOW, types.JOIN, types.SESSION)


def checker(layout: Layout, key_format: Format, value_format: Format, right_format: Format) -> Check:
    def check(key: bytes, value: bytes | None, headers: Headers) -> tuple[str, str] | None:
        part = "key"
        try:
            layout.columns(key, None)
            key_format.decode(layout.inner(key) or b"")
            if value is not None:
                part = "value"
                found = layout.value(key, value, headers)
                form = right_format if found.right else value_format
                for data in (*found.samples, *(also for also in found.also.values() if also is not None)):
                    form.decode(data)
        except UndecodableRecord as wrong:
            return part, wrong.message
        return None

    return check


def checker_named(layout: str, key_format: Form, value_format: Form, right_format: Form) -> Check:
    """Return a function that checks a record, from names, so that it can be sent to the tasks."""
    from kops.plugins.loader import format_of

    return checker(LAYOUTS[layout], format_of(key_format), format_of(value_format), format_of(right_format))


class _Ids:
    """Takes the place of a format and keeps the schema ids that it sees."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def decode(self, data: bytes) -> None:
        self.seen.add(schema_id(data))


def ids_seen(layout: str, registered: Sequence[bool], records: Iterable[tuple[bytes, bytes | None, Headers]]) -> list[set[int]]:
    """Return the schema ids in the keys, the values and the right side's values of records.

    :param registered: which of the three are in a format with a schema registry
    """
    from kops.plugins.loader import load_format

    ids = [_Ids() for _ in registered]
    key, value, right = (one if is_one else load_format("bytes") for one, is_one in zip(ids, registered, strict=True))
    check = checker(LAYOUTS[layout], key, value, right)  # type: ignore[arg-type]  # of a format only `decode` is called
    for record in records:
        check(*record)
    return [one.seen for one in ids]


def wrong_sql(layout: Layout, key_format: str, value_format: str) -> str | None:
    """Return a Spark SQL condition that is true if a record is wrong; None where only :func:`checker` can decide."""
    if layout.name not in (types.KEY_VALUE, types.VERSIONED, *_TIMED):
        return None
    key, value = _format_sql(layout.inner_sql(), key_format), _format_sql("value", value_format)
    if key is None or value is None:
        return None
    conditions = [key, value]
    if layout.name in _TIMED:
        conditions += [f"length(key) < {layout.suffix}", f"{layout.time_sql()} < 0"]
    if layout.name == types.SESSION:
        conditions.append(f"cast(conv(hex(substring(key, -16, 8)), 16, -10) as bigint) < {layout.time_sql()}")
    return " or ".join(f"coalesce({condition}, false)" for condition in conditions)


def _format_sql(data: str, name: str) -> str | None:
    if name == "bytes":
        return "false"
    if name == "string":
        return f"not is_valid_utf8(cast({data} as string))"
    return f"length({data}) != {_WIDTHS[name]}" if name in _WIDTHS else None

"""The layout of a changelog's keys, by the type of its store: where in them the application's own key is, and its window.

The formats themselves are in ``kops.formats.streams``; this module has what reading many records needs of them, in Python and in Spark SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from kops.core.records.models import timestamp_text
from kops.formats.streams import foreign_keys, join_buffers, session_keys, stream_joins, suppression, window_keys
from kops.formats.streams import store_types as types
from kops.formats.streams.reading import Headers
from kops.formats.streams.suppression import RecordContext


@dataclass(frozen=True)
class Value:
    """A value split into its parts.

    :param data: the application's own bytes, of which there may be several, or none
    :param facts: what is shown in their place, where the value has none of them
    :param also: further bytes in the format of the value, by column
    :param columns: further columns
    :param right: whether the bytes are in the format of the right side of a join
    """

    data: bytes | tuple[bytes, ...] | None
    facts: Mapping[str, Any] | None = None
    also: Mapping[str, bytes | None] = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)
    right: bool = False

    @property
    def samples(self) -> tuple[bytes, ...]:
        return self.data if isinstance(self.data, tuple) else () if self.data is None else (self.data,)


def plain(_key: bytes, value: bytes, _headers: Headers) -> Value:
    return Value(value)


def outer_join_value(key: bytes, value: bytes, _headers: Headers) -> Value:
    values = stream_joins.decode_values(value)
    return Value(tuple(one.value for one in values), right=not stream_joins.decode_key(key).is_left)


def suppress_value(_key: bytes, value: bytes, headers: Headers) -> Value:
    change = suppression.decode(value, headers)
    columns = {
        "buffer_time": timestamp_text(change.buffer_time_ms),
        "buffer_time_ms": change.buffer_time_ms,
        "source": _source(change.context),
    }
    return Value(change.new, also={"prior": change.prior, "old": change.old}, columns=columns)


def join_buffer_value(_key: bytes, value: bytes, _headers: Headers) -> Value:
    found = join_buffers.decode_value(value)
    return Value(found.value, columns={"source": _source(found.context)})


def foreign_key_value(key: bytes, value: bytes, _headers: Headers) -> Value:
    """Return a subscription; the primary key is shown in the format of the value."""
    found = foreign_keys.decode_subscription(value)
    facts = {
        "instruction": found.instruction.name,
        "value_hash": None if found.value_hash is None else found.value_hash.hex(),
        "primary_partition": found.primary_partition,
    }
    return Value(None, facts, also={"primary_key": foreign_keys.decode_key(key).primary_key})


def _source(context: RecordContext | None) -> dict[str, Any] | None:
    if context is None:
        return None
    return {
        "topic": context.topic,
        "partition": context.partition,
        "offset": context.offset,
        "timestamp": timestamp_text(context.timestamp_ms),
        "timestamp_ms": context.timestamp_ms,
    }


LONG = 8
INT = 4
SUPPRESSED_WINDOWS, SUPPRESSED_SESSIONS = f"{types.SUPPRESS}-window", f"{types.SUPPRESS}-session"


@dataclass(frozen=True)
class Layout:
    """The keys of one type of store.

    :param name: the type, as on the command line
    :param what: whose keys and values these are, for errors: ``of a window store``
    :param prefix: bytes before the application's key
    :param suffix: bytes after it
    :param start: position of the time in a key: the window's start, or the record's time in a join; negative from the end
    :param sized: whether the application's key comes first, after its own length
    :param columns: splits a key into further columns, given the size of the windows, or None; raises ``UndecodableRecord``
    :param value: splits a value, given its key and headers; raises ``UndecodableRecord``
    :param versions: whether a key has a version per timestamp, which later records with other timestamps do not replace
    """

    name: str
    what: str = "of a key-value store"
    prefix: int = 0
    suffix: int = 0
    start: int | None = None
    sized: bool = False
    columns: Callable[[bytes, int | None], dict[str, Any]] = lambda _key, _size: {}
    value: Callable[[bytes, bytes, Headers], Value] = plain
    versions: bool = False

    @property
    def has_time(self) -> bool:
        return self.start is not None

    @property
    def needs_size(self) -> bool:
        """Whether a window's end is only known from its size."""
        return self.name in (types.WINDOW, SUPPRESSED_WINDOWS)

    def inner(self, key: bytes) -> bytes | None:
        """Return the application's own key, which decides the partition; None if the key is too short to have one."""
        if self.sized:
            end = INT + int.from_bytes(key[:INT], "big", signed=True)
            return key[INT:end] if INT <= end <= len(key) else None
        end = len(key) - self.suffix
        return key[self.prefix : end] if end >= self.prefix else None

    def time(self, key: bytes) -> int | None:
        """Return the time in a key; None where it has none."""
        if self.start is None or len(key) < self.prefix + self.suffix:
            return None
        at = self.start if self.start >= 0 else len(key) + self.start
        return int.from_bytes(key[at : at + LONG], "big", signed=True)

    def inner_sql(self) -> str:
        if self.sized:
            length = f"cast(conv(hex(substring(key, 1, {INT})), 16, -10) as int)"
            return f"if(length(key) >= {INT} and {length} between 0 and length(key) - {INT}, substring(key, {INT + 1}, {length}), null)"
        both = self.prefix + self.suffix
        return f"if(length(key) >= {both}, substring(key, {self.prefix + 1}, length(key) - {both}), null)" if both else "key"

    def time_sql(self) -> str:
        if self.start is None:
            return "cast(null as bigint)"
        at = self.start + 1 if self.start >= 0 else self.start
        number = f"cast(conv(hex(substring(key, {at}, {LONG})), 16, -10) as bigint)"
        return f"if(length(key) >= {self.prefix + self.suffix}, {number}, null)"


def _window(key: bytes, size: int | None) -> dict[str, Any]:
    found = window_keys.decode(key)
    return window_columns(found.start_ms, None if size is None else window_keys.end_of(found.start_ms, size))


def _session(key: bytes, _size: int | None) -> dict[str, Any]:
    found = session_keys.decode(key)
    return window_columns(found.start_ms, found.end_ms)


def _join(key: bytes, _size: int | None) -> dict[str, Any]:
    found = window_keys.decode(key)
    return _numbered(found.start_ms) | {"sequence": found.sequence}


def _outer_join(key: bytes, _size: int | None) -> dict[str, Any]:
    found = stream_joins.decode_key(key)
    return {"side": "left" if found.is_left else "right"} | _numbered(found.timestamp_ms)


def _join_buffer(key: bytes, _size: int | None) -> dict[str, Any]:
    found = join_buffers.decode_key(key)
    return _numbered(found.timestamp_ms) | {"sequence": found.sequence}


def _windowed(key: bytes, size: int | None) -> dict[str, Any]:
    start_ms = window_keys.decode_without_sequence(key).start_ms
    return window_columns(start_ms, None if size is None else window_keys.end_of(start_ms, size))


def _foreign_key(key: bytes, _size: int | None) -> dict[str, Any]:
    foreign_keys.decode_key(key)
    return {}


def _numbered(time: int) -> dict[str, Any]:
    return {"record_time": timestamp_text(time), "record_time_ms": time}


def window_columns(start_ms: int, end_ms: int | None) -> dict[str, Any]:
    return {
        "window_start": timestamp_text(start_ms),
        "window_start_ms": start_ms,
        "window_end": timestamp_text(end_ms),
        "window_end_ms": end_ms,
    }


LAYOUTS: Mapping[str, Layout] = MappingProxyType(
    {
        layout.name: layout
        for layout in (
            Layout(types.KEY_VALUE),
            Layout(types.VERSIONED, "of a versioned store", versions=True),
            Layout(types.WINDOW, "of a window store", suffix=12, start=-12, columns=_window),
            Layout(types.SESSION, "of a session store", suffix=16, start=-8, columns=_session),
            Layout(types.JOIN, "of a join's window store", suffix=12, start=-12, columns=_join),
            Layout(types.OUTER_JOIN, "of an outer join", prefix=9, start=0, columns=_outer_join, value=outer_join_value),
            Layout(types.SUPPRESS, "of suppress", value=suppress_value),
            Layout(SUPPRESSED_WINDOWS, "of suppress", suffix=8, start=-8, columns=_windowed, value=suppress_value),
            Layout(SUPPRESSED_SESSIONS, "of suppress", suffix=16, start=-8, columns=_session, value=suppress_value),
            Layout(types.JOIN_BUFFER, "of a join's buffer", prefix=9, suffix=4, start=1, columns=_join_buffer, value=join_buffer_value),
            Layout(types.SUBSCRIPTION, "of a foreign-key join", sized=True, columns=_foreign_key, value=foreign_key_value),
        )
    }
)
"""By type of store, as named on the command line; the keys of what suppress holds back may have windows or not."""
KEY_VALUE = LAYOUTS[types.KEY_VALUE]

"""A record of an internal topic, taken apart by the type of its store: the application's own keys and values, and what is beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from kops.core.errors import UndecodableRecord
from kops.core.records import Record
from kops.formats.streams import (
    faust,
    foreign_keys,
    join_buffers,
    session_keys,
    stream_joins,
    suppression,
    table_changes,
    window_keys,
)
from kops.formats.streams import store_types as types
from kops.formats.streams.record_context import RecordContext
from kops.formats.streams.suppression import BufferedChange

Fact = int | str | bool | None


@dataclass(frozen=True)
class Row:
    """What one record says, or one value of a list.

    :param key: the application's key, bytes of its key serde; its hash gives the partition, unless the input has a partitioner of its own.
        Of suppress a windowed key is taken apart where it waits for its window's end, which tombstones and time limits do not tell
    :param value: the application's value, bytes of its value serde; None for a tombstone and where there is none
    :param facts: numbers and times that stand beside them, by name; names that end in ``_ms`` are milliseconds since the epoch
    :param keys: further keys, of other key serdes
    :param values: further values, of the same value serde
    """

    key: bytes
    value: bytes | None
    facts: Mapping[str, Fact] = field(default_factory=dict)
    keys: Mapping[str, bytes] = field(default_factory=dict)
    values: Mapping[str, bytes | None] = field(default_factory=dict)


def decode(kind: str, record: Record) -> tuple[Row, ...]:
    """Return what a record says: one row, but of a list of values one for each.

    :param kind: one of ``store_types.ALL_TYPES``
    :raises UndecodableRecord: when it is not of this type, or has no key
    """
    if record.key is None:
        raise UndecodableRecord("it has no key, which an internal topic's records have")
    return _DECODERS[kind](record, record.key)


def _plain(record: Record, key: bytes) -> tuple[Row, ...]:
    return (Row(key, record.value),)


def _window(record: Record, key: bytes) -> tuple[Row, ...]:
    window = window_keys.decode(key)
    return (Row(window.key, record.value, {"window_start_ms": window.start_ms, "sequence": window.sequence}),)


def _join(record: Record, key: bytes) -> tuple[Row, ...]:
    window = window_keys.decode(key)
    return (Row(window.key, record.value, {"record_time_ms": window.start_ms, "sequence": window.sequence}),)


def _session(record: Record, key: bytes) -> tuple[Row, ...]:
    session = session_keys.decode(key)
    return (Row(session.key, record.value, {"session_start_ms": session.start_ms, "session_end_ms": session.end_ms}),)


def _outer_join(record: Record, key: bytes) -> tuple[Row, ...]:
    side = stream_joins.decode_key(key)
    facts: dict[str, Fact] = {"record_time_ms": side.timestamp_ms, "side": _side(side.is_left)}
    if record.value is None:
        return (Row(side.key, None, facts),)
    values = stream_joins.decode_values(record.value)
    return tuple(Row(side.key, each.value, {**facts, "position": at}) for at, each in enumerate(values))


def _suppress(record: Record, key: bytes) -> tuple[Row, ...]:
    if record.value is None:
        return (Row(key, None),)
    change = suppression.decode(record.value, record.headers)
    inner, window = _window_in(key, change)
    facts: dict[str, Fact] = {**window, "version": suppression.version_of(record.headers), "buffer_time_ms": change.buffer_time_ms}
    source = _source(change.context) if change.context else {}
    return (Row(inner, change.new, {**facts, **source}, values={"old_value": change.old, "prior_value": change.prior}),)


def _window_in(key: bytes, change: BufferedChange) -> tuple[bytes, dict[str, Fact]]:
    """Return the key within a windowed one, and its window: known by the buffer time, which ``untilWindowCloses`` sets to its end."""
    time = change.context.timestamp_ms if change.context else change.buffer_time_ms
    try:
        session = session_keys.decode(key)
        if session.end_ms == change.buffer_time_ms and session.start_ms <= time <= session.end_ms:
            return session.key, {"session_start_ms": session.start_ms, "session_end_ms": session.end_ms}
    except UndecodableRecord:
        pass
    if time < change.buffer_time_ms:
        try:
            window = window_keys.decode_without_sequence(key)
        except UndecodableRecord:
            return key, {}
        if window.start_ms <= time:
            return window.key, {"window_start_ms": window.start_ms, "window_end_ms": change.buffer_time_ms}
    return key, {}


def _join_buffer(record: Record, key: bytes) -> tuple[Row, ...]:
    waiting = join_buffers.decode_key(key)
    facts: dict[str, Fact] = {"record_time_ms": waiting.timestamp_ms, "sequence": waiting.sequence}
    if record.value is None:
        return (Row(waiting.key, None, facts),)
    buffered = join_buffers.decode_value(record.value)
    return (Row(waiting.key, buffered.value, {**facts, **_source(buffered.context)}),)


def _subscription(record: Record, key: bytes) -> tuple[Row, ...]:
    combined = foreign_keys.decode_key(key)
    return (Row(combined.foreign_key, None, _asked(record.value)[0], {"primary_key": combined.primary_key}),)


def _registration(record: Record, key: bytes) -> tuple[Row, ...]:
    facts, primary_key = _asked(record.value)
    return (Row(key, None, facts, {"primary_key": primary_key} if primary_key is not None else {}),)


def _response(record: Record, key: bytes) -> tuple[Row, ...]:
    if record.value is None:
        return (Row(key, None),)
    answer = foreign_keys.decode_response(record.value)
    return (Row(key, answer.value, {"value_hash": _hex(answer.value_hash)}),)


def _grouped_table(record: Record, key: bytes) -> tuple[Row, ...]:
    if record.value is None:
        return (Row(key, None),)
    change = table_changes.decode(record.value)
    return (Row(key, change.new, values={"old_value": change.old}),)


def _faust_window(record: Record, key: bytes) -> tuple[Row, ...]:
    window = faust.decode_window_key(key)
    facts = {"window_start_ms": round(window.start * 1000), "window_end_ms": round(window.end * 1000)}
    return (Row(faust.encode(window.key), record.value, facts),)


def _asked(value: bytes | None) -> tuple[dict[str, Fact], bytes | None]:
    if value is None:
        return {}, None
    asked = foreign_keys.decode_subscription(value)
    facts = {
        "instruction": asked.instruction.name.lower(),
        "value_hash": _hex(asked.value_hash),
        "primary_partition": asked.primary_partition,
        "version": asked.version,
    }
    return facts, asked.primary_key


def _source(context: RecordContext) -> dict[str, Fact]:
    return {
        "source_topic": context.topic,
        "source_partition": context.partition,
        "source_offset": context.offset,
        "source_time_ms": context.timestamp_ms,
    }


def _side(is_left: bool) -> str:
    return "left" if is_left else "right"


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


_DECODERS: Mapping[str, Callable[[Record, bytes], tuple[Row, ...]]] = MappingProxyType(
    {
        types.KEY_VALUE: _plain,
        types.VERSIONED: _plain,
        types.REPARTITION: _plain,
        types.FAUST: _plain,
        types.WINDOW: _window,
        types.SESSION: _session,
        types.JOIN: _join,
        types.OUTER_JOIN: _outer_join,
        types.SUPPRESS: _suppress,
        types.JOIN_BUFFER: _join_buffer,
        types.SUBSCRIPTION: _subscription,
        types.GROUPED_TABLE: _grouped_table,
        types.SUBSCRIPTION_REGISTRATION: _registration,
        types.SUBSCRIPTION_RESPONSE: _response,
        types.FAUST_WINDOW: _faust_window,
    }
)

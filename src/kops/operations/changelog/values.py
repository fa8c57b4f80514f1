"""What the values of a changelog hold besides the application's own bytes, by the type of its store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kops.core.records.models import timestamp_text
from kops.formats.streams import foreign_keys, join_buffers, stream_joins, suppression
from kops.formats.streams.record_context import RecordContext
from kops.formats.streams.writing import Headers


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
        """The application's own bytes."""
        return self.data if isinstance(self.data, tuple) else () if self.data is None else (self.data,)


def plain(_key: bytes, value: bytes, _headers: Headers) -> Value:
    """Return a value that is the application's own."""
    return Value(value)


def of_outer_join(key: bytes, value: bytes, _headers: Headers) -> Value:
    """Return the values of one side that found no partner yet."""
    values = stream_joins.decode_values(value)
    return Value(tuple(one.value for one in values), right=not stream_joins.decode_key(key).is_left)


def of_suppress(_key: bytes, value: bytes, headers: Headers) -> Value:
    """Return a change that waits to be emitted."""
    change = suppression.decode(value, headers)
    columns = {
        "buffer_time": timestamp_text(change.buffer_time_ms),
        "buffer_time_ms": change.buffer_time_ms,
        "source": _source(change.context),
    }
    return Value(change.new, also={"prior": change.prior, "old": change.old}, columns=columns)


def of_join_buffer(_key: bytes, value: bytes, _headers: Headers) -> Value:
    """Return a stream's record that waits for the table."""
    found = join_buffers.decode_value(value)
    return Value(found.value, columns={"source": _source(found.context)})


def of_foreign_key(key: bytes, value: bytes, _headers: Headers) -> Value:
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

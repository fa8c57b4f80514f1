"""Keys of windowed stores: ``key, start as int64, sequence as int32`` in a changelog, without the sequence in a topic and in suppress.

The changelogs of tumbling, hopping and sliding windows, of plain window stores and of the stores of a stream-stream join have such keys
(``WindowKeySchema.toStoreKeyBinary``). A windowed table that is written to a topic, and suppress, leave out the sequence
(``TimeWindowedSerializer``; KIP-393 explains why they differ). Neither has the window's end, which is the start plus the window's size.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kops.core.errors import UndecodableRecord

NO_END = 2**63 - 1
"""The end of a window that would end beyond the range of int64: ``Long.MAX_VALUE``."""

_STORED = struct.Struct(">qi")
_WRITTEN = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class WindowKey:
    """A key and its window.

    :param key: bytes of the application's serde
    :param start_ms: the window's start, in milliseconds since the epoch; in a join's store the record's own timestamp
    :param sequence: 0, except in stores that keep duplicates (joins), which count their records from 1; None where the format has none
    """

    key: bytes
    start_ms: int
    sequence: int | None = 0


def decode(data: bytes) -> WindowKey:
    """Decode a key of a windowed store's changelog.

    :raises UndecodableRecord: when it is too short, or no window can begin there: Kafka Streams itself cannot read such a key
    """
    at = _length_of_key(data, _STORED)
    start_ms, sequence = _STORED.unpack_from(data, at)
    return WindowKey(data[:at], _checked(start_ms), sequence)


def decode_without_sequence(data: bytes) -> WindowKey:
    """Decode a windowed key of a topic, or of the changelog of suppress.

    :raises UndecodableRecord: when it is too short, or no window can begin there
    """
    at = _length_of_key(data, _WRITTEN)
    (start_ms,) = _WRITTEN.unpack_from(data, at)
    return WindowKey(data[:at], _checked(start_ms), None)


def end_of(start_ms: int, size_ms: int) -> int:
    """Return the end of a window, which is exclusive (``WindowKeySchema.timeWindowForSize``)."""
    return min(start_ms + size_ms, NO_END)


def _length_of_key(data: bytes, form: struct.Struct) -> int:
    if len(data) < form.size:
        raise UndecodableRecord(f"{len(data)} bytes are too few for a windowed key: its window alone takes {form.size}")
    return len(data) - form.size


def _checked(start_ms: int) -> int:
    if not 0 <= start_ms < NO_END:
        raise UndecodableRecord(f"a window cannot begin at {start_ms}, before the epoch or at the end of time")
    return start_ms

"""Values in the changelog of ``suppress``: a buffered change, in four versions.

The header ``v`` names the version (``InMemoryTimeOrderedKeyValueChangeBuffer.restoreBatch``). Keys are the table's, windowed ones without
a sequence; tombstones have no header. The timestamp of a record is the time of writing, not that of the data.

=======  ============  ===============================================================================
version  written by    value
=======  ============  ===============================================================================
0        2.1           buffer time, old and new; no header ``v``: the record's own headers, time
1        2.2           buffer time, context, (old, new)
2        2.3           context, (old, new), prior, buffer time
3        2.4.0         context, prior, old, new, buffer time; 2.4.0, 2.4.1 and 2.5.0 call it version 2
=======  ============  ===============================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

from kops.core.errors import UndecodableRecord
from kops.formats.streams.reading import Headers, Reader

_LEAST_HEADER = 8


@dataclass(frozen=True, slots=True)
class RecordContext:
    """Where a value came from.

    :param timestamp_ms: timestamp of the record, milliseconds since the epoch
    :param topic: the topic that the record was read from: the repartition topic if there is one
    """

    timestamp_ms: int
    offset: int
    topic: str
    partition: int
    headers: Headers = ()


def read_context(reader: Reader) -> RecordContext:
    timestamp_ms, offset, topic, partition, count = reader.int64(), reader.int64(), reader.required_text(), reader.int32(), reader.int32()
    if count == -1:  # Kafka Streams 2.2 and 2.3, for a record without headers
        count = 0
    if not 0 <= count * _LEAST_HEADER <= reader.remaining:
        raise UndecodableRecord(f"{reader.remaining} bytes cannot hold {count} headers")
    headers = tuple((reader.required_text(), reader.nullable()) for _ in range(count))
    return RecordContext(timestamp_ms, offset, topic, partition, headers)


VERSION_HEADER = "v"
CURRENT_VERSION = 3
_SAME_AS_PRIOR = -2


@dataclass(frozen=True, slots=True)
class BufferedChange:
    """A change of a table that is held back.

    :param new: the value to be emitted; None deletes
    :param old: the value that the latest update replaced; None when there was none
    :param prior: the value emitted before for this key; None when there was none
    :param buffer_time_ms: the time that it counts for: the window's end, or the record's timestamp
    :param context: the record that changed it last; None in version 0, where the changelog record's own context applies
    """

    new: bytes | None
    old: bytes | None
    prior: bytes | None
    buffer_time_ms: int
    context: RecordContext | None


def version_of(headers: Headers) -> int:
    """Return the version that a record's headers name; 0 when they name none.

    :raises UndecodableRecord: when there is no such version
    """
    named = [value for name, value in headers if name == VERSION_HEADER]
    if not named:
        return 0
    if named[-1] not in (b"\x01", b"\x02", b"\x03"):
        raise UndecodableRecord(f"version {named[-1]!r} of a suppressed value is not known")
    return named[-1][0]


def decode(data: bytes, headers: Headers) -> BufferedChange:
    """Decode a value, by the version that the record's headers name.

    As in Kafka Streams: an invalid version 2 is read as version 3; bytes after a complete value are ignored.
    In versions 0 and 1 the old value is returned as the prior one: the value holds no other, and it is right for a key's first record.

    :raises UndecodableRecord: when the value is not of that version
    """
    version = version_of(headers)
    if version in (0, 1):
        return _with_time_first(Reader(data), version)
    if version == CURRENT_VERSION:
        return _version_3(Reader(data))
    try:
        return _version_2(Reader(data))
    except UndecodableRecord:
        return _version_3(Reader(data))


def read_version_3(reader: Reader) -> tuple[RecordContext, bytes | None, bytes | None, bytes | None]:
    """Read a context, the prior, the old and the new value (``BufferValue``)."""
    context, prior = read_context(reader), reader.nullable()
    length = reader.int32()
    if length == _SAME_AS_PRIOR:
        return context, prior, prior, reader.nullable()
    old = None if length == -1 else reader.raw(length)
    return context, prior, old, reader.nullable()


def _with_time_first(reader: Reader, version: int) -> BufferedChange:
    time = reader.int64()
    context = read_context(reader) if version else None
    pair = Reader(reader.required()) if version else reader
    old, new = pair.nullable(), pair.nullable()
    return BufferedChange(new, old, old, time, context)


def _version_2(reader: Reader) -> BufferedChange:
    context, pair = read_context(reader), Reader(reader.required())
    old, new = pair.nullable(), pair.nullable()
    prior = reader.nullable()
    return BufferedChange(new, old, prior, reader.int64(), context)


def _version_3(reader: Reader) -> BufferedChange:
    context, prior, old, new = read_version_3(reader)
    return BufferedChange(new, old, prior, reader.int64(), context)

"""What kops and the runner of an application's own code say to each other: frames, with records as columns.

The Java side is ``java/runner``, where ``Runner.run`` serves one conversation. All numbers are little-endian. A frame is

    int32 length of the body, uint8 kind, body

and a body is a map of texts or a batch of records (or empty). kops asks with one frame and reads until the answer's last frame, which
is ``HELLO``, ``DONE`` or ``FAILED``; before it there may be any number of ``OUTPUT`` frames. So neither side waits for the other while
it writes.

A map is

    int32 entries, then for each: int32 length, key in UTF-8, int32 length, value in UTF-8

and a batch is columns, one after the other; a length of -1 is a null:

    int32 rows, int32 topics, then for each topic: int32 length, name in UTF-8
    int32[rows] topic (a number in the list of names), int32[rows] partition
    int64[rows] offset, int64[rows] timestamp
    int32[rows] length of the key, int32[rows] length of the value, int32[rows] length of the headers
    the keys, the values, the headers

where the headers of a record are, for each: int32 length, name in UTF-8, int32 length (-1: null), value. The offset of an output row counts
what its task wrote to the topic and partition, from 0; its timestamp is -1 where the program gave none.

====== ========= ======================================================================================================================
Kind   Body      Meaning
====== ========= ======================================================================================================================
``C``  map       asks: ``partitions.TOPIC`` of each topic that is read or written; ``limit.TOPIC``, the largest batch that brokers
                 accept for it (without: any); ``config.NAME`` over the program's settings;
                 ``wall_clock`` (ms), where the clock stands; ``memory``, whether RocksDB stores are put in memory (true);
                 ``state.dir``, where the others are. Answered with ``H``
``G``  batch     records of global topics, before any task
``T``  map       starts a task: ``subtopology``, ``partition``; ``order``, "given" or "time" (the library chooses between partitions);
                 ``after``, topics with commas between, which it reads when the others have ended ("time" only);
                 ``commit.ms`` of the records' time, ``commit.records`` (0: never; default: the program's interval);
                 ``punctuate.records``, after how many records punctuators on stream time are called (1);
                 ``cache.bytes``; ``memory`` as above; ``keep``, "internal" topics (the default) or "all" that is written;
                 ``changelogs``, "all" rows (the default) or "last", where a changelog's rows come at the end, one for each key,
                 in the order of writing; ``restores`` (false): rows to restore may follow; ``committed.TOPIC`` and
                 ``metadata.TOPIC``: what the application had committed of its partition, from which the task takes stream time
``B``  batch     after such a ``T``, before its records: rows of its changelogs, which are put into its stores as by a restore
``R``  batch     records of its input partitions, each partition's in the order of its offsets; with the order "time" those that came
                 ahead of another partition's are held in memory
``E``  map       ``topic``: it has no more records (needed with the order "time" only)
``N``  empty     commits and closes the task, begins the program afresh (``C``, ``G`` and what was written to changelogs are given to it
                 again), and continues; without a task it only begins. ``T`` has ``restarted`` where this may follow (false)
``F``  empty     processes what is left, commits, closes. Answered with what happened
``Q``  empty     ends the conversation; so does the end of the stream
``H``  map       ``format``, ``kafka``, ``java``, ``application``, ``commit.ms``; ``subtopology.N.sources``, ``.repartition``,
                 ``.changelogs`` and ``.sinks``, each with commas between topics
``O``  batch     what the task wrote
``K``  map       done; after ``F``: ``records``, ``processed`` (in 3.0 and newer with those that cannot be read and are let go),
                 ``skipped`` (the library's count of dropped records), ``commits``, ``stream_time``, ``wall_clock_schedules``,
                 ``stream_time_schedules``, ``dropped.TOPIC`` (records to topics that are not kept), ``refused.TOPIC`` (records that its
                 producer refused as too large, and its handler passed over; not among ``skipped``), ``heap`` (the most that the JVM's
                 can be, in bytes), ``on_disk`` (stores, and changelogs whose last rows, outgrew the memory, with commas between),
                 ``without_key`` (topics with records whose partition is any), ``unknown_partitions`` (topics that were written with an
                 unknown number of partitions), ``close`` (what closing threw)
``X``  map       failed, and the task is gone; what it wrote counts no longer: ``by`` "program" or "runner", ``class`` and ``message``
                 of the first cause, ``heap``, ``outer_class``, ``outer_message``, ``trace``; of a program's also ``phase`` ("start",
                 "global", "read", "process", "punctuate", "commit", "restart"), and ``topic``, ``partition`` and ``offset`` of the record
                 in hand, if there was one: with "punctuate" and "commit" the last that was processed
====== ========= ======================================================================================================================
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy
    import pyarrow

    Numbers = numpy.ndarray[Any, numpy.dtype[Any]]

CONFIGURE, GLOBAL, TASK, RESTORE, RECORDS, END, RESTART, FINISH, QUIT = b"CGTBRENFQ"
HELLO, OUTPUT, DONE, FAILED = b"HOKX"

HEAD = struct.Struct("<iB")
"""In front of each body: its length, and the kind of the frame."""

FORMAT = "1"
"""What a ``HELLO`` of this format says."""

_LENGTH = struct.Struct("<i")

Headers = Sequence[tuple[str, bytes | None]]


class BrokenFrame(ValueError):
    """A body that is not what its kind says."""


@dataclass(frozen=True)
class Batch:
    """Records as columns, all of the same length."""

    topics: Sequence[str]
    """The names that ``topic`` counts."""
    topic: Numbers
    partition: Numbers
    offset: Numbers
    timestamp: Numbers
    key: pyarrow.Array
    """Binary, with nulls."""
    value: pyarrow.Array
    headers: pyarrow.Array
    """Binary, as ``encoded_headers`` gives them; null or empty where a record has none."""

    def __len__(self) -> int:
        return len(self.topic)


def frame(kind: int, body: bytes = b"") -> bytes:
    return HEAD.pack(len(body), kind) + body


def encoded_map(entries: Mapping[str, str]) -> bytes:
    """Return the body of a frame with texts."""
    texts = [text.encode() for entry in entries.items() for text in entry]
    return _LENGTH.pack(len(entries)) + b"".join(_LENGTH.pack(len(text)) + text for text in texts)


def decoded_map(body: bytes) -> dict[str, str]:
    """Return the texts of a body.

    :raises BrokenFrame: when it is cut off, or is longer than it says
    """
    try:
        (count,) = _LENGTH.unpack_from(body)
        texts, at = _texts(body, _LENGTH.size, 2 * count)
    except (struct.error, UnicodeDecodeError) as problem:
        raise BrokenFrame(f"not a map of texts: {problem}") from problem
    if at != len(body):
        raise BrokenFrame(f"{len(body) - at} bytes after a map of texts")
    return dict(zip(texts[::2], texts[1::2], strict=True))


def encoded_headers(headers: Headers) -> bytes:
    """Return a record's headers as a batch has them."""
    parts = []
    for name, value in headers:
        text = name.encode()
        parts += [_LENGTH.pack(len(text)), text, _LENGTH.pack(-1 if value is None else len(value)), value or b""]
    return b"".join(parts)


def decoded_headers(data: bytes | None) -> tuple[tuple[str, bytes | None], ...]:
    """Return the headers that a batch has for a record.

    :raises BrokenFrame: when they are cut off
    """
    headers: list[tuple[str, bytes | None]] = []
    at = 0
    try:
        while data is not None and at < len(data):
            (name,), at = _texts(data, at, 1)
            (length,) = _LENGTH.unpack_from(data, at)
            at += _LENGTH.size
            headers.append((name, None if length < 0 else data[at : at + length]))
            at += max(length, 0)
    except (struct.error, UnicodeDecodeError) as problem:
        raise BrokenFrame(f"not headers: {problem}") from problem
    if data is not None and at > len(data):
        raise BrokenFrame("headers that are cut off")
    return tuple(headers)


def encoded_batch(batch: Batch) -> bytes:
    """Return the body of a frame with records.

    :raises ValueError: when the columns are not of one length
    """
    rows = len(batch)
    columns = (batch.partition, batch.offset, batch.timestamp, batch.key, batch.value, batch.headers)
    if any(len(column) != rows for column in columns):
        raise ValueError("the columns of a batch are not of one length")
    names = [name.encode() for name in batch.topics]
    lengths, contents = zip(*map(_split, (batch.key, batch.value, batch.headers)), strict=True)
    numbers = [
        batch.topic.astype("<i4"),
        batch.partition.astype("<i4"),
        batch.offset.astype("<i8"),
        batch.timestamp.astype("<i8"),
        *lengths,
    ]
    return b"".join(
        [
            struct.pack("<ii", rows, len(names)),
            *(_LENGTH.pack(len(name)) + name for name in names),
            *(column.tobytes() for column in numbers),
            *contents,
        ]
    )


def decoded_batch(body: bytes) -> Batch:
    """Return the records of a body; keys, values and headers are views of its bytes.

    :raises BrokenFrame: when it is cut off, or is longer than it says
    """
    import numpy
    import pyarrow

    try:
        rows, count = struct.unpack_from("<ii", body)
        topics, at = _texts(body, 8, count)
        numbers = []
        for kind in ("<i4", "<i4", "<i8", "<i8", "<i4", "<i4", "<i4"):
            numbers.append(numpy.frombuffer(body, kind, rows, at))
            at += numbers[-1].nbytes
    except (struct.error, UnicodeDecodeError, ValueError) as problem:
        raise BrokenFrame(f"not a batch of records: {problem}") from problem
    buffer = pyarrow.py_buffer(body)
    columns = []
    for lengths in numbers[4:]:
        column, at = _joined(buffer, at, lengths)
        columns.append(column)
    if at != len(body):
        raise BrokenFrame(f"a batch of {at} bytes in a body of {len(body)}")
    topic, partition, offset, timestamp = numbers[:4]
    if rows and not 0 <= topic.min() <= topic.max() < count:
        raise BrokenFrame("a batch with a topic that it does not name")
    return Batch(topics, topic, partition, offset, timestamp, *columns)


def _texts(data: bytes, at: int, count: int) -> tuple[list[str], int]:
    """Return this many texts, each with its length in front, and where they end."""
    texts = []
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if not 0 <= length <= len(data) - at:
            raise struct.error(f"a text of {length} bytes")
        texts.append(data[at : at + length].decode())
        at += length
    return texts, at


def _split(column: pyarrow.Array) -> tuple[Numbers, memoryview]:
    """Return the lengths of a binary column, with -1 for nulls, and its bytes without gaps."""
    import numpy
    import pyarrow
    import pyarrow.compute

    if column.type != pyarrow.binary():
        column = column.cast(pyarrow.binary())
    if column.null_count:  # what stands behind a null may be any number of bytes
        lengths = pyarrow.compute.fill_null(pyarrow.compute.binary_length(column), -1).to_numpy().astype("<i4")
        column = pyarrow.compute.fill_null(column, b"")
    else:
        lengths = None
    _, starts, content = column.buffers()
    if not len(column) or starts is None:
        return numpy.zeros(0, "<i4"), memoryview(b"")
    offsets = numpy.frombuffer(starts, "<i4")[column.offset : column.offset + len(column) + 1]
    data = memoryview(content)[int(offsets[0]) : int(offsets[-1])] if content is not None else memoryview(b"")
    return (numpy.diff(offsets).astype("<i4") if lengths is None else lengths), data


def _joined(buffer: pyarrow.Buffer, at: int, lengths: Numbers) -> tuple[pyarrow.Array, int]:
    """Return the binary column of these lengths that begins here, and where it ends."""
    import numpy
    import pyarrow

    rows = len(lengths)
    offsets = numpy.zeros(rows + 1, numpy.int64)
    numpy.cumsum(numpy.maximum(lengths, 0), out=offsets[1:])
    size = int(offsets[-1])
    if size > buffer.size - at:
        raise BrokenFrame(f"a column of {size} bytes where {buffer.size - at} are left")
    valid = lengths >= 0
    mask = None if valid.all() else pyarrow.py_buffer(numpy.packbits(valid, bitorder="little").tobytes())
    parts = [mask, pyarrow.py_buffer(offsets.astype(numpy.int32).tobytes()), buffer.slice(at, size)]
    return pyarrow.Array.from_buffers(pyarrow.binary(), rows, parts), at + size

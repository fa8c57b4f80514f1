"""The frames that the runner of an application's own code reads and writes. Its Java side is in tests/streams/test_own_code.py."""

import struct

import numpy
import pyarrow
import pytest

from kops.formats import runner_frames as frames

HEADERS = [(), (("a", b"1"), ("a", None), ("ü", b"")), ()]


def batch(**changed):
    columns = {
        "topics": ["in", "Kühe"],
        "topic": numpy.array([1, 0, 1]),
        "partition": numpy.array([2, 0, 7]),
        "offset": numpy.array([0, 2**40, 5]),
        "timestamp": numpy.array([-1, 2**41, 0]),
        "key": pyarrow.array([b"k", None, b""], pyarrow.binary()),
        "value": pyarrow.array([None, b"\x00\xff", None], pyarrow.binary()),
        "headers": pyarrow.array([frames.encoded_headers(headers) for headers in HEADERS], pyarrow.binary()),
    }
    return frames.Batch(**{**columns, **changed})


def plain(of):
    numbers = [column.tolist() for column in (of.topic, of.partition, of.offset, of.timestamp)]
    headers = [frames.decoded_headers(one) for one in of.headers.to_pylist()]
    return [list(of.topics), *numbers, of.key.to_pylist(), of.value.to_pylist(), headers]


def test_a_batch_comes_back():
    assert plain(frames.decoded_batch(frames.encoded_batch(batch()))) == plain(batch())


def test_the_bytes_of_a_batch_are_those_of_the_description():
    body = frames.encoded_batch(batch())
    names = struct.pack("<ii2si5s", 2, 2, b"in", 5, "Kühe".encode())
    numbers = struct.pack("<3i3i3q3q", 1, 0, 1, 2, 0, 7, 0, 2**40, 5, -1, 2**41, 0)
    headers = struct.pack("<i1si1si1sii2si", 1, b"a", 1, b"1", 1, b"a", -1, 2, "ü".encode(), 0)
    lengths = struct.pack("<3i3i3i", 1, -1, 0, -1, 2, -1, 0, len(headers), 0)
    assert body == struct.pack("<i", 3) + names + numbers + lengths + b"k" + b"\x00\xff" + headers


@pytest.mark.parametrize("kind", [pyarrow.binary(), pyarrow.large_binary()])
def test_columns_may_be_parts_of_longer_ones_with_anything_behind_nulls(kind):
    mask = pyarrow.array([True, False, True, False]).buffers()[1]
    whole = pyarrow.array([b"aa", b"bbb", b"c", b"dddd"], pyarrow.binary())
    nulls = pyarrow.Array.from_buffers(pyarrow.binary(), 4, [mask, *whole.buffers()[1:]])
    assert nulls.to_pylist() == [b"aa", None, b"c", None]
    parts = batch(key=nulls[1:].cast(kind), value=whole[1:].cast(kind))
    back = frames.decoded_batch(frames.encoded_batch(parts))
    assert back.key.to_pylist() == [None, b"c", None]
    assert back.value.to_pylist() == [b"bbb", b"c", b"dddd"]
    back.key.validate(full=True)


@pytest.mark.parametrize("column", [[None, None, None], [b"", b"", b""]])
def test_columns_without_a_byte(column):
    empty = pyarrow.array(column, pyarrow.binary())
    assert frames.decoded_batch(frames.encoded_batch(batch(key=empty, value=empty, headers=empty))).value.to_pylist() == column


def test_a_batch_of_no_records():
    none, binary = numpy.zeros(0, numpy.int64), pyarrow.array([], pyarrow.binary())
    empty = frames.Batch([], none, none, none, none, binary, binary, binary)
    body = frames.encoded_batch(empty)
    assert body == struct.pack("<ii", 0, 0)
    assert len(frames.decoded_batch(body)) == 0


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="not of one length"):
        frames.encoded_batch(batch(offset=numpy.array([1])))


def test_no_part_of_a_batch_is_a_batch():
    body = frames.encoded_batch(batch())
    for length in range(len(body)):
        with pytest.raises(frames.BrokenFrame):
            frames.decoded_batch(body[:length])
    with pytest.raises(frames.BrokenFrame, match="in a body of"):
        frames.decoded_batch(body + b"x")


def test_a_batch_names_all_its_topics():
    with pytest.raises(frames.BrokenFrame, match="does not name"):
        frames.decoded_batch(frames.encoded_batch(batch(topic=numpy.array([0, 2, 0]))))


def test_a_map_comes_back():
    entries = {"": "", "partitions.Kühe": "6", "message": "two\nlines"}
    body = frames.encoded_map(entries)
    assert frames.decoded_map(body) == entries
    assert frames.decoded_map(frames.encoded_map({})) == {}
    for length in range(len(body)):
        with pytest.raises(frames.BrokenFrame):
            frames.decoded_map(body[:length])
    with pytest.raises(frames.BrokenFrame, match="1 bytes after"):
        frames.decoded_map(body + b"x")


def test_headers_that_are_cut_off():
    data = frames.encoded_headers(HEADERS[1])
    whole = {len(frames.encoded_headers(HEADERS[1][:count])) for count in range(4)}
    for length in range(len(data) + 1):
        if length in whole:
            assert frames.decoded_headers(data[:length]) == HEADERS[1][: sorted(whole).index(length)]
        else:
            with pytest.raises(frames.BrokenFrame):
                frames.decoded_headers(data[:length])
    assert frames.decoded_headers(None) == ()


def test_a_frame_has_its_length_and_kind_in_front():
    assert frames.frame(frames.FINISH) == b"\x00\x00\x00\x00F"
    assert frames.frame(frames.TASK, b"abc") == b"\x03\x00\x00\x00Tabc"
    kinds = [frames.CONFIGURE, frames.GLOBAL, frames.TASK, frames.RECORDS, frames.END, frames.FINISH, frames.QUIT]
    assert bytes(kinds) == b"CGTREFQ"
    assert bytes([frames.HELLO, frames.OUTPUT, frames.DONE, frames.FAILED]) == b"HOKX"

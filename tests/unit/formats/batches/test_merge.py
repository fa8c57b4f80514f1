"""Records of several batches as one: byte for byte what encoding the decoded records gives."""

import random
from dataclasses import replace

import numpy
import pyarrow
import pytest

from kops.formats.batches.columns import decode, offsets_between
from kops.formats.batches.copy import columns_of_records
from kops.formats.batches.encode import columns_of, encode, one_record, split
from kops.formats.batches.frames import frames_of
from kops.formats.batches.header import Producer, batches_of
from kops.formats.batches.merge import merged, split_frames

SOME = [None, b"", b"k", b"x" * 63, b"y" * 64, b"z" * 9000]
START, MANY = 1_760_000_000_000, 10_000
WHO = Producer(7, 3, 11, transactional=True)
OTHERS = [pytest.param(*each, marks=pytest.mark.slow) for each in ((300, 30_000, 4), (MANY, 9_000, 0))]


def batches(count, seed, most, codec=0):
    """Return a log of small batches, with odd times."""
    rng, some = random.Random(seed), SOME if count < MANY else SOME[:3]
    keys, values = (pyarrow.array([rng.choice(some) for _ in range(count)], pyarrow.binary()) for _ in range(2))
    times = pyarrow.array([rng.choice([0, -1, START + rng.randrange(10**7)]) for _ in range(count)], pyarrow.int64())
    data, offset = b"", 0
    for part in split(columns_of(keys, values, times), most):
        batch = encode(part, Producer(1, 0, 0), codec)
        data += offset.to_bytes(8, "big") + batch[8:]
        offset += len(part)
    return data, batches_of(data)


@pytest.mark.parametrize(("count", "most", "codec"), [(1, 10, 0), (700, 12_000, 0), *OTHERS])
def test_merged_is_what_decoding_and_encoding_gives(count, most, codec):
    data, found = batches(count, count, most, codec)
    frames, columns = frames_of(data, found), columns_of_records(decode(data, found))
    for start, stop in ((0, count), (count // 3, count // 3 + 1), (count // 2, count)):
        assert merged(frames.where(slice(start, stop)), WHO) == encode(columns.part(start, stop), WHO)
    assert merged(frames, WHO, 2) == encode(columns, WHO, 2)


def test_parts_are_no_larger_than_wanted_and_hold_all():
    data, found = batches(900, 5, 16_000)
    frames = frames_of(data, found)
    parts = list(split_frames(frames, 50_000))
    assert sum(map(len, parts)) == len(frames) == 900
    assert max(len(merged(part, WHO)) for part in parts) <= 50_000
    alone = list(split_frames(frames, 1000))
    assert max(len(merged(part, WHO)) for part in alone if len(part) > 1) <= 1000


def test_a_range_begins_and_ends_within_batches():
    data, found = batches(500, 3, 20_000)
    frames, columns = (offsets_between(of(data, found), 17, 451) for of in (frames_of, decode))
    assert frames.offsets.tolist() == list(range(17, 451))
    assert merged(frames, WHO) == encode(columns_of_records(columns), WHO)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("codec", [0, pytest.param(4, marks=pytest.mark.slow)])
def test_few_records_are_found_among_many(codec, gaps):
    data, found = batches(700, 7, 12_000, codec)
    if gaps:  # a batch that compaction has taken records of says so by its last offset alone
        found = [replace(batch, last_offset=batch.last_offset + gaps) if batch is found[0] else batch for batch in found]
    frames, rng = frames_of(data, found), random.Random(codec)
    for count in (0, 1, 7, 350, 700):
        rows = numpy.array(sorted(rng.sample(range(700), count)), dtype=numpy.int64)
        only = frames_of(data, found, rows)
        only = only.where(numpy.isin(only.offsets, rows)) if gaps else only
        assert only.offsets.tolist() == rows.tolist()
        assert all((getattr(only, name) == getattr(frames, name)[rows]).all() for name in ("timestamps", "at", "ends"))
    beyond = frames_of(data, found[1:3], numpy.arange(2000))
    assert beyond.offsets.tolist() == list(range(found[1].base_offset, found[2].last_offset + 1))


def test_one_record_is_encoded_as_from_arrow():
    key, value = (pyarrow.array([each], pyarrow.binary()) for each in (b"group", b"x" * 200))
    expected = encode(columns_of(key, value, pyarrow.array([START], pyarrow.int64())), WHO)
    assert encode(one_record(b"group", b"x" * 200, START), WHO) == expected

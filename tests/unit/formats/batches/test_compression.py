"""A few bytes that unfold to very many: the batch is named, and memory stays bounded."""

import struct
import zlib

import pyarrow
import pytest

from kops.formats.batches import compression as record_compression
from kops.formats.batches import frames as record_frames
from kops.formats.batches.columns import decode, decode_in_parts
from kops.formats.batches.compression import CODECS, TooManyBytes, compressed, decompressed
from kops.formats.batches.copy import fingerprint
from kops.formats.batches.encode import columns_of, encode
from kops.formats.batches.header import HugeBatch, Producer, batches_of, framed

WRITER = Producer(-1, -1, 0)
LIMIT = 1 << 20


@pytest.fixture
def small(monkeypatch):
    """A limit that tests reach at once."""
    monkeypatch.setattr(record_compression, "MOST_BYTES", LIMIT)


def xerial(*blocks):
    """Frames as snappy-java writes them."""
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("codec", [name for name in CODECS if name != "none"])
def test_what_is_within_the_limit_is_read_and_more_is_not(codec):
    number = CODECS[codec]
    assert decompressed(compressed(bytes(LIMIT), number), number) == bytes(LIMIT)
    with pytest.raises(TooManyBytes, match="its records take more than"):
        decompressed(compressed(bytes(LIMIT + 1), number), number)


@pytest.mark.slow
def test_a_bomb_is_not_unfolded():
    bomb = pyarrow.compress(bytes(300 << 20), codec="zstd", asbytes=True)
    assert len(bomb) < 64 << 10
    with pytest.raises(TooManyBytes):
        decompressed(bomb, CODECS["zstd"])
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(300)) + packer.flush()
    with pytest.raises(TooManyBytes):
        decompressed(bomb, CODECS["gzip"])


def test_a_length_that_snappy_claims():
    claims_8_gib = b"\x80\x80\x80\x80\x20" + b"\0" * 20
    for block in (claims_8_gib, xerial(claims_8_gib)):
        with pytest.raises(TooManyBytes):
            decompressed(block, CODECS["snappy"])
    many = xerial(*[pyarrow.compress(bytes(LIMIT), codec="snappy", asbytes=True)] * 300)
    with pytest.raises(TooManyBytes):
        decompressed(many, CODECS["snappy"])
    for broken in (xerial(b"abc") + struct.pack(">i", -4), xerial(b""), b"\xff" * 30):
        with pytest.raises(ValueError, match=r"compression 2|a frame of"):
            decompressed(broken, CODECS["snappy"])


def batch_of(value, codec="zstd"):
    """One record in a batch."""
    columns = columns_of(
        pyarrow.array([b"k"], pyarrow.binary()), pyarrow.array([value], pyarrow.binary()), pyarrow.array([1], pyarrow.int64())
    )
    plain = encode(columns, WRITER)
    return framed(compressed(plain[61:], CODECS[codec]), 1, (1, 1), WRITER, CODECS[codec])


def numbered(*batches):
    return b"".join(struct.pack(">q", offset) + batch[8:] for offset, batch in enumerate(batches))


@pytest.mark.usefixtures("small")
def test_the_batch_is_named():
    data = numbered(batch_of(b"fine"), batch_of(bytes(2 * LIMIT)))
    for read in (lambda batches: decode(data, batches), lambda batches: fingerprint(data, batches[-1], inflated=True)):
        with pytest.raises(HugeBatch, match=r"the batch at offset 1 cannot be read: its records take more than"):
            read(batches_of(data))


def test_many_batches_are_read_in_parts(monkeypatch):
    data = numbered(*[batch_of(b"%d" % number * 1_000) for number in range(10)])
    (whole,) = decode_in_parts(data, batches_of(data))
    monkeypatch.setattr(record_frames, "MOST_AT_ONCE", 3_000)
    parts = list(decode_in_parts(data, batches_of(data)))
    assert len(parts) > 3
    assert [value for part in parts for value in part.values().to_pylist()] == whole.values().to_pylist()
    assert [offset for part in parts for offset in part.offsets.tolist()] == list(range(10))

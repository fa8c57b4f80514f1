"""Keys and values of ``__consumer_offsets``: the bytes here are what Kafka's generated classes write for these fields."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.core.errors import UndecodableRecord
from kops.core.models import CommittedOffset, TopicPartition
from kops.formats.base import as_text_or_base64
from kops.formats.groups.consumer_offsets import (
    OffsetKey,
    OffsetValue,
    decode_key,
    decode_value,
    java_hash,
    key_prefixes,
    partition_of_group,
)
from kops.formats.groups.shown import shown_record


def short(text):
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def key(version, group, topic, partition):
    return struct.pack(">h", version) + short(group) + short(topic) + struct.pack(">i", partition)


VALUES = [
    (struct.pack(">hq", 0, 42) + short("m") + struct.pack(">q", 1000), OffsetValue(CommittedOffset(42, "m"), 1000)),
    (struct.pack(">hq", 1, 42) + short("m") + struct.pack(">qq", 1000, 2000), OffsetValue(CommittedOffset(42, "m"), 1000)),
    (struct.pack(">hq", 1, 42) + short("") + struct.pack(">qq", 1000, -1), OffsetValue(CommittedOffset(42, ""), 1000)),
    (struct.pack(">hq", 2, 42) + short("ü") + struct.pack(">q", 1000), OffsetValue(CommittedOffset(42, "ü"), 1000)),
    (struct.pack(">hqi", 3, 42, 7) + short("") + struct.pack(">q", 1000), OffsetValue(CommittedOffset(42, "", 7), 1000)),
    (struct.pack(">hqi", 3, 42, -1) + short("") + struct.pack(">q", 1000), OffsetValue(CommittedOffset(42, ""), 1000)),
    (struct.pack(">hqi", 4, 42, 7) + b"\x02m" + struct.pack(">q", 1000) + b"\x00", OffsetValue(CommittedOffset(42, "m", 7), 1000)),
    (
        struct.pack(">hqi", 4, 42, 7) + b"\x81\x02" + b"m" * 256 + struct.pack(">q", 1) + b"\x00",
        OffsetValue(CommittedOffset(42, "m" * 256, 7), 1),
    ),
]


@pytest.mark.parametrize(("data", "value"), VALUES)
def test_values(data, value):
    assert decode_value(data) == value
    for end in range(len(data) - (1 if data[1] == 4 else 0)):
        with pytest.raises(UndecodableRecord):
            decode_value(data[:end])


def test_a_version_that_nobody_knows():
    with pytest.raises(UndecodableRecord, match="version 5"):
        decode_value(struct.pack(">hq", 5, 1))


@pytest.mark.parametrize("version", [0, 1])
def test_keys(version):
    data = key(version, "billing", "orders", 3)
    assert decode_key(data) == OffsetKey("billing", TopicPartition("orders", 3))
    assert data.startswith(key_prefixes("billing"))
    assert not data.startswith(key_prefixes("bill"))
    for end in range(len(data)):
        with pytest.raises(UndecodableRecord):
            decode_key(data[:end])


@pytest.mark.parametrize("version", [2, 3, 17, 18])
def test_other_records_are_none(version):
    assert decode_key(struct.pack(">h", version) + short("billing")) is None


@given(st.text(max_size=20), st.from_regex(r"[a-z._-]{1,20}", fullmatch=True), st.integers(0, 2**31 - 1))
def test_any_key_comes_back(group, topic, partition):
    assert decode_key(key(1, group, topic, partition)) == OffsetKey(group, TopicPartition(topic, partition))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_record_or_an_error(data):
    for decode in (decode_key, decode_value):
        with contextlib.suppress(UndecodableRecord):
            decode(data)


@pytest.mark.parametrize(
    ("text", "code"), [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -(2**31)), ("😀", 1772899), ("orders-billing", None)]
)
def test_hashes_are_javas(text, code):
    if code is not None:
        assert java_hash(text) == code
    assert 0 <= partition_of_group(text, 50) < 50
    assert partition_of_group("polygenelubricants", 50) == 0


COMMIT = struct.pack(">hqi", 3, 42, 7) + short("m") + struct.pack(">q", 1_700_000_000_000)


@pytest.mark.parametrize(
    ("key_bytes", "value", "shown"),
    [
        (
            key(1, "g", "t", 3),
            COMMIT,
            (
                {"type": "offset_commit", "group": "g", "topic": "t", "partition": 3},
                {"offset": 42, "leader_epoch": 7, "metadata": "m", "committed_at": "2023-11-14T22:13:20.000Z", "topic_id": None},
            ),
        ),
        (key(1, "g", "t", 3), None, ({"type": "offset_commit", "group": "g", "topic": "t", "partition": 3}, None)),
        (key(1, "g", "t", 3), b"\0\7", ({"type": "offset_commit", "group": "g", "topic": "t", "partition": 3}, as_text_or_base64(b"\0\7"))),
        (
            struct.pack(">h", 5) + short("g") + short("m-1"),
            b"\0\0",
            ({"type": "consumer_group_member_metadata", "group": "g", "member": "m-1"}, as_text_or_base64(b"\0\0")),
        ),
        (
            struct.pack(">h", 16) + short("g") + short("t.*"),
            None,
            ({"type": "consumer_group_regular_expression", "group": "g", "regular_expression": "t.*"}, None),
        ),
        (struct.pack(">h", 17) + short("g"), None, ({"type": "streams_group_metadata", "group": "g"}, None)),
        (struct.pack(">h", 99), b"x", (as_text_or_base64(struct.pack(">h", 99)), {"data": "x", "encoding": "text"})),
        (b"\0", None, (as_text_or_base64(b"\0"), None)),
    ],
)
def test_records_are_shown(key_bytes, value, shown):
    assert shown_record(key_bytes, value) == shown

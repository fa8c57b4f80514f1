"""Joins and grouped tables: what TopologyTestDriver 4.3.1 wrote; tests/streams/test_formats.py asks the library for thousands more."""

import pytest

from kops.core.errors import UndecodableRecord
from kops.formats.streams import foreign_keys, join_buffers, positions, stream_joins, table_changes
from kops.formats.streams.foreign_keys import CombinedKey, Instruction, Response, Subscription
from kops.formats.streams.stream_joins import JoinSideKey, JoinSideValue
from kops.formats.streams.table_changes import TableChange
from support.streams_encoders import (
    encode_join_side_key,
    encode_join_side_values,
    encode_table_change,
    position_headers,
)

HASH = bytes.fromhex("7cceb46e5bde39b69b73f1593bae1c9f")


def test_the_shared_store_of_an_outer_join():
    key, values = bytes.fromhex("0000000000000064016b"), bytes.fromhex("0100000001000000020161")
    assert stream_joins.decode_key(key) == JoinSideKey(b"k", 100, is_left=True)
    assert encode_join_side_key(JoinSideKey(b"k", 100, is_left=True)) == key
    assert stream_joins.decode_values(values) == (JoinSideValue(b"a", is_left=True),)
    assert encode_join_side_values([JoinSideValue(b"a", is_left=True)]) == values


def test_subscriptions_of_a_foreign_key_join():
    asked, deleted = b"\x01\x03" + HASH + b"k\x00\x00\x00\x00", b"\x81\x01k\x00\x00\x00\x00"
    assert foreign_keys.decode_subscription(asked) == Subscription(b"k", Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE, HASH, 0)
    assert foreign_keys.decode_subscription(deleted) == Subscription(b"k", Instruction.DELETE_KEY_AND_PROPAGATE, None, 0)
    assert foreign_keys.decode_subscription(b"\x00\x02" + HASH + b"k").primary_partition is None
    assert foreign_keys.decode_response(b"\x80") == Response(None, None)
    assert foreign_keys.decode_key(b"\x00\x00\x00\x01xk") == CombinedKey(b"x", b"k")


def test_changes_on_the_way_to_a_grouped_table():
    for data, change in {
        b"x\x01": TableChange(b"x", None),
        b"\x02xx\x02": TableChange(b"x", b"x"),
        b"x\x00": TableChange(None, b"x"),
    }.items():
        assert table_changes.decode(data) == change
        assert encode_table_change(change) == data


@pytest.mark.parametrize(
    ("decode", "data", "says"),
    [
        (stream_joins.decode_key, bytes(8) + b"\x02k", "1 .left. or 0 .right., not 2"),
        (stream_joins.decode_key, bytes(8), "end within"),
        (stream_joins.decode_values, b"\x00\x00\x00\x00\x00", "begins with 1"),
        (stream_joins.decode_values, b"\x01\x7f\xff\xff\xff", "cannot hold a list of 2147483647"),
        (stream_joins.decode_values, b"\x01\x00\x00\x00\x00left", "4 of 9 bytes are left over"),
        (join_buffers.decode_key, b"\x01" + bytes(12), "begins with 0"),
        (foreign_keys.decode_subscription, b"\x02\x00k", "version 2"),
        (foreign_keys.decode_subscription, b"\x81\x04k\x00\x00\x00\x00", "instruction 4"),
        (foreign_keys.decode_response, b"\x01", "version 1"),
        (foreign_keys.decode_key, b"\x00\x00\x00\x05k", "end within"),
        (table_changes.decode, b"", "not empty"),
        (table_changes.decode, b"x\x06", "form 6"),
        (table_changes.decode, b"x\x02\x03", "0 or 1"),
        (table_changes.decode, b"\xff" * 100_000 + b"\x02", "longer than 5 bytes"),
        (positions.decode, b"\x01", "version 1"),
        (positions.decode, b"\x00\xff\xff\xff\xff", "-1 parts"),
    ],
)
def test_other_bytes_are_refused(decode, data, says):
    with pytest.raises(UndecodableRecord, match=says):
        decode(data)


def test_positions_travel_in_headers():
    assert positions.position_of((("v", b"\x03"),)) is None
    assert positions.position_of(()) is None
    assert positions.position_of(position_headers({})) == {}

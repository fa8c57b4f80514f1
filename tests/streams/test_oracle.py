"""What kops' rules rest on: the real Kafka Streams does these things, in each version that kops names."""

import struct

import pytest

from support import streams_cases as cases
from support.programs import KeyBy, Program, Record
from support.streams import Entry, compacted_view

pytestmark = pytest.mark.streams


def of(oracle, program, *records):
    return compacted_view(oracle.run(program, [Record(*record) for record in records]).changelog, partitions=False)


def test_null_keys_and_null_values_are_dropped(oracle):
    assert of(oracle, Program("count", "long", value="string"), (None, b"x", 5), (b"k", None, 9), (b"k", b"", 3)) == {
        b"k": Entry(struct.pack(">q", 1), 3, (), None)
    }


def test_a_missing_field_drops_the_record_and_its_timestamp(oracle):
    view = of(oracle, Program("sum", "double", "price"), (b"k", b'{"price":2}', 5), (b"k", b'{"price":null}', 9), (b"k", b"{}", 10))
    assert view == {b"k": Entry(struct.pack(">d", 2), 5, (), None)}


def test_the_greatest_timestamp_stays(oracle):
    assert of(oracle, Program("last", "string", value="string"), (b"k", b"a", 9), (b"k", b"b", 3)) == {b"k": Entry(b"b", 9, (), None)}


def test_a_table_takes_the_last_record_with_its_own_timestamp(oracle):
    table = Program("table", "string", value="string")
    assert of(oracle, table, (b"k", b"a", 9), (b"k", b"b", 3)) == {b"k": Entry(b"b", 3, (), None)}
    assert of(oracle, table, (b"k", b"a", 9), (b"k", None, 3)) == {}
    assert of(oracle, table, (b"k", b"a", 9), (b"k", None, 3), (b"k", b"c", 1)) == {b"k": Entry(b"c", 1, (), None)}


def test_after_an_aggregate_was_deleted_its_timestamp_is_forgotten(oracle):
    program = Program("concat_or_delete", "string", value="string")
    assert of(oracle, program, (b"k", b"a", 9), (b"k", b"", 3), (b"k", b"c", 1)) == {b"k": Entry(b"c", 1, (), None)}


def test_sums_wrap_and_round_in_their_own_type(oracle):
    total = of(oracle, Program("sum", "int", value="int"), (b"k", struct.pack(">i", 2**31 - 1), 1), (b"k", struct.pack(">i", 1), 2))
    assert total[b"k"].value == struct.pack(">i", -(2**31))
    ones = [(b"k", struct.pack(">f", value), 1) for value in (16777216.0, 1.0, 1.0)]
    assert of(oracle, Program("sum", "float", value="float"), *ones)[b"k"].value == struct.pack(">f", 16777216.0)


def test_input_headers_do_not_reach_the_changelog(oracle):
    written = oracle.run(Program("count", "long", value="string", key_by=KeyBy(), output="out"), [Record(b"k", b"v", 1, (("h", b"1"),))])
    assert written.changelog[0].headers == ()
    assert written.output[0].headers == (("h", b"1"),)


@pytest.mark.parametrize("further", [False, pytest.param(True, marks=pytest.mark.long)])
def test_kafka_streams_4_1_writes_the_same(oracle, older_oracle, further):
    for case in (*cases.own_key_cases(), *cases.new_key_cases()):
        if (case.name in cases.FURTHER) != further:
            continue
        assert older_oracle.run(case.program, case.records).topics == oracle.run(case.program, case.records).topics, case.name

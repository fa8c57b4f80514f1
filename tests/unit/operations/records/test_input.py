import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.core.errors import UsageProblem
from kops.core.models import NewRecord
from kops.core.records.models import Record
from kops.formats.registry import FORMATS
from kops.operations.records.input import RecordOverrides, from_json, from_lines, from_whole
from kops.operations.records.rows import BYTES, stream_row
from kops.plugins.loader import load_format


def lines(data, **given):
    return [record for _, record in from_lines("-", io.BytesIO(data), RecordOverrides(**given))]


def objects(*bodies, **given):
    data = "\n".join(body if isinstance(body, str) else json.dumps(body) for body in bodies).encode()
    return [record for _, record in from_json("-", io.BytesIO(data), RecordOverrides(**given), lambda _part, name: load_format(name))]


def test_each_line_is_a_value_with_its_bytes_as_they_are():
    assert lines(b"a\n\n\xff \r\nlast") == [NewRecord(None, value) for value in (b"a", b"", b"\xff \r", b"last")]
    assert lines(b"") == []


def test_keys_nulls_and_what_the_command_line_adds():
    given = {"key_separator": b"::", "null": b"NULL", "headers": (("h", b"1"),), "timestamp": 5, "partition": 2}
    assert lines(b"k::v::w\nNULL::NULL\n::\n", **given) == [
        NewRecord(b"k", b"v::w", 5, 2, (("h", b"1"),)),
        NewRecord(None, None, 5, 2, (("h", b"1"),)),
        NewRecord(b"", b"", 5, 2, (("h", b"1"),)),
    ]
    assert lines(b"v\n", key=b"k", has_key=True) == [NewRecord(b"k", b"v")]
    assert lines(b"7\n", value_format=FORMATS["long"]) == [NewRecord(None, (7).to_bytes(8, "big"))]


@pytest.mark.parametrize(
    ("data", "given", "message"),
    [
        (b"k:v\nv\n", {"key_separator": b":"}, "line 2: there is no ':' between key and value"),
        (b"x\n", {"value_format": FORMATS["long"]}, "line 1: 'x' is not long"),
        (b"\xff\n", {"value_format": FORMATS["string"]}, "line 1 is not UTF-8"),
    ],
)
def test_broken_lines_are_named(data, given, message):
    with pytest.raises(UsageProblem, match=message):
        lines(data, **given)


def test_whole_files():
    assert [record for _, record in from_whole("f", io.BytesIO(b"a\nb\n"), RecordOverrides(key=b"k"))] == [NewRecord(b"k", b"a\nb\n")]


def test_json_lines_by_hand():
    assert objects({"value": "text"}, "", {"key": 1, "value": {"a": [1, "ü"]}}, {"key": None, "value": None}) == [
        NewRecord(None, b"text"),
        NewRecord(b"1", '{"a":[1,"ü"]}'.encode()),
        NewRecord(None, None),
    ]
    assert objects({"value": "b", "headers": {"a": "1", "n": None}, "partition": 4, "timestamp_ms": 9}) == [
        NewRecord(None, b"b", 9, 4, (("a", b"1"), ("n", None)))
    ]
    body = {"key": "theirs", "value": 7, "partition": 4, "timestamp_ms": 9}
    given = {"key": b"ours", "has_key": True, "timestamp": 1, "keep_partition": False, "value_format": FORMATS["long"]}
    assert objects(body, **given) == [NewRecord(b"ours", (7).to_bytes(8, "big"), 1, None)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"key": "a"}', "line 1: it has no value"),
        ("[]", "line 1 is not an object"),
        ('{"value": "a", "timestmap": "2026-11-20T14:05:00.000Z"}', "line 1: it has the field timestmap, which a record has not"),
        ('{"value": "a", "ts": 5}', "it has the field ts"),
        ('{"value": "a", "value": "b"}', "it has a field more than once"),
        ('{"value": "a", "tombstone": true}', "it is a tombstone and has a value"),
        ('{"value": "x", "timestamp": "today"}', "'today' is not a valid date and time"),
        ('{"value": "x", "timestamp": 1700000000000}', "which is not a date and time"),
        ('{"value": "x", "timestamp": "2026-11-20T14:05:00.000Z", "timestamp_ms": 5}', "timestamp_ms 5 is another time"),
        ('{"value": "x", "timestamp_ms": 5.5}', "timestamp_ms is 5.5"),
        ('{"value": "x", "headers": [{"key": "a", "value": "1", "encodnig": "text"}]}', "a header has the field encodnig"),
        ("nonsense", "line 1 is not JSON"),
        ('{"value": "a", "value_encoding": "base64"}', "is not base64"),
        ('{"value": 1, "value_encoding": "text"}', "is not text"),
        ('{"value": 1, "value_encoding": "lnog"}', "there is no format 'lnog'"),
        ('{"value": "x", "value_encoding": "long"}', "is not long"),
        ('{"value": "x", "partition": -1}', "partition is -1"),
        ('{"value": "x", "timestamp_ms": "now"}', "timestamp_ms is"),
        ('{"value": "x", "headers": [1]}', "the headers are none"),
        ('{"value": "x", "headers": [{"key": "a"}]}', "the headers are none"),
        ('{"value": "x", "headers": [{"key": "a", "value": "1", "encoding": "long"}]}', "a header is text or base64"),
    ],
)
def test_broken_json_is_named(line, message):
    with pytest.raises(UsageProblem, match=message):
        objects(line)


DATA = st.none() | st.binary(max_size=30) | st.text(st.characters(exclude_categories=["Cs"]), max_size=10).map(str.encode)
RECORDS = st.builds(
    Record,
    topic=st.just("t"),
    partition=st.integers(0, 9),
    offset=st.integers(0, 2**40),
    timestamp=st.none() | st.integers(1, 2**41),
    key=DATA,
    value=DATA,
    headers=st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), DATA), max_size=3).map(tuple),
)


@given(RECORDS)
def test_what_consume_writes_comes_back_the_same(record):
    line = json.dumps(stream_row(record, BYTES, BYTES), ensure_ascii=False)
    assert objects(line) == [NewRecord(record.key, record.value, record.timestamp, record.partition, record.headers)]


@given(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
def test_formats_come_back_by_their_names(number, floating):
    data = Record("t", 0, 0, 1, number.to_bytes(8, "big", signed=True), FORMATS["double"].encode(floating))
    line = json.dumps(stream_row(data, FORMATS["long"], FORMATS["double"]))
    if abs(floating) != float("inf"):
        (made,) = objects(line)
        assert (made.key, made.value) == (data.key, data.value)


def test_a_misspelt_field_has_a_suggestion():
    with pytest.raises(UsageProblem) as caught:
        objects('{"value": "a", "timestamp-ms": 5}')
    assert "did you mean timestamp_ms?" in caught.value.hint


@pytest.mark.parametrize(
    "body",
    [
        {"timestamp": "2026-11-20T14:05:00.123Z"},
        {"timestamp": "2026-11-20T15:05:00.123+01:00"},
        {"timestamp_ms": 1795183500123},
        {"timestamp": "2026-11-20T14:05:00.123Z", "timestamp_ms": 1795183500123},
    ],
)
def test_both_forms_of_a_time_are_read(body):
    assert objects({"value": "a", **body}) == [NewRecord(None, b"a", 1795183500123)]


def test_numbers_of_a_line_keep_their_digits():
    line = '{"value": {"a":12345678901234567.89,"b":1e400,"c":98765432109876543210,"d":1.50,"a":2}}'
    assert objects(line) == [NewRecord(None, b'{"a":12345678901234567.89,"b":1e400,"c":98765432109876543210,"d":1.50,"a":2}')]

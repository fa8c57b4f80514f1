"""The fast lines of JSON, against the encoder of the standard library."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.core.errors import UndecodableRecord
from kops.core.records.models import Record, timestamp_text
from kops.formats.registry import FORMATS
from kops.operations.records.lines import line_maker
from kops.operations.records.rows import stream_row

TEXTS = st.text().map(lambda text: text.encode("utf-8", "replace"))
DATA = st.none() | TEXTS | st.binary() | st.just(b'"\\\x01/')
TIMES = st.none() | st.sampled_from([-1, 0, 999, -62_135_596_800_001, 253_402_300_799_999, 253_402_300_800_000, 2**63 - 1])
HEADERS = st.lists(st.tuples(st.text(), DATA), max_size=3).map(tuple)
RECORDS = st.builds(
    Record,
    st.sampled_from(["orders", "o.rders_1-a"]),
    st.integers(0, 9),
    st.integers(0, 2**63 - 1),
    TIMES | st.integers(-(2**40), 2**42),
    DATA,
    DATA,
    HEADERS,
)


@given(RECORDS)
def test_bytes_are_written_as_the_row_is(record):
    bytes_ = FORMATS["bytes"]
    assert line_maker(bytes_, bytes_)(record) == json.dumps(stream_row(record, bytes_, bytes_), ensure_ascii=False) + "\n"


@given(RECORDS, TEXTS, st.none() | st.integers(-(2**63), 2**63 - 1))
def test_so_are_decoded_values(record, text, number):
    long, string = FORMATS["long"], FORMATS["string"]
    record = record._replace(key=text, value=None if number is None else number.to_bytes(8, "big", signed=True))
    assert line_maker(string, long)(record) == json.dumps(stream_row(record, string, long), ensure_ascii=False) + "\n"


def test_what_cannot_be_decoded_is_named():
    with pytest.raises(UndecodableRecord, match="the value of orders:3 at offset 7 is not long"):
        line_maker(FORMATS["bytes"], FORMATS["long"])(Record("orders", 3, 7, None, None, b"x"))


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        (None, None),
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800_000, "+10000-01-01T00:00:00.000Z"),
        (-(2**63), "-292275055-05-16T16:47:04.192Z"),
    ],
)
def test_times(timestamp, text):
    assert timestamp_text(timestamp) == text

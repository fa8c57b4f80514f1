import pytest

from kops.core.errors import UsageProblem
from kops.core.records import OffsetRange, Record, latest_by_key, parse_partitions, timestamp_text


def record(partition, offset, key, value=b"v"):
    return Record("t", partition, offset, 0, key, value)


def test_the_last_record_of_each_key_and_partition_in_log_order():
    batches = [[record(1, 0, b"a"), record(0, 0, b"a"), record(0, 1, b"b")], [record(0, 2, b"a", None), record(0, 3, None)]]
    assert list(latest_by_key(batches).values()) == [record(0, 1, b"b"), record(0, 2, b"a", None), record(1, 0, b"a")]


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("orders", ("orders", ())),
        ("orders:0", ("orders", (0,))),
        ("orders:5,0,3-4,4", ("orders", (0, 3, 4, 5))),
        ("a.b_c-d:1-1", ("a.b_c-d", (1,))),
    ],
)
def test_partitions(text, parsed):
    assert parse_partitions(text) == parsed


@pytest.mark.parametrize(
    "text", ["orders:", "orders:a", "orders:-1", "orders:1-", "orders:4-3", ":0", "orders:0,", "orders:0:1", "orders:²"]
)
def test_what_names_no_partitions(text):
    with pytest.raises(UsageProblem, match="does not name partitions"):
        parse_partitions(text)


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (2**62, None),
        (None, None),
    ],
)
def test_timestamps(milliseconds, text):
    assert timestamp_text(milliseconds) == text


def test_ranges():
    assert OffsetRange(3, 3).empty
    assert OffsetRange(4, 3).empty
    assert not OffsetRange(3, 4).empty

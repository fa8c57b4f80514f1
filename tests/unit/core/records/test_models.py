import pytest

from kops.core.records.models import OffsetRange, Record, latest_by_key, newest, timestamp_text


def record(partition, offset, key, value=b"v"):
    return Record("t", partition, offset, 0, key, value)


def test_the_last_record_of_each_key_and_partition_in_log_order():
    batches = [[record(1, 0, b"a"), record(0, 0, b"a"), record(0, 1, b"b")], [record(0, 2, b"a", None), record(0, 3, None)]]
    assert list(latest_by_key(batches).values()) == [record(0, 1, b"b"), record(0, 2, b"a", None), record(1, 0, b"a")]


def at(partition, offset, timestamp):
    return Record("t", partition, offset, timestamp, None, b"v")


def test_the_newest_of_several_partitions_keep_the_order_of_their_offsets():
    one, two, three = [at(0, 1, 10), at(0, 2, 50), at(0, 3, 20)], [at(1, 7, 30), at(1, 9, None)], []
    assert newest([one, two, three], 9) == [two[0], two[1], *one]
    assert newest([one, two, three], 2) == [one[1], one[2]]
    assert newest([], 5) == newest([one], 0) == []


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (2**62, "+146140482-04-24T15:36:27.904Z"),
        (None, None),
    ],
)
def test_timestamps(milliseconds, text):
    assert timestamp_text(milliseconds) == text


def test_ranges():
    assert OffsetRange(3, 3).empty
    assert OffsetRange(4, 3).empty
    assert not OffsetRange(3, 4).empty

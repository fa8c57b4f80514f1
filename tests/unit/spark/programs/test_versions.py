"""The versions that a versioned store holds after a log, and the records that are written for them."""

import random

import pyarrow
import pytest

from kops.spark.programs.versions import Versions, as_records
from support.programs import Record
from support.table_cases import observable

BINARY = pyarrow.binary()


def log(*rows):
    keys, values, times = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {
        "key": pyarrow.array(keys, BINARY),
        "value": pyarrow.array(values, BINARY),
        "timestamp": pyarrow.array(times, pyarrow.int64()),
    }
    return pyarrow.table({**columns, "headers": pyarrow.array([b""] * len(rows), BINARY)})


def as_versions(whole, history_ms):
    kept = Versions(history_ms)
    return kept.of(kept.accepted(whole))


def versions(table):
    return [(row["key"], row["value"], row["timestamp"]) for row in table.to_pylist()]


def row(key, time, value):
    return key + time.to_bytes(8, "big"), b"\x00" if value is None else b"\x01" + value, time


def test_late_versions_count_until_they_are_older_than_the_history():
    taken = log((b"a", b"1", 100), (b"a", b"2", 95), (b"a", b"late", 89), (b"b", b"", 101))
    assert versions(as_versions(taken, 10)) == [row(b"a", 95, b"2"), row(b"a", 100, b"1"), row(b"b", 101, b"")]


def test_a_later_record_of_the_same_time_replaces_a_version():
    assert versions(as_versions(log((b"a", b"1", 100), (b"a", b"2", 100)), 10)) == [row(b"a", 100, b"2")]


def test_the_latest_version_stays_however_old_it_is():
    taken = log((b"a", b"old", 10), (b"a", b"last", 20), (b"b", b"1", 1000))
    assert versions(as_versions(taken, 10)) == [row(b"a", 20, b"last"), row(b"b", 1000, b"1")]


def test_a_deletion_of_nothing_stays_only_as_the_newest_time():
    taken = log((b"a", None, 100), (b"a", b"1", 101), (b"a", None, 102), (b"b", None, 103))
    assert versions(as_versions(taken, 50)) == [row(b"a", 101, b"1"), row(b"a", 102, None), row(b"b", 103, None)]


def test_nothing():
    assert as_versions(log(), 10).num_rows == 0
    assert as_records(log()).num_rows == 0


def test_records_are_written_in_the_order_of_time():
    found = as_records(as_versions(log((b"b", b"1", 100), (b"a", b"2", 95), (b"b", None, 105)), 10))
    assert versions(found) == [(b"a", b"2", 95), (b"b", b"1", 100), (b"b", None, 105)]


@pytest.mark.parametrize("seed", range(30))
def test_random_logs_have_the_versions_of_a_restore_and_so_have_the_records_written_for_them(seed):
    chosen = random.Random(seed)
    records = [
        Record(
            b"%d" % chosen.randrange(3), None if chosen.random() < 0.3 else b"%d" % at, at * 3 - chosen.choice((0, 0, 1, 8, 20, 40)) + 100
        )
        for at in range(60)
    ]
    newest = max(record.timestamp for record in records)
    wanted = {(key, time, value) for _, key, time, value in observable(records, 20)}

    def held(table):
        found = versions(table)
        return {(key[:-8], time, value[1:] if value[0] else None) for key, value, time in found}

    first = as_versions(log(*((record.key, record.value, record.timestamp) for record in records)), 20)
    assert {one for one in held(first) if one[1] != newest or one[2] is not None} == {
        one for one in wanted if one[1] != newest or one[2] is not None
    }
    again = as_versions(as_records(first), 20)
    assert held(again) == held(first)

"""One row of each key, gathered from tables that come one after another."""

import random

import pyarrow
import pytest

from kops.core.statefile import Form, Windows
from kops.formats.batches.columns import decode
from kops.formats.batches.encode import columns_of, encode
from kops.formats.batches.header import Producer, batches_of
from kops.spark.columns import partial_windows as partial_window_rows
from kops.spark.columns.difference import stage_rows
from kops.spark.columns.partial_aggregates import PartialAggregate, big_endian
from kops.spark.columns.partial_windows import PartialWindows
from kops.spark.reading import gathering
from kops.spark.reading.gathering import gathered, newest_of_each_key, whole


@pytest.fixture
def tables():
    rng = random.Random(4)
    rows = [(b"%d" % rng.randrange(30), at) for at in range(200)]
    return [
        pyarrow.table({"key": [key for key, _ in rows[at : at + 9]], "row": [row for _, row in rows[at : at + 9]]})
        for at in range(0, 200, 9)
    ]


def newest(tables):
    found = {}
    for table in tables:
        found |= dict(zip(table["key"].to_pylist(), table["row"].to_pylist(), strict=True))
    return found


@pytest.mark.parametrize("at_once", [10, 50, 10_000])
def test_the_newest_row_of_each_key_stays(tables, at_once, monkeypatch):
    monkeypatch.setattr(gathering, "GATHERED_RECORDS", at_once)
    assert newest([whole(tables, newest_of_each_key)]) == newest(tables)
    let_go = list(gathered(tables, newest_of_each_key))
    assert newest(let_go) == newest(tables)
    assert (len(let_go) > 1) == (at_once < 100)


@pytest.mark.parametrize(("name", "limit"), [("WHOLE_RECORDS", 20), ("WHOLE_BYTES", 100)])
def test_what_does_not_fit_is_not_held(tables, name, limit, monkeypatch):
    monkeypatch.setattr(gathering, name, limit)
    assert whole(tables, newest_of_each_key) is None
    monkeypatch.setattr(gathering, "GATHERED_RECORDS", 10)
    seen = []
    assert whole((seen.append(table) or table for table in tables), newest_of_each_key) is None
    assert len(seen) < len(tables)


@pytest.mark.parametrize(("kind", "value", "offset"), [("last", b"c", 9), ("first", b"b", 2)])
def test_the_value_of_a_record_keeps_the_greatest_time(kind, value, offset):
    columns = {"key": [b"k", b"k", b"k"], "timestamp_ms": [5, 8, 7], "value": [b"b", b"x", b"c"], "offset": [2, 4, 9]}
    found = PartialAggregate(kind, None, None).merge(pyarrow.table(columns))
    assert found.to_pylist() == [{"key": b"k", "timestamp_ms": 8, "value": value, "offset": offset}]


@pytest.mark.parametrize("at_once", [1, 30, 1_000_000])
def test_records_are_put_into_as_many_windows_at_once_as_is_wanted(at_once, monkeypatch):
    rng = random.Random(8)
    rows = [(b"%d" % rng.randrange(3), at - rng.choice([0, 0, 5, 30])) for at in range(100, 160)]
    keys, times = pyarrow.array([key for key, _ in rows], pyarrow.binary()), pyarrow.array([time for _, time in rows])
    data = encode(columns_of(keys, keys, times), Producer(1, 0, 0))
    wanted, late, latest = {}, 0, 0
    for key, time in rows:
        latest = max(latest, time)
        starts = [start for start in range(0, 200, 4) if start <= time < start + 20]
        late += any(start + 20 <= latest - 3 for start in starts)
        for start in (start for start in starts if start + 20 > latest - 3):
            count, newest = wanted.get((key, start), (0, 0))
            wanted[key, start] = (count + 1, max(newest, time))
    monkeypatch.setattr(partial_window_rows, "ROWS_AT_ONCE", at_once)
    partial = PartialWindows("count", Form("bytes"), Form("bytes"), Windows("window", 20, 4, 3, 1000))
    counts = dict.fromkeys(PartialWindows.counted, 0)
    found = whole(partial.tables([decode(data, batches_of(data))], counts), partial.merge).to_pylist()
    assert {(row["key"], row["start"]): (row["number"], row["timestamp_ms"]) for row in found} == wanted
    assert (counts["late"], counts["read"]) == (late, 60)
    assert late > 0


def test_numbers_wrap_to_their_width():
    import numpy

    assert big_endian(numpy.array([1, -1, 2**31]), 4).to_pylist() == [b"\0\0\0\1", b"\xff\xff\xff\xff", b"\x80\0\0\0"]


def test_a_partition_beside_its_changelog():
    binary, time = pyarrow.binary(), pyarrow.int64()
    wanted = [(b"new", b"1", 1), (b"same", b"1", 1), (b"value", b"1", 1), (b"time", b"1", 1), (b"odd", b"1", 1)]
    wanted += [(b"back", b"1", 1), (b"gone", None, 3), (b"never", None, 4), (b"deleted", None, 5)]
    found = [(b"value", b"2", 1, False), (b"same", b"1", 1, False), (b"time", b"1", 2, False), (b"odd", b"1", 1, True)]
    found += [(b"back", None, 9, False), (b"gone", b"1", 2, False), (b"deleted", None, 2, False), (b"foreign", b"1", 6, False)]
    names = ("key", "value", "timestamp", "odd")
    types = (binary, binary, time, pyarrow.bool_())
    one, other = (
        pyarrow.table(
            {name: pyarrow.array(column, kind) for name, kind, column in zip(names, types, zip(*rows, strict=True), strict=False)}
        )
        for rows in (wanted, found)
    )

    def actions(*, timed):
        rows = [row for batch in stage_rows(one, other, 3, timed=timed) for row in batch.to_pylist()]
        assert {row["partition"] for row in rows} == {3}
        return {row["key"]: (row["action"], row["before_value"], row["after_value"], row["timestamp"]) for row in rows}

    expected = {
        b"new": ("added", None, b"1", 1),
        b"back": ("added", None, b"1", 1),
        b"value": ("changed", b"2", b"1", 1),
        b"time": ("changed", b"1", b"1", 1),
        b"odd": ("changed", b"1", b"1", 1),
        b"gone": ("removed", b"1", None, 3),
        b"foreign": ("removed", b"1", None, 6),
        b"never": ("erased", None, None, 4),
    }
    assert actions(timed=True) == expected
    assert actions(timed=False) == {key: row for key, row in expected.items() if key != b"time"}

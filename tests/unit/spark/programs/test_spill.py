"""Rows that a task keeps, in memory or in a file: each key's are in one part, in their order."""

import tempfile
import weakref

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.spark.programs import spill
from kops.spark.programs.rows import rows_schema
from kops.spark.programs.spill import PARTS, Spill, zip_parts
from kops.spark.reading.gathering import newest_of_each_key


def table(*rows):
    columns = zip(*((*row, b"") for row in rows), strict=True) if rows else ((), (), (), ())
    return pyarrow.table(
        [pyarrow.array(list(column), each.type) for column, each in zip(columns, rows_schema(), strict=True)], rows_schema()
    )


def rows_of(parts):
    return [(row["key"], row["value"], row["timestamp"]) for part in parts for row in part.to_pylist()]


def numbered(count, first=0):
    return table(*((b"key-%d" % at, b"%d" % (first + at), first + at) for at in range(count)))


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(spill, "LIMIT", 4_000)


def test_few_rows_are_one_table_and_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(spill.tempfile, "TemporaryFile", lambda **_: pytest.fail("a file was made"))
    kept = Spill(tmp_path, {"a": None, "b": None})
    kept.add("a", numbered(3))
    kept.add("a", numbered(2, 10))
    assert not kept.divided
    assert [part.num_rows for part in kept.rows("a")] == [5]
    assert [part.num_rows for part in kept.rows("b")] == [0]


def test_many_rows_are_parts_and_leave_nothing_behind(tmp_path, small, monkeypatch):
    opened, files = tempfile.TemporaryFile, []

    def seen(**where):
        file = opened(**where)
        files.append(weakref.ref(file))
        return file

    monkeypatch.setattr(spill.tempfile, "TemporaryFile", seen)
    kept = Spill(tmp_path, {"a": None, "b": None})
    for first in range(0, 1_000, 100):
        kept.add("a", numbered(100, first))
    kept.add("b", numbered(1))
    assert kept.divided
    assert not list(tmp_path.iterdir())
    parts = list(kept.rows("a"))
    assert len(parts) == PARTS
    assert sum(part.num_rows for part in parts) == 1_000
    assert max(part.num_rows for part in parts) < 1_000 // 4
    for part in parts:
        for key in {row["key"] for row in part.to_pylist()}:
            of_key = [row["timestamp"] for row in part.to_pylist() if row["key"] == key]
            assert of_key == [first + int(key[4:]) for first in range(0, 1_000, 100)], "all rows of a key, in their order"
    assert rows_of(kept.rows("b")) == [(b"key-0", b"0", 0)]
    del kept
    assert [file() for file in files] == [None], "it is closed with the last that needs it"


def test_rows_that_merging_makes_few_stay_in_memory(tmp_path, small):
    kept = Spill(tmp_path, {"a": newest_of_each_key})
    for first in range(0, 10_000, 10):
        kept.add("a", numbered(10, first))
    assert not kept.divided
    assert sorted(rows_of(kept.rows("a"))) == sorted(rows_of([numbered(10, 9_990)]))


def test_what_is_compared_is_divided_in_the_same_way(tmp_path, small):
    large, few = Spill(tmp_path, {"a": None}), Spill(tmp_path, {"a": None})
    large.add("a", numbered(400))
    few.add("a", numbered(40))
    beside = few.rows("a")
    assert [part.num_rows for part in beside] == [40]
    pairs = list(zip_parts(large.rows("a").map(lambda part: part.slice(0)), beside))
    assert len(pairs) == PARTS
    for some, others in pairs:
        assert {key for key, _, _ in rows_of([others])} == {key for key, _, _ in rows_of([some])} & {b"key-%d" % at for at in range(40)}
    assert sum(others.num_rows for _, others in pairs) == 40


def test_the_only_table_is_made_once(tmp_path):
    kept, made = Spill(tmp_path, {"a": None}), []
    kept.add("a", numbered(3))
    rows = kept.rows("a").map(lambda part: made.append(1) or part)
    assert rows_of(rows) == rows_of(rows)
    assert made == [1]


KEYS = st.sampled_from([b"", b"a", b"b", b"\x00", b"longer than eight bytes", bytes(40)])


@given(
    st.lists(st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=9), st.integers(0, 9)), max_size=9), max_size=9),
    st.sampled_from([0, 60, 200]),
    st.booleans(),
)
def test_whatever_fits_the_rows_of_a_key_are_the_same(tmp_path_factory, tables, limit, merged):
    found = []
    for bytes_held in (limit, 1 << 20):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(spill, "LIMIT", bytes_held)
            patched.setattr(spill, "PARTS", 4)
            kept = Spill(tmp_path_factory.getbasetemp(), {"a": newest_of_each_key if merged else None})
            for rows in tables:
                kept.add("a", table(*rows))
            given_rows = rows_of(kept.rows("a"))
        found.append({key: [row for row in given_rows if row[0] == key] for key, _, _ in given_rows})
    assert found[0] == found[1]
    every = [row for rows in tables for row in rows]
    for key, rows in found[0].items():
        expected = [row for row in every if row[0] == key]
        assert rows == (expected[-1:] if merged else expected)

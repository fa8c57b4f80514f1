"""A changelog as it is, what it should hold, and what is appended."""

from dataclasses import dataclass
from typing import Any

import pyarrow
import pytest
from pyspark.sql import Row

from kops.formats.runner_frames import encoded_headers
from kops.spark.columns.difference import stage_rows
from kops.spark.reading.ranges import HEADERS
from kops.spark.staging.difference import all_added, compacted_view, difference, to_append
from kops.spark.staging.stage import contents_of, make_folder, read_stage, staged_of, write_stage
from kops.spark.staging.stage_files import files_of, records_to_append, write_file
from kops.spark.staging.writer import differing_tails

pytestmark = pytest.mark.spark

EXPECTED = "partition int, key binary, value binary, timestamp bigint, doubt int"


def rows_of(frame):
    return {(row.partition, bytes(row.key), row.value and bytes(row.value), row.timestamp) for row in frame.collect()}


@pytest.fixture
def expected(spark):
    rows = [
        (0, b"same", b"1", 10),
        (0, b"value", b"2", 10),
        (0, b"time", b"3", 10),
        (1, b"moved", b"4", 10),
        (0, b"back", b"5", 10),
        (0, b"never", None, 7),
        (0, b"dead", None, 8),
    ]
    return spark.createDataFrame([(p, bytearray(k), v and bytearray(v), t, 0) for p, k, v, t in rows], EXPECTED)


CHANGELOG = [
    (0, b"same", b"0", 99),
    (0, b"same", b"1", 10),
    (0, b"value", b"x", 10),
    (0, b"time", b"3", 11),
    (0, b"moved", b"4", 10),
    (0, b"back", b"5", 10),
    (0, b"back", None, 20),
    (0, b"unknown", b"6", 30),
    (0, b"dead", None, 40),
]


def test_what_is_appended_and_what_takes_it_back(spark, expected, records_of, tmp_path):
    stage = difference(expected, compacted_view(records_of(CHANGELOG)))
    found = write_stage(stage, str(tmp_path / "stage"))
    staged = read_stage(spark, str(tmp_path / "stage"))
    new = {(0, b"value", b"2", 10), (0, b"time", b"3", 10), (1, b"moved", b"4", 10), (0, b"back", b"5", 10)}
    gone = {(0, b"moved", None, 10), (0, b"unknown", None, 30), (0, b"never", None, 7)}
    assert rows_of(to_append(staged)) == new | gone
    assert rows_of(to_append(staged, backwards=True)) == {
        (0, b"value", b"x", 10),
        (0, b"time", b"3", 11),
        (1, b"moved", None, 10),
        (0, b"back", None, 20),
        (0, b"moved", b"4", 10),
        (0, b"unknown", b"6", 30),
        (0, b"never", None, 7),
    }
    assert found.actions == {
        0: {"added": 1, "changed": 2, "removed": 2, "erased": 1},
        1: {"added": 1, "changed": 0, "removed": 0, "erased": 0},
    }
    assert {number: (content.records, content.tombstones) for number, content in found.contents.items()} == {0: (6, 3), 1: (1, 0)}


def test_an_empty_changelog_gets_everything(expected):
    assert {row.action for row in all_added(expected).collect()} == {"added", "erased"}
    assert len(rows_of(to_append(all_added(expected)))) == 7


@dataclass(frozen=True)
class Log:
    """What a source reads, whatever the range."""

    rows: Any
    batches: None = None

    def read(self, wanted):
        return self.rows


def test_reading_back_tells_what_is_missing_foreign_or_different(expected, records_of):
    wanted = to_append(all_added(expected))
    fingerprints = {number: content.fingerprint for number, content in contents_of(wanted).items()}
    written = sorted(rows_of(wanted), key=str)

    def found(rows):
        return differing_tails(Log(records_of(rows)), None, wanted, fingerprints)

    assert found(written) == {}
    assert found([*written, written[0]]) == {}, "a retried task may write a record twice"
    assert "1 records missing" in found(written[1:])[written[0][0]]
    assert "1 not ours" in found([*written, (0, b"other", b"1", 1)])[0]
    changed = [(p, k, v, t + 1) if k == b"same" else (p, k, v, t) for p, k, v, t in written]
    assert "1 different" in found(changed)[0]


def test_headers_are_compared_written_and_taken_back(spark, tmp_path):
    def table(*rows):
        kinds = (pyarrow.binary(), pyarrow.binary(), pyarrow.int64(), pyarrow.binary())
        columns = [pyarrow.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
        return pyarrow.table(columns, names=["key", "value", "timestamp", "headers"])

    one, other = (("v", b"\x03"), ("empty", None)), (("v", b"\x02"),)
    wanted = [(b"same", b"1", 1, one), (b"header", b"1", 1, one), (b"new", b"1", 1, one), (b"bare", b"1", 1, ()), (b"gone", None, 1, ())]
    held = [(b"same", b"1", 1, one), (b"header", b"1", 1, other), (b"bare", b"1", 1, other), (b"gone", b"1", 1, other)]
    tables = [table(*((*row[:3], encoded_headers(row[3])) for row in rows)) for rows in (wanted, held)]
    folder = str(tmp_path / "stage")
    make_folder(folder)
    sums = [Row(**row) for batch in write_file(stage_rows(*tables, 4, timed=True), folder) for row in batch.to_pylist()]
    written = {
        False: {(b"header", b"1", one), (b"new", b"1", one), (b"bare", b"1", ()), (b"gone", None, ())},
        True: {(b"header", b"1", other), (b"new", None, ()), (b"bare", b"1", other), (b"gone", b"1", other)},
    }
    stage = read_stage(spark, folder, headers=True)
    for backwards, expected in written.items():
        rows = [row for batch in records_to_append(files_of(folder)[0], backwards=backwards, headers=True) for row in batch.to_pylist()]
        assert {(row["key"], row["value"], _pairs(row["headers"])) for row in rows} == expected
        frame = to_append(stage, backwards=backwards)
        assert {(bytes(row.key), row.value and bytes(row.value), _pairs(row.headers)) for row in frame.collect()} == expected
    wanted_back = to_append(stage)
    contents = contents_of(wanted_back)
    assert staged_of(sums).contents == contents

    def found(change):
        rows = [
            (4, at, 1, bytes(row.key), row.value, _pairs(row.headers) if row.key != b"new" else change(_pairs(row.headers)))
            for at, row in enumerate(wanted_back.collect())
        ]
        read = spark.createDataFrame(rows, f"partition int, offset bigint, timestamp_ms bigint, key binary, value binary, {HEADERS}")
        return differing_tails(Log(read), None, wanted_back, {number: content.fingerprint for number, content in contents.items()})

    assert found(lambda headers: headers) == {}
    assert "1 different" in found(lambda headers: headers[:1])[4]


def _pairs(headers):
    return tuple((one["key"], None if one["value"] is None else bytes(one["value"])) for one in headers or ())

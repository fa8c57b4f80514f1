"""A changelog as it is, what it should hold, and what is appended."""

from dataclasses import dataclass
from typing import Any

import pytest

from kops.spark.staging.difference import all_added, compacted_view, difference, to_append
from kops.spark.staging.stage import contents_of, read_stage, write_stage
from kops.spark.staging.writer import unlike

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
        return unlike(Log(records_of(rows)), None, wanted, fingerprints)

    assert found(written) == {}
    assert found([*written, written[0]]) == {}, "a retried task may write a record twice"
    assert "1 records missing" in found(written[1:])[written[0][0]]
    assert "1 not ours" in found([*written, (0, b"other", b"1", 1)])[0]
    changed = [(p, k, v, t + 1) if k == b"same" else (p, k, v, t) for p, k, v, t in written]
    assert "1 different" in found(changed)[0]

"""Input put into the partitions of a move, and what runs over it give beside what the changelogs hold."""

from types import SimpleNamespace

import pyarrow
import pytest
from pyarrow import parquet

from kops.core.errors import OperationFailed, Refused
from kops.core.murmur2 import partition_for
from kops.core.streams.program_doubts import BACKWARD, BY_TIME, FORWARD, ORDERS
from kops.formats.batches.columns import decode
from kops.formats.batches.copy import columns_of_table
from kops.formats.batches.encode import encode
from kops.formats.batches.header import Producer, batches_of
from kops.gateways.machine.program import ProgramStart
from kops.spark.programs import relaid, spill
from kops.spark.programs.inputs import repartitioned_batches
from kops.spark.programs.jobs import Jobs
from kops.spark.programs.models import ProgramTask, Run, StoreTask
from kops.spark.programs.relaid import RelaidCheck, check_subtopology, relay
from kops.spark.programs.spill import Spill
from kops.spark.reading.batch_source import TaskInput

OLD, NEW = 4, 6
HEADERS = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))


@pytest.fixture
def run(tmp_path):
    return Run(ProgramStart(("java",), "/", str(tmp_path), 1, (), "digest", 60), {"wall_clock": "7"}, "app", {}, varied=frozenset({0}))


class Here:
    """Runs tasks one after the other, over these records: key, value and time, by partition."""

    def __init__(self, records=None):
        self.records = records or {}

    def by_task(self, count, _schema, task):
        rows = [SimpleNamespace(**row) for number in range(count) for table in task(number, self.read) for row in table.to_pylist()]
        return SimpleNamespace(collect=lambda: rows)

    def read(self, piece):
        kinds = {"key": pyarrow.binary(), "value": pyarrow.binary(), "timestamp_ms": pyarrow.int64(), "headers": HEADERS}
        columns = zip(*((*each, [{"key": "trace", "value": each[0]}]) for each in self.records[piece.partition]), strict=True)
        arrays = {name: pyarrow.array(list(column), kinds[name]) for name, column in zip(kinds, columns, strict=True)}
        body = encode(columns_of_table(pyarrow.table(arrays)), Producer(1, 0, 0))
        yield decode(body, list(batches_of(body)))


def pieces(records):
    return [TaskInput("in", number, 0, len(found)) for number, found in sorted(records.items())]


def produced():
    found = {number: [] for number in range(OLD)}
    for at in range(60):
        key = b"key-%d" % (at % 20)
        found[partition_for(key, OLD)].append((key, b"%d" % at, 1000 + at))
    return found


@pytest.mark.parametrize("order", ORDERS)
def test_records_go_where_the_default_partitioner_puts_them_in_the_order_of_their_old_partition(run, order):
    records = produced()
    assert relay(Jobs(Here(records), run), pieces(records), OLD, NEW) == 60
    seen = {}
    for partition in range(NEW):
        for batch in repartitioned_batches(run, "in", ProgramTask(0, partition, ()), order):
            assert set(batch.partition.tolist()) == {partition}
            rows = zip(batch.key.to_pylist(), batch.value.to_pylist(), batch.timestamp.tolist(), strict=True)
            seen[partition] = list(rows)
            assert all(batch.headers.to_pylist())
    assert {key: partition for partition, rows in seen.items() for key, _, _ in rows} == {
        key: partition_for(key, NEW) for rows in records.values() for key, _, _ in rows
    }
    for old, rows in records.items():
        for partition, found in seen.items():
            mine = [row for row in found if partition_for(row[0], OLD) == old]
            assert mine == [row for row in rows if partition_for(row[0], NEW) == partition]
            assert not mine or old % 2 == partition % 2, "only what is congruent modulo the greatest common divisor feeds a partition"


@pytest.mark.parametrize(
    ("key", "said"),
    [(None, "in:1 has a record at offset 1 that has no key"), (b"key-1", "that would be in partition 0 by the default partitioner of 4")],
)
def test_a_record_whose_new_partition_is_not_known_is_refused(run, key, said):
    records = {1: [(b"key-0", b"a", 1000), (key, b"b", 1001)]}
    with pytest.raises(Refused, match=said):
        relay(Jobs(Here(records), run), pieces(records), OLD, NEW)
    assert said in run.failure()["message"]


def rows(**values):
    """Return what was written: value and time by key, both from a number."""
    texts = [(name.encode(), None if value is None else b"%d" % value, value or 0, b"") for name, value in values.items()]
    kinds = {"key": pyarrow.binary(), "value": pyarrow.binary(), "timestamp": pyarrow.int64(), "headers": pyarrow.binary()}
    return pyarrow.table({name: pyarrow.array(list(each), kinds[name]) for name, each in zip(kinds, zip(*texts, strict=True), strict=True)})


@pytest.fixture(params=[0, spill.LIMIT])
def checked(request, run, tmp_path, monkeypatch):
    """Compare what orders give with what is staged for partition 1, in memory and in parts."""
    monkeypatch.setattr(spill, "LIMIT", request.param)

    def compare(held, *given):
        stage = tmp_path / "stage"
        stage.mkdir()
        table = rows(**held)
        there = pyarrow.array([1] * table.num_rows, pyarrow.int32())
        columns = [there, table["key"], table["value"], table["timestamp"]]
        parquet.write_table(pyarrow.table(columns, names=["partition", "key", "after_value", "after_timestamp"]), stage / "part-0.parquet")
        by_order = dict(zip(ORDERS, given, strict=False))

        def ran(_run, _task, way, _read):
            if by_order[way.order] is None:
                raise OperationFailed("the program threw")
            written = Spill(tmp_path, {"counts": None})
            written.add("counts", rows(**by_order[way.order]))
            return SimpleNamespace(of=lambda _store: written.rows("counts"), timed=lambda _store: True), {"heap": 0}

        monkeypatch.setattr(relaid, "run_once", ran)
        store = StoreTask("counts", "app-counts-changelog", None, str(stage))
        task = ProgramTask(0, 1, (), stores=(store,), orders=ORDERS[: len(given)])
        return check_subtopology(Jobs(Here(), run), [task])["counts"]

    return compare


def test_what_is_the_same_in_one_order_is_not_open(checked):
    assert checked({"a": 1, "b": 2}, {"b": 2, "a": 1, "deleted": None}) == RelaidCheck(2, 0, 0, 0, (), 1)


def test_keys_that_are_wrong_missing_or_too_many(checked):
    found = checked({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 4, "d": 5})
    assert found == RelaidCheck(3, 3, 0, 0, (b"b", b"c", b"d"), 1)


def test_what_one_order_gives_is_the_same_and_what_none_gives_is_wrong_or_open(checked):
    held = {"same": 1, "late": 2, "open": 3, "wrong": 4}
    by_time = {"same": 1, "late": 9, "open": 8, "wrong": 5}
    found = checked(held, by_time, {**by_time, "late": 2}, {**by_time, "open": 7})
    assert found == RelaidCheck(4, 1, 1, 1, (b"wrong",), 3)


def test_an_order_in_which_the_program_throws_gives_nothing(checked):
    assert checked({"a": 1}, {"a": 1}, None, {"a": 1}) == RelaidCheck(1, 0, 0, 0, (), 2)
    assert (BY_TIME, FORWARD, BACKWARD) == ORDERS


def test_by_time_it_must_not_throw(checked):
    with pytest.raises(OperationFailed, match="the program threw"):
        checked({"a": 1}, None)

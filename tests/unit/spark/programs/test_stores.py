"""What is staged of a store, and counted, does not depend on how much of it fits into memory."""

import itertools
from dataclasses import replace

import numpy
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from kops.core.streams.program_doubts import BY_TIME
from kops.formats import runner_frames as frames
from kops.formats.batches.columns import decode
from kops.formats.batches.copy import columns_of_table
from kops.formats.batches.encode import encode
from kops.formats.batches.header import Producer, batches_of
from kops.gateways.machine.program import ProgramStart
from kops.spark.programs import spill
from kops.spark.programs.models import ProgramTask, Run, StoreTask
from kops.spark.programs.orders import DifferingKeys
from kops.spark.programs.spill import zip_parts
from kops.spark.programs.stores import staged, unexpired_rows
from kops.spark.programs.task_output import TaskOutput
from kops.spark.reading.batch_source import TaskInput

CHANGELOG, PARTITION, BINARY = "app-counts-changelog", 1, pyarrow.binary()
HEADERS = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", BINARY)]))
HELD = TaskInput(CHANGELOG, PARTITION, 0, 1)
folders = itertools.count()


def store(folder, **more):
    return StoreTask("counts", CHANGELOG, HELD, str(folder / "stage"), **more)


def written_in(run, task, rows, size=3):
    """Return what a task wrote: key, value, time and headers, a few in each frame."""
    written = TaskOutput(run, task, BY_TIME)
    for first in range(0, len(rows), size):
        keys, values, times, headers = zip(*rows[first : first + size], strict=True)
        count = len(keys)
        numbers = numpy.zeros(count, numpy.int32), numpy.full(count, PARTITION, numpy.int32), numpy.arange(count), numpy.array(times)
        texts = (pyarrow.array(column, BINARY) for column in (keys, values, headers))
        written.take(frames.Batch([CHANGELOG], *numbers, *texts))
    written.close()
    return written


def reader(rows, size=4):
    """Return what reads rows from a topic: key, value, time and headers."""

    def read(_piece):
        for first in range(0, len(rows), size):
            keys, values, times, headers = zip(*rows[first : first + size], strict=True)
            lists = [[{"key": name, "value": value} for name, value in frames.decoded_headers(each)] for each in headers]
            arrays = [pyarrow.array(keys, BINARY), pyarrow.array(values, BINARY), pyarrow.array(times), pyarrow.array(lists, HEADERS)]
            body = encode(columns_of_table(pyarrow.table(arrays, ["key", "value", "timestamp_ms", "headers"])), Producer(1, 0, 0))
            yield decode(body, list(batches_of(body)))

    return read


def snapshot(folder, rows):
    """Write rows as a snapshot; return its path."""
    keys, values, times, headers = zip(*rows, strict=True)
    lists = [[{"key": name, "value": value} for name, value in frames.decoded_headers(each)] or None for each in headers]
    partitions = pyarrow.array([PARTITION] * len(rows), pyarrow.int32())
    arrays = [partitions, pyarrow.array(keys, BINARY), pyarrow.array(values, BINARY), pyarrow.array(times), pyarrow.array(lists, HEADERS)]
    folder.mkdir()
    parquet.write_table(pyarrow.table(arrays, ["partition", "key", "value", "timestamp", "headers"]), folder / "rows.parquet")
    return str(folder)


def stage_of(folder):
    return sorted((row for file in folder.glob("*.parquet") for row in parquet.read_table(file).to_pylist()), key=repr)


def outcome(root, limit, options, orders, held, base=()):
    """Stage what the first order wrote, and compare the others with it; return all that is written and counted."""
    folder = root / f"run-{next(folders)}"
    (folder / "stage").mkdir(parents=True)
    run = Run(ProgramStart(("java",), "/", str(folder), 1, (), "digest", 60), {"wall_clock": "7"}, "app", {})
    found = store(folder, **options)
    if base:
        found = replace(found, base=snapshot(folder / "base", base))
    task, differing = ProgramTask(0, PARTITION, (), stores=(found,)), DifferingKeys()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(spill, "LIMIT", limit)
        patched.setattr(spill, "PARTS", 4)
        first, *others = (written_in(run, task, rows) for rows in orders)
        facts = staged(run, found, PARTITION, first, reader(held))
        for one, *more in zip_parts(*(unexpired_rows(written, found) for written in (first, *others))):
            differing.add(one, more, PARTITION)
    return facts, stage_of(folder / "stage"), differing.facts


def once(rows):
    """Return the last row of each key, as the runner sends them."""
    return list({row[0]: row for row in rows}.values())


TRACED = frames.encoded_headers([("trace", b"1")])
NAMES = st.sampled_from([b"%d" % number for number in range(12)])
VALUES = st.none() | st.sampled_from([b"", b"1", b"2"])
TIMES = st.integers(0, 60)
ROWS = st.lists(st.tuples(NAMES, VALUES, TIMES, st.sampled_from([b"", b"", TRACED])), max_size=25)
WINDOWS = st.lists(
    st.tuples(NAMES, TIMES, VALUES, TIMES).map(lambda row: (row[0] + row[1].to_bytes(8, "big") + bytes(4), row[2], row[3], b"")),
    max_size=25,
)
LIMITS = st.sampled_from([0, 300, 900])
UNTIMED = ROWS.map(lambda rows: [(key, value, -1, headers) for key, value, _, headers in rows])


def same(tmp_path_factory, limit, options, orders, held, base=()):
    root = tmp_path_factory.getbasetemp()
    assert outcome(root, limit, options, orders, held, base) == outcome(root, 1 << 30, options, orders, held, base)


@pytest.mark.slow
@given(LIMITS, st.lists((ROWS | UNTIMED).map(once), min_size=1, max_size=3), ROWS, ROWS.map(once))
def test_key_value_stores(tmp_path_factory, limit, orders, held, base):
    same(tmp_path_factory, limit, {}, orders, held, base)


@pytest.mark.slow
@given(LIMITS, st.lists(WINDOWS.map(once), min_size=1, max_size=3), WINDOWS, WINDOWS.map(once))
def test_windows_expire_by_the_latest_of_all_parts(tmp_path_factory, limit, orders, held, base):
    same(tmp_path_factory, limit, {"time_at": -12, "expires_ms": 20}, orders, held, base)


@pytest.mark.slow
@given(LIMITS, st.lists(ROWS, min_size=1, max_size=3), ROWS)
def test_versions_are_those_of_the_whole_log(tmp_path_factory, limit, orders, held):
    same(tmp_path_factory, limit, {"history_ms": 15}, orders, held)


@pytest.mark.slow
@given(LIMITS, ROWS)
def test_versions_as_records(tmp_path_factory, limit, rows):
    same(tmp_path_factory, limit, {"history_ms": 15, "as_records": True}, [rows], [])


def test_what_is_staged(tmp_path):
    """One case by hand: a window that has expired is left out, one that is still held is not, and the latest is in another part."""

    def window(name, time):
        return name + time.to_bytes(8, "big") + bytes(4)

    rows = [(window(b"%d" % at, at), b"1", at, b"") for at in range(40)]
    rows.append((window(b"deleted", 2), None, 2, b""))  # was no key before it expired
    held = [(window(b"3", 3), b"0", 3, b""), (window(b"30", 30), b"1", 30, b"")]
    for limit in (0, 1 << 30):
        facts, stage, _ = outcome(tmp_path, limit, {"time_at": -12, "expires_ms": 20}, [rows], held)
        assert {key: facts[key] for key in ("keys", "held", "expired", "headers")} == {
            "keys": 22,
            "held": 2,
            "expired": 18,
            "headers": False,
        }
        assert {row["key"]: row["action"] for row in stage} == {
            **{window(b"%d" % at, at): "added" for at in range(19, 40) if at != 30},
            window(b"3", 3): "changed",
        }
        assert [sums["records"] for sums in facts["sums"]] == [21]

"""Memory of one task that compares what an application's own program wrote with what its changelog holds, in Spark's worker.

    .venv/bin/python tests/benchmarks/own_code_rows.py [--rows 5000000] [--disturbed]

Rows of 200 bytes, a tenth of which differ, without a JVM and without Spark: what is measured is the comparison, and the stage that it
writes below ``--folder``. Prints the peak of memory, and the seconds of processor time.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy
import pyarrow

sys.path.insert(0, str(Path(__file__).parent.parent))

from kops.formats import runner_frames as frames
from kops.formats.batches.columns import RecordColumns
from kops.gateways.machine.program import ProgramStart
from kops.spark.programs import task_run, tasks
from kops.spark.programs.models import WHOLE, ProgramTask, Run, StoreTask
from kops.spark.reading.batch_source import TaskInput

AT_ONCE, KEY, VALUE = 20_000, 20, 180
DIFFER_OF_TEN = 1


def texts(first: int, count: int, version: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return keys and values, a row each."""
    numbers = numpy.arange(first, first + count)
    keys, values = numpy.zeros((count, KEY), numpy.uint8), numpy.zeros((count, VALUE), numpy.uint8)
    for column, kind in ((keys, ">i8"), (values, "<i8")):
        column[:, :8] = numbers.astype(kind).view(numpy.uint8).reshape(count, 8)
    values[:, 9] = numpy.where(numbers % 10 < DIFFER_OF_TEN, version, 0)
    return keys, values


def column(rows: numpy.ndarray) -> pyarrow.Array:
    count, width = rows.shape
    ends = numpy.arange(count + 1, dtype=numpy.int32) * width
    return pyarrow.Array.from_buffers(pyarrow.binary(), count, [None, pyarrow.py_buffer(ends), pyarrow.py_buffer(rows.tobytes())])


class Program:
    """Writes each key once, when it is asked for what is last."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def ask(self, kind: int, _body: bytes = b"", take: Callable[[frames.Batch], object] | None = None) -> dict[str, str]:
        for first in range(0, self._rows, AT_ONCE) if take is not None and kind == frames.FINISH else ():
            count = min(AT_ONCE, self._rows - first)
            zeros, offsets = numpy.zeros(count, numpy.int32), numpy.arange(first, first + count)
            found = map(column, texts(first, count, 0))
            take(frames.Batch(["changelog"], zeros, zeros, offsets, offsets, *found, pyarrow.nulls(count, pyarrow.binary())))
        return {"records": str(self._rows)}


def held(piece: TaskInput) -> Iterator[RecordColumns]:
    """Yield the records of the changelog."""
    for first in range(0, piece.end, AT_ONCE):
        count = min(AT_ONCE, piece.end - first)
        found = numpy.concatenate([*texts(first, count, 1), numpy.zeros((count, 1), numpy.uint8)], axis=1)
        at, each = numpy.arange(count, dtype=numpy.int64) * found.shape[1], numpy.full(count, 1, numpy.int64)
        offsets = numpy.arange(first, first + count)
        yield RecordColumns(found.tobytes(), offsets, offsets, at, each * KEY, at + KEY, each * VALUE, at + KEY + VALUE)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--disturbed", action="store_true", help="compare also with what a second run gives")
    parser.add_argument("--folder", default="build", help="on a disk")
    options = parser.parse_args()
    Path(options.folder).mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        (stage := Path(name, "stage")).mkdir()
        run = Run(ProgramStart(("java",), "/", name, 1, (), "digest", 60), {"wall_clock": "7"}, "app", {})
        store = StoreTask("counts", "changelog", TaskInput("changelog", 0, 0, options.rows), str(stage))
        task = ProgramTask(0, 0, (), stores=(store,), disturbed=WHOLE if options.disturbed else "")
        task_run.program_of = lambda _run, _read, _surroundings: Program(options.rows)
        before = resource.getrusage(resource.RUSAGE_SELF)
        facts = json.loads(tasks.run_task(run, task, held)["facts"][0].as_py())
        after = resource.getrusage(resource.RUSAGE_SELF)
    (sums,) = facts["stores"]["counts"]["sums"]
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{options.rows:,} rows{', disturbed too' * options.disturbed}: {after.ru_maxrss / 1024:.0f} MB, {used:.1f} s of processor time")
    assert sums["records"] == -(-options.rows // 10) * DIFFER_OF_TEN, sums


if __name__ == "__main__":
    main()

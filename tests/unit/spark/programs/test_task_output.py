"""Files that a task writes for those behind it: of a run that failed there are none, and of several runs those of the last one."""

import numpy
import pyarrow
import pytest

from kops.core.streams.program_doubts import BACKWARD, BY_TIME
from kops.formats.runner_frames import Batch
from kops.gateways.machine.program import ProgramStart
from kops.spark.programs import task_run
from kops.spark.programs.models import ProgramTask, Run
from kops.spark.programs.task_output import TaskOutput
from kops.spark.programs.task_run import Way, run_once


@pytest.fixture
def run(tmp_path):
    return Run(ProgramStart(("java",), "/", str(tmp_path), 1, (), "digest", 60), {}, "app", {})


def batch(topic, *partitions):
    count = len(partitions)
    texts = [pyarrow.array([b"%d" % at for at in range(count)], pyarrow.binary())] * 2
    numbers = numpy.zeros(count, numpy.int32), numpy.array(partitions, numpy.int32), *[numpy.arange(count, dtype=numpy.int64)] * 2
    return Batch([topic], *numbers, *texts, pyarrow.nulls(count, pyarrow.binary()))


def files(run):
    return sorted(str(file.relative_to(run.folder / "repartitioned")) for file in run.folder.rglob("*") if file.is_file())


def test_a_later_run_replaces_the_files_of_an_earlier_one(run):
    """It may send what it passes on to other partitions: a cache that answers of a foreign-key join fill passes on the last value only."""
    for passes_on, partitions in ((("asked", "more"), (0, 1)), (("asked",), (1, 2))):
        written = TaskOutput(run, ProgramTask(0, 3, (), passes_on=passes_on), BY_TIME)
        for topic in passes_on:
            written.take(batch(topic, *partitions))
        written.close()
    kept = [f"time/{topic}/{at}/00000-00003.arrow" for topic, at in (("asked", 1), ("asked", 2), ("more", 0), ("more", 1))]
    assert files(run) == kept
    other = TaskOutput(run, ProgramTask(0, 4, (), passes_on=("asked",)), BY_TIME)
    other.close()
    TaskOutput(run, ProgramTask(0, 3, (), passes_on=("asked",)), BACKWARD).close()
    assert files(run) == kept


def test_a_run_that_fails_leaves_no_file(run, monkeypatch):
    class Program:
        def ask(self, kind, body=b"", take=None):
            if take is not None:
                take(batch("asked", 0, 1))
                raise ValueError("thrown")

    monkeypatch.setattr(task_run, "program_of", lambda *_: Program())
    with pytest.raises(ValueError, match="thrown"):
        run_once(run, ProgramTask(0, 3, (), passes_on=("asked",)), Way(), lambda _piece: iter(()))
    assert files(run) == []

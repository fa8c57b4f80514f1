"""A task before it runs: the program that was started has to be the captured one; and what it reads of the tasks before it."""

import json

import pytest

from kops.core.errors import Refused
from kops.gateways.machine.program import ProgramStart
from kops.spark.programs import worker_program
from kops.spark.programs.models import FAILURE, ProgramTask, Run
from kops.spark.programs.tasks import run_task

HELLO = {"application": "app", "subtopology.0.sources": "in", "subtopology.0.changelogs": "app-counts-changelog"}


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Play a program that says this of itself; return what runs a task of it, and whether it was ended."""
    ended = []

    def make(**hello):
        class Program:
            def __init__(self, start):
                assert start.folder == str(tmp_path)
                self.start, self.settings = start, {}

            def ask(self, kind, body=b""):
                return {**HELLO, **hello}

            def close(self):
                ended.append(True)

        monkeypatch.setattr(worker_program, "Program", Program)
        start = ProgramStart(("java",), "/", str(tmp_path), 1, (), "digest", 60)
        topology = {name: topics for name, topics in HELLO.items() if name != "application"}
        return Run(start, {}, "app", topology), ended

    return make


@pytest.mark.parametrize(
    ("name", "now", "said"),
    [
        ("application", "other", "the program is now other, and app was captured"),
        ("subtopology.0.sources", "in,more", "the sources of its sub-topology 0 are in,more, and were in"),
        ("subtopology.0.changelogs", "", "the changelogs of its sub-topology 0 are none, and were app-counts-changelog"),
    ],
)
def test_a_program_that_is_another_by_its_settings_is_refused_and_ended(started, name, now, said):
    run, ended = started(**{name: now})
    with pytest.raises(Refused, match=said):
        run_task(run, ProgramTask(0, 0, ()), lambda _piece: iter(()))
    assert ended == [True]
    assert said in json.loads((run.folder / FAILURE).read_text())["message"]


def test_what_went_through_a_repartition_topic_in_an_order(tmp_path):
    """A sub-topology that runs in one order only wrote it once, and the others once for each, or nothing."""
    start = ProgramStart(("java",), "/", str(tmp_path), 1, (), "digest", 60)
    run = Run(start, {}, "app", {}, varied=frozenset({2}))
    written = {"time": ["00001-00000", "00001-00001", "00002-00000", "00002-00001"], "backward": ["00002-00001"]}
    for order, names in written.items():
        folder = run.repartitioned("topic", 3, order)
        folder.mkdir(parents=True)
        for name in names:
            (folder / f"{name}.arrow").touch()
        (folder / ".00001-00002.arrow.7").touch()  # of a task that is not through

    def read(order):
        return [(file.parents[2].name, file.stem) for file in run.files("topic", 3, order)]

    assert read("time") == [("time", name) for name in written["time"]]
    once = [("time", "00001-00000"), ("time", "00001-00001")]
    assert sorted(read("backward")) == sorted([*once, ("backward", "00002-00001")])
    assert sorted(read("forward")) == once
    assert run.files("topic", 4, "time") == []

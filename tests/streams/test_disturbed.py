"""What a program's stores depend on besides its records, as its runs show it: small programs in one application, without a broker."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

from kops.formats.batches.columns import RecordColumns
from kops.gateways.machine.jars import KAFKA_VERSION, class_path
from kops.gateways.machine.program import ProgramStart
from kops.operations.streams.capture import capture_program
from kops.spark.programs.models import SAMPLE, ProgramTask, Run, StoreTask
from kops.spark.programs.tasks import run_task
from kops.spark.programs.worker_program import end_programs
from kops.spark.reading.batch_source import TaskInput
from support.captured import built_agent
from support.own_apps import SOURCES
from support.own_code import jars_of_streams
from support.streams import compiled, java_with

pytestmark = pytest.mark.streams

COUNT = 600


def read(piece: TaskInput) -> Iterator[RecordColumns]:
    """Yield the input: texts of several lengths with letters that are not ASCII, under a few keys."""
    assert piece.topic == "app-in"
    content, places = bytearray(b"\0"), []
    for at in range(piece.start, piece.end):
        key, value = b"key-%d" % (at % 7), f"{at % 10}{'ü' * (at * 5 % 11)}{at:04}".encode()
        places.append((at, 1_700_000_000_000 + 977_777 * at, len(content), len(key), len(content) + len(key), len(value), 0))
        content += key + value
    yield RecordColumns(bytes(content), *(numpy.array(column, numpy.int64) for column in zip(*places, strict=True)))


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """Return a function that runs the task of a sub-topology, and the stores of it."""
    built_agent()
    folder = tmp_path_factory.mktemp("depending")
    jars = jars_of_streams(KAFKA_VERSION)
    classes = compiled(SOURCES / "Depending.java", KAFKA_VERSION, jars, [])
    command = [*java_with(class_path([*jars, classes])), "Depending", "127.0.0.1:1", str(folder / "state"), "app"]
    found = capture_program(command, 120_000)
    entries = tuple((Path(each["path"]).name, each["sha256"]) for each in found["class_path"]["entries"])
    start = ProgramStart(
        tuple(found["command"]), str(folder), str(folder), os.getpid(), entries, found["class_path"]["sha256"], seconds=120
    )
    settings = {"partitions.app-in": "1", "partitions.app-again-repartition": "1", "wall_clock": "1700000000000", "state.dir": str(folder)}
    changelogs = {each["name"]: each["changelog"] for each in found["stores"]}

    def run(number, disturbed, count=COUNT, varied=frozenset()):
        run = Run(start, settings, "app", {}, varied=varied)
        named = {each["name"] for each in found["subtopologies"][number]["changelogs"]}
        stores = []
        for name, changelog in changelogs.items():
            if changelog in named:
                (stage := folder / f"stage-{number}-{name}").mkdir(exist_ok=True)
                stores.append(StoreTask(name, changelog, None, str(stage)))
        again = ("app-again-repartition",)
        pieces = () if number else (TaskInput("app-in", 0, 0, count),)
        task = ProgramTask(
            number, 0, pieces, again if number else (), stores=tuple(stores), passes_on=() if number else again, disturbed=disturbed
        )
        return json.loads(run_task(run, task, read)["facts"][0].as_py())

    yield run
    end_programs()


def test_single_disturbances_say_on_what_a_store_depends(tasks):
    """The name of each store begins with it; of those that depend on nothing else, a clock is called and memories are kept, too."""
    found = tasks(0, SAMPLE)
    assert (found["disturbed"], found["thrown"], found["passed_differing"]) == (COUNT, None, 0)
    assert found["restarts"] >= 16
    stores = found["stores"]
    assert len(stores) == 31
    chance = {name for name in stores if name.startswith(("chance", "hash-order"))}
    for name, facts in stores.items():
        if name.startswith("nothing"):
            assert (facts["unsure"], facts["unsure_times"], facts["depends_on"]) == (0, 0, []), name
        else:
            assert facts["unsure"] > 0, name
            wanted = ["chance"] if name in chance else [name.rpartition("-")[0]]
            assert facts["depends_on"] in (wanted, ["hash-order"] if name == "hash-order-set" else wanted), name

    behind = tasks(1, SAMPLE)
    assert behind["stores"]["offsets-number"]["depends_on"] == ["offsets"]

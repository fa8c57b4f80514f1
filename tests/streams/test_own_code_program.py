"""A program in a JVM of its own, as kops starts it and speaks to it: no broker, since no KafkaStreams is constructed."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kops.core.errors import OperationFailed, Refused
from kops.formats import runner_frames as frames
from kops.gateways.machine.program import Program, ProgramStart
from kops.operations.streams.capture import capture_program
from support import own_apps
from support.captured import built_agent, java, launcher, programs
from support.own_apps import App
from support.own_code import Row, batch_of, rows_of
from support.streams_apps import wait_for

pytestmark = pytest.mark.streams

NEWEST = "4.3.1"
VERSIONS = (*(pytest.param(version, marks=pytest.mark.long) for version in ("2.8.2", "3.9.1")), NEWEST)
ASKED = [
    "Instant.now",
    "Math.random",
    "Random.nextInt",
    "System.nanoTime",
    "ThreadLocalRandom.current",
    "ThreadLocalRandom.nextInt",
    "UUID.randomUUID",
    "new Date",
    "new Random",
]
PARTITIONS = {"app-in": 1, "app-letters-repartition": 3}


@pytest.fixture(autouse=True, scope="module")
def agent():
    return built_agent()


@pytest.fixture
def app(tmp_path):
    """Return an application whose classes are the test's own."""

    class NoBroker:
        servers = "127.0.0.1:1"

    def make(version=NEWEST):
        classes = shutil.copytree(own_apps.classes(version), tmp_path / "classes")
        return App(NoBroker(), "texts", "app", tmp_path / "app", version=version, classes=classes)

    return make


@pytest.fixture
def start(tmp_path):
    """Capture an application; return how its program is started."""

    def make(app):
        found = capture_program(app.words or app.command, 120_000)
        entries = tuple((Path(each["path"]).name, each["sha256"]) for each in found["class_path"]["entries"])
        folder = tmp_path / "run"
        folder.mkdir()
        return ProgramStart(
            tuple(found["command"]), str(tmp_path), str(folder), os.getpid(), entries, found["class_path"]["sha256"], seconds=120
        )

    return make


def configured(program):
    settings = {f"partitions.{topic}": str(count) for topic, count in PARTITIONS.items()}
    return program.ask(frames.CONFIGURE, frames.encoded_map(settings))[1]


def run(program, *values):
    """Run the first task over values of one key; return what it wrote, by topic, and what it was seen to call."""
    rows = [Row("app-in", 0, 7 + at, 1_000_000 + at, b"k", value) for at, value in enumerate(values)]
    batches = program.ask(frames.TASK, frames.encoded_map({"subtopology": "0", "partition": "0", "changelogs": "last"}))[0]
    batches += program.ask(frames.RECORDS, frames.encoded_batch(batch_of(rows)))[0]
    rest, facts = program.ask(frames.FINISH)
    return {row.topic: row for batch in batches + rest for row in rows_of(batch)}, facts["calls"].splitlines()


@pytest.mark.long
def test_a_program_that_a_launchers_class_loader_loads(app, start):
    """As that of a fat jar does: the runner finds the library that the topology is of."""
    made = app()
    library, classes = programs(NEWEST)
    made.words = java("-cp", launcher(), "ChildLoader", "ManyStores", f"{library}{os.pathsep}{classes}")
    program = Program(start(made))
    try:
        hello = program.ask(frames.CONFIGURE, frames.encoded_map({"partitions.clicks": "1"}))[1]
        assert (hello["application"], hello["kafka"]) == ("many", NEWEST)
    finally:
        program.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_program_of_each_version_runs_its_tasks(app, start, version):
    started = start(app(version))
    program = Program(started)
    try:
        hello = configured(program)
        assert (hello["application"], hello["kafka"]) == ("app", version)
        written, calls = run(program, b"a1", b"b2")
        assert written["app-texts-changelog"].value.endswith(b",a1,b2")
        assert written["app-letters-repartition"].key == b"b"
        assert calls == []
        _, calls = run(program, b"!ask")
        assert [call.removeprefix("Apps.ask: ") for call in calls] == ASKED
    finally:
        program.close()
    assert not list(Path(started.folder).iterdir())


def test_what_a_program_throws_is_named_with_the_record(app, start, tmp_path):
    program = Program(start(app()))
    file = tmp_path / "there"
    try:
        configured(program)
        file.touch()
        with pytest.raises(OperationFailed) as raised:
            run(program, b"a", b"!throw:%s" % str(file).encode())
        assert raised.value.message == (
            "the program threw java.lang.IllegalStateException: a value that cannot be joined in Apps.misbehave(Apps.java:"
            f"{raised.value.message.partition('Apps.java:')[2].partition(')')[0]}) while it was to process at app-in:0 offset 8"
        )
        file.unlink()
        assert run(program, b"c")[0]["app-texts-changelog"].value.endswith(b",c")
        file.touch()
        with pytest.raises(OperationFailed, match="ended with exit code 3 while kops ran its tasks; it printed last:"):
            run(program, b"!halt:%s" % str(file).encode())
    finally:
        program.close()


def test_another_build_is_refused(app, start):
    made = app()
    started = start(made)
    (made.classes / "more.properties").write_text("a=b")
    with pytest.raises(Refused, match="the class path is not that of the capture: classes differs"):
        Program(started)
    for file in made.classes.glob("Apps*"):
        file.unlink()
    with pytest.raises(OperationFailed, match="the class path lacks Apps"):
        Program(started)
    shutil.rmtree(made.classes)
    with pytest.raises(OperationFailed, match="the class path lacks Apps"):
        Program(started)
    assert not list(Path(started.folder).iterdir())


def test_a_program_ends_with_the_process_that_wanted_it(app, start, tmp_path):
    """Also where it is busy, and that process was killed: here one that waits for its end."""
    started = start(app())
    waiter = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    program = Program(ProgramStart(**{**vars(started), "process": waiter.pid}))
    try:
        configured(program)
        waiter.send_signal(signal.SIGKILL)
        waiter.communicate()
        wait_for("the JVM to end", lambda: program._process.poll() is not None)
    finally:
        program.close()

"""A program in a JVM of its own, as kops starts it and speaks to it: no broker, since no KafkaStreams is constructed."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kops.core.errors import MissingRequirement, OperationFailed, Refused
from kops.core.streams.capture_file import read_capture
from kops.formats import runner_frames as frames
from kops.gateways.machine.program import CannotBeginAfresh, Program, ProgramStart, keep_environment, launched
from kops.gateways.machine.program_ahead import ProgramPool, TakenProcess
from kops.gateways.machine.program_connection import no_network_command
from kops.operations.state.own_code.stores import launch_settings
from kops.operations.streams.capture import capture_method, capture_program
from support import own_apps
from support.captured import built_agent, java, launcher, programs, spring_jar
from support.own_apps import App
from support.own_code import Row, batch_of, jars_of_streams, rows_of
from support.streams_apps import wait_for

pytestmark = pytest.mark.streams

NEWEST = "4.4.0"
STRINGS = "org.apache.kafka.common.serialization.Serdes$StringSerde"
VERSIONS = (*(pytest.param(version, marks=pytest.mark.long) for version in ("2.8.2", "3.9.1", "4.3.1")), NEWEST)
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


def configured(program, folder):
    settings = {f"partitions.{topic}": str(count) for topic, count in PARTITIONS.items()} | {"state.dir": str(folder)}
    return program.ask(frames.CONFIGURE, frames.encoded_map(settings))


def run(program, *values):
    """Run the first task over values of one key; return what it wrote, by topic."""
    rows = [Row("app-in", 0, 7 + at, 1_000_000 + at, b"k", value) for at, value in enumerate(values)]
    batches = []
    program.ask(frames.TASK, frames.encoded_map({"subtopology": "0", "partition": "0", "changelogs": "last"}), batches.append)
    program.ask(frames.RECORDS, frames.encoded_batch(batch_of(rows)), batches.append)
    program.ask(frames.FINISH, take=batches.append)
    return {row.topic: row for batch in batches for row in rows_of(batch)}


@pytest.fixture
def service(tmp_path):
    """Listen on a port; return the record that makes the program call it, and how often it was."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        file = tmp_path / "port"
        file.write_text(str(server.getsockname()[1]))
        server.settimeout(0)

        def called():
            count = 0
            with contextlib.suppress(BlockingIOError):
                while True:
                    server.accept()[0].close()
                    count += 1
            return count

        yield b"!call:%s" % bytes(file), called


@pytest.fixture
def alone():
    try:
        return no_network_command()
    except MissingRequirement as lacking:
        pytest.skip(lacking.message)


def test_a_program_without_a_network_reaches_nobody(app, start, service, alone, tmp_path):
    record, called = service
    started = start(app())
    program = Program(started)
    try:
        configured(program, tmp_path)
        run(program, record)
        assert called() == 1
    finally:
        program.close()
    program = Program(replace(started, alone=alone))
    try:
        configured(program, tmp_path)
        with pytest.raises(OperationFailed, match=r"the program threw java\.net.*Exception: .* in Apps.misbehave") as failed:
            run(program, record)
        assert "without a network (--no-network)" in failed.value.hint
        written = run(program, *[b"a%d" % at for at in range(3000)])  # more than a pipe holds, both ways
        assert written["app-texts-changelog"].value.endswith(b",a2999")
        os.killpg(program._process.pid, signal.SIGKILL)
        with pytest.raises(OperationFailed, match="was ended by signal 9"):
            run(program, b"a1")
    finally:
        program.close()
    assert called() == 0
    assert not list(Path(started.folder).iterdir())


def test_a_system_that_makes_no_network_namespaces(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingRequirement, match="there is no command `unshare`"):
        no_network_command()
    (tmp_path / "unshare").write_text("#!/bin/sh\necho 'unshare failed: Operation not permitted' >&2; exit 1\n")
    (tmp_path / "unshare").chmod(0o755)
    with pytest.raises(MissingRequirement, match="without a network: unshare failed: Operation not permitted"):
        no_network_command()


@pytest.mark.long
def test_a_method_in_place_of_a_main(app, tmp_path):
    made = app()
    settings = {"application.id": "app", "default.key.serde": STRINGS, "default.value.serde": STRINGS, "bootstrap.servers": "127.0.0.1:1"}
    found = capture_method("Apps::topology", made.path.split(os.pathsep), settings, 120_000)
    capture = read_capture(found, "c.json")
    (tmp_path / "run").mkdir()
    entries = tuple((Path(entry.path).name, entry.sha256) for entry in capture.class_path)
    given = launch_settings(capture)
    assert given == settings
    start = ProgramStart(
        capture.command, str(tmp_path), str(tmp_path / "run"), os.getpid(), entries, capture.class_path_sha256, 120, properties=given
    )
    program = Program(start)
    try:
        assert configured(program, tmp_path)["application"] == "app"
        for _ in range(2):
            assert run(program, b"a1")["app-texts-changelog"].value.endswith(b",a1")
            program.ask(frames.RESTART)
    finally:
        program.close()


@pytest.mark.long
def test_a_program_that_a_launchers_class_loader_loads(app, start, tmp_path):
    """As that of a fat jar does: the runner finds the library that the topology is of."""
    made = app()
    library, classes = programs(NEWEST)
    made.words = java("-cp", launcher(), "ChildLoader", "ManyStores", f"{library}{os.pathsep}{classes}")
    program = Program(start(made))
    try:
        hello = program.ask(frames.CONFIGURE, frames.encoded_map({"partitions.clicks": "1", "state.dir": str(tmp_path)}))
        assert (hello["application"], hello["kafka"]) == ("many", NEWEST)
        with pytest.raises(CannotBeginAfresh, match="the program has Kafka Streams of another class loader"):
            program.ask(frames.RESTART)
    finally:
        program.close()


@pytest.mark.long
def test_a_program_in_a_jar_of_jars_begins_afresh(app, start, tmp_path):
    """By its launcher, whose class loader finds Kafka Streams where it was."""
    made = app()
    jar = spring_jar(tmp_path / "app.jar", made.classes, jars_of_streams(NEWEST), "Apps")
    made.words = java("-jar", jar, *made.command[made.command.index("Apps") + 1 :])
    program = Program(start(made))
    try:
        configured(program, tmp_path)
        for _ in range(3):
            assert run(program, b"a1", b"b2")["app-texts-changelog"].value.endswith(b",a1,b2")
            program.ask(frames.RESTART)
    finally:
        program.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_program_of_each_version_runs_its_tasks(app, start, version, tmp_path):
    started = start(app(version))
    program = Program(started)
    try:
        hello = configured(program, tmp_path)
        assert (hello["application"], hello["kafka"]) == ("app", version)
        written = run(program, b"a1", b"b2")
        assert written["app-texts-changelog"].value.endswith(b",a1,b2")
        assert written["app-letters-repartition"].key == b"b"
    finally:
        program.close()
    assert not list(Path(started.folder).iterdir())


def test_what_a_program_throws_is_named_with_the_record(app, start, tmp_path):
    program = Program(start(app()))
    file = tmp_path / "there"
    try:
        configured(program, tmp_path)
        file.touch()
        with pytest.raises(OperationFailed) as raised:
            run(program, b"a", b"!throw:%s" % str(file).encode())
        assert raised.value.message == (
            "the program threw java.lang.IllegalStateException: a value that cannot be joined in Apps.misbehave(Apps.java:"
            f"{raised.value.message.partition('Apps.java:')[2].partition(')')[0]}) while it was to process at app-in:0 offset 8"
        )
        with pytest.raises(OperationFailed) as raised:
            run(program, b"a", b"!fill:%s" % str(file).encode())
        assert raised.value.message == (
            "the program at app-in:0 offset 8: the memory of its JVM of 494.9 MiB was not enough, and nothing was written:"
            " java.lang.OutOfMemoryError: Java heap space"
        )
        assert "give it more by -Xmx in JAVA_TOOL_OPTIONS" in raised.value.hint
        file.unlink()
        assert run(program, b"c")["app-texts-changelog"].value.endswith(b",c")
        file.touch()
        with pytest.raises(OperationFailed, match="ended with exit code 3 while kops ran its tasks; it printed last:"):
            run(program, b"!halt:%s" % str(file).encode())
    finally:
        program.close()


@pytest.mark.parametrize("variables", [{}, pytest.param({"JAVA_TOOL_OPTIONS": "-Xmx96m"}, marks=pytest.mark.long)])
def test_a_jvm_has_the_heap_that_it_is_given(app, start, variables, tmp_path):
    made = app()
    made.words = [word for word in made.command if not word.startswith("-Xmx")]
    started = replace(start(made), heap=64 << 20)
    keep_environment(started.folder, {**os.environ, **variables})
    program = Program(started)
    try:
        configured(program, tmp_path)
        rows = [Row("app-in", 0, 0, 1_000_000, b"k", b"v")]
        program.ask(frames.TASK, frames.encoded_map({"subtopology": "0", "partition": "0"}))
        program.ask(frames.RECORDS, frames.encoded_batch(batch_of(rows)))
        heap = int(program.ask(frames.FINISH)["heap"]) / 2**20
    finally:
        program.close()
    assert (48 < heap <= 64) if not variables else (72 < heap <= 96)


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
        configured(program, tmp_path)
        waiter.send_signal(signal.SIGKILL)
        waiter.communicate()
        wait_for("the JVM to end", lambda: program._process.poll() is not None)
    finally:
        program.close()


def test_a_program_that_was_started_ahead_is_taken_once(app, start, tmp_path):
    started = start(app())

    def one_ahead():
        return ProgramPool(started.folder, 1, lambda own, given: launched(started, os.environ, own, given))

    ahead = one_ahead()
    programs = [Program(started)]
    file = tmp_path / "there"
    file.touch()
    try:
        taken = programs[0]
        assert isinstance(taken._process, TakenProcess)
        configured(taken, tmp_path)
        assert run(taken, b"a1")[0]["app-texts-changelog"].value.endswith(b",a1")
        one_ahead().close()  # as is done with those that nobody took: who comes then finds that it has ended
        with pytest.raises(OperationFailed, match=r"ended (by signal 15|with exit code 143) while kops ran its tasks"):
            Program(started)
        programs.append(Program(started))
        assert not isinstance(programs[1]._process, TakenProcess)
        with pytest.raises(OperationFailed, match="ended with exit code 3 while kops ran its tasks; it printed last:"):
            run(taken, b"!halt:%s" % str(file).encode())
    finally:
        for program in programs:
            program.close()
        ahead.close()
    assert not list(Path(started.folder).iterdir())

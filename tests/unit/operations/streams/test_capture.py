"""What is made of a program that was started under the agent. A shell plays the JVM: it does with the folder what the agent would."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from kops.core.errors import ConfigError, MissingRequirement, OperationFailed, TimedOut, UsageProblem
from kops.gateways.machine import agent
from kops.operations.streams import capture
from support.stand_in_jars import stand_in

CAPTURED = json.loads((Path(__file__).parents[2] / "core" / "streams" / "capture.json").read_text(encoding="utf-8"))
FOLDER = "folder=${JAVA_TOOL_OPTIONS##*=}; folder=${folder%\\'}; "
STARTED = FOLDER + 'echo "{}" > "$folder/started-$$.json"; '
LONG = 60_000


@pytest.fixture(autouse=True)
def jar(tmp_path, monkeypatch):
    return stand_in(tmp_path, monkeypatch)


@pytest.fixture
def written(tmp_path):
    file = tmp_path / "written.json"
    file.write_text(json.dumps(CAPTURED))
    return file


def shell(script):
    return ("sh", "-c", script)


def hand_over(file, name="capture.json"):
    return f'cp "{file}" "$folder/part"; mv "$folder/part" "$folder/{name}"'


def test_what_the_agent_wrote_is_the_capture(written):
    body = capture.capture_program(shell(f"{STARTED} {hand_over(written)}; sleep 60"), LONG)
    assert body["application_id"] == "many"


@pytest.mark.slow
def test_nothing_that_the_command_started_is_left(written, tmp_path):
    pids = tmp_path / "pids"
    script = f'{STARTED} sleep 600 & echo $! > "{pids}"; {hand_over(written)}; wait'
    capture.capture_program(shell(script), LONG)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pids.read_text()), 0)


@pytest.mark.slow
def test_a_jvm_that_a_script_leaves_in_the_background_is_waited_for(written):
    later = f'sleep 0.5; folder=$0; echo "{{}}" > "$folder/started-$$.json"; {hand_over(written)}'
    body = capture.capture_program(shell(f"{FOLDER} sh -c '{later}' \"$folder\" &"), LONG)
    assert body["application_id"] == "many"


def test_a_program_that_ends_before():
    with pytest.raises(OperationFailed) as raised:
        capture.capture_program(shell(f"{STARTED} echo 'no password=hunter2 given'; echo 'Picked up JAVA_TOOL_OPTIONS: x'; exit 3"), LONG)
    assert raised.value.message.endswith(
        "ended with exit code 3 before it constructed KafkaStreams; it printed last:\nno password=******** given"
    )


def test_a_program_whose_class_path_lacks_a_class():
    said = "Exception in thread main java.lang.NoClassDefFoundError: com/acme/Serde; at com.acme.App"
    with pytest.raises(OperationFailed, match=r"ended with exit code 1: the class path lacks com\.acme\.Serde; it printed"):
        capture.capture_program(shell(f"{STARTED} echo '{said}'; exit 1"), LONG)


def test_a_program_that_a_signal_ends():
    with pytest.raises(OperationFailed, match=r"was ended by signal 9 before it constructed KafkaStreams; it printed nothing$"):
        capture.capture_program(shell(f"{STARTED} kill -9 $$"), LONG)


def test_a_command_without_java():
    with pytest.raises(OperationFailed, match="ended with exit code 0 and started no JVM that took the agent") as raised:
        capture.capture_program(shell("echo hello"), LONG)
    assert "JAVA_TOOL_OPTIONS" in raised.value.hint


def test_a_command_that_does_not_exist():
    with pytest.raises(UsageProblem, match="cannot start no-such-command: No such file or directory"):
        capture.capture_program(("no-such-command",), LONG)


@pytest.mark.parametrize(
    ("start", "seen"), [(STARTED, "it has not constructed KafkaStreams"), ("", "it started no JVM that took the agent")]
)
def test_a_program_that_takes_too_long(start, seen):
    began = time.monotonic()
    with pytest.raises(TimedOut, match=f"was ended after 300ms: {seen}; it printed last:\nwaiting$"):
        capture.capture_program(shell(f"{start} echo waiting; exec sleep 600"), 300)
    assert time.monotonic() - began < 60


def test_one_that_ignores_signals_is_killed(monkeypatch):
    monkeypatch.setattr(agent, "_GRACE_SECONDS", 0.2)
    with pytest.raises(TimedOut):
        capture.capture_program(shell("trap '' TERM; while :; do sleep 0.05; done"), 300)


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        ({"problem": "cannot read it", "error": "X: y", "missing_class": "com.acme.Serde"}, "the class path lacks com.acme.Serde"),
        ({"problem": "cannot read it", "error": "java.lang.Oops: y", "missing_class": None}, "cannot read it: java.lang.Oops: y"),
        ({"problem": "constructs KafkaStreams in another way", "error": None}, "constructs KafkaStreams in another way"),
    ],
)
def test_what_the_agent_could_not_read(tmp_path, failure, message):
    (tmp_path / "failure.json").write_text(json.dumps(failure))
    script = f"{STARTED} {hand_over(tmp_path / 'failure.json', 'failure.json')}; exit 87"
    with pytest.raises(OperationFailed) as raised:
        capture.capture_program(shell(script), LONG)
    assert raised.value.message.endswith(message)


def test_a_java_that_is_too_old():
    said = "java.lang.UnsupportedClassVersionError: kops/agent/Agent has been compiled by a more recent version"
    with pytest.raises(OperationFailed, match="runs on a Java that is too old") as raised:
        capture.capture_program(shell(f"echo '{said}'; exit 1"), LONG)
    assert "Java 11" in raised.value.hint


def test_kops_without_its_agent(jar):
    jar.unlink()
    with pytest.raises(MissingRequirement, match="this kops was built without its Java agent"):
        capture.capture_program(("true",), LONG)


def test_options_that_the_environment_has_are_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dmine=1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with pytest.raises(OperationFailed) as raised:
        capture.capture_program(shell('echo "[$JAVA_TOOL_OPTIONS]"'), LONG)
    assert "[-Dmine=1 -javaagent:" in raised.value.message


@pytest.mark.parametrize(
    ("option", "quoted"), [("-javaagent:/a=/b", "-javaagent:/a=/b"), ("-javaagent:/a b=/c", "'-javaagent:/a b=/c'"), ("it's", '"it\'s"')]
)
def test_options_are_quoted_as_the_jvm_reads_them(option, quoted):
    assert agent.quoted(option) == quoted


@pytest.mark.parametrize(
    ("place", "path", "settings", "message"),
    [
        ("com.acme.App.topology", (), {"application.id": "a"}, "'com.acme.App.topology' names no method"),
        ("com.acme.App::topology", (), {}, "the settings have no application.id"),
        ("com.acme.App::topology", ("/no/app.jar",), {"application.id": "a"}, "there is no /no/app.jar, which the class path names"),
    ],
)
def test_a_method_that_cannot_be_called(place, path, settings, message):
    with pytest.raises(UsageProblem, match=message):
        capture.capture_method(place, path, settings, LONG)


def test_a_capture_is_saved_and_loaded(tmp_path):
    capture.save_capture(CAPTURED, str(tmp_path / "c.json"))
    assert capture.load_capture(str(tmp_path / "c.json")).application == "many"
    (tmp_path / "text").write_text("text")
    with pytest.raises(ConfigError, match="is not JSON"):
        capture.load_capture(str(tmp_path / "text"))
    with pytest.raises(ConfigError, match=r"cannot read .*: No such file"):
        capture.load_capture(str(tmp_path / "nothing"))
    with pytest.raises(ConfigError, match=r"cannot write .*: Is a directory"):
        capture.save_capture(CAPTURED, str(tmp_path))


def test_notes_name_what_cannot_be_taken_for_granted(tmp_path):
    capture.save_capture({**CAPTURED, "unknown": [{"what": "a", "why": "b"}]}, str(tmp_path / "c.json"))
    assert capture.capture_notes(capture.load_capture(str(tmp_path / "c.json"))) == [
        "a is unknown: b",
        "processors that may act on wall-clock time: dedup",
        "repartition topics with a partitioner of the program's own: many-apart-repartition (ManyStores$First)",
    ]


def test_interrupting_ends_the_command(monkeypatch, tmp_path):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(agent, "_wait", interrupted)
    pids = tmp_path / "pids"
    with pytest.raises(KeyboardInterrupt):
        capture.capture_program(shell(f'echo $$ > "{pids}"; exec sleep 600'), LONG)
    assert not pids.exists() or not pids.read_text() or _is_gone(int(pids.read_text()))


def _is_gone(pid):
    try:
        os.kill(pid, signal.SIG_DFL)
    except ProcessLookupError:
        return True
    return False

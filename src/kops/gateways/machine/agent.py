"""Start a program under kops' Java agent, and wait until it constructs KafkaStreams, ends, or takes too long.

``java/agent`` is the agent. The JVM and kops share a private folder: ``agent.properties`` says what the agent is to do,
``started-PID.json`` that a JVM took it, ``capture.json`` and ``failure.json`` what came of it.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kops.core.errors import MissingRequirement, UsageProblem
from kops.core.secret_shapes import HIDDEN, name_patterns, without_secret_words, without_secrets
from kops.gateways.machine import jar_stamps

AGENT_JAR = Path(__file__).parents[2] / "java" / "kops-agent.jar"
RUNNER_JAR = AGENT_JAR.with_name("kops-runner.jar")
LAUNCH = "kops.agent.Launch"
"""The class of the agent that calls a static method in place of a program's main."""

_COERCED = ("C.UTF-8", "C.utf8", "UTF-8")
"""What Python sets LC_CTYPE to where the locale is that of C (PEP 538), and each child then has."""
_NO_SERVERS = {"SERVER_PORT": "-1", "MANAGEMENT_SERVER_PORT": "-1"}
"""Variables by which Spring Boot opens no port before its KafkaStreams: the application, or another start of it, may have that."""
_POLL_SECONDS = 0.05
_GRACE_SECONDS = 5.0
_LINES_SHOWN = 20
_SHOWN = 100
_BUILD = "install a release file of kops; or run `python java/agent_jar.py` in a clone, which says what it lacks, and install that"
_REBUILD = "run `make setup` in a clone, which builds it; elsewhere install the release file of kops again"
_PICKED_UP = "Picked up JAVA_TOOL_OPTIONS:"


@dataclass(frozen=True)
class AgentRun:
    """What came of a program under the agent.

    :param capture: the facts, if it was captured
    :param failure: why it could not be, if the agent says so
    :param jvms: how many JVMs took the agent
    :param exit_code: of the command, if it ended by itself; negative: of a signal
    :param output: the last lines that it printed, without what looks like a secret
    """

    capture: dict[str, Any] | None
    failure: dict[str, Any] | None
    jvms: int
    exit_code: int | None
    output: str


def require_agent() -> Path:
    """Return the agent's jar.

    :raises MissingRequirement: when kops was installed without it, or it is that of another kops
    """
    return _of_this_kops(AGENT_JAR, jar_stamps.AGENT, "its Java agent")


def require_runner() -> Path:
    """Return the jar of the runner, which the agent hands a program's topology to.

    :raises MissingRequirement: when kops was installed without it, or it is that of another kops
    """
    return _of_this_kops(RUNNER_JAR, jar_stamps.RUNNER, "the runner of programs")


def _of_this_kops(jar: Path, part: str, name: str) -> Path:
    if not jar.is_file():
        raise MissingRequirement(f"this kops was built without {name}", hint=_BUILD)
    if not jar_stamps.has_our_stamp(jar, part):
        raise MissingRequirement(f"{jar.name} was built with another version of kops' code than this one", hint=_REBUILD)
    return jar


def run_under_agent(command: Sequence[str], *, seconds: float, properties: Mapping[str, str] | None = None) -> AgentRun:
    """Start a command with the agent in ``JAVA_TOOL_OPTIONS``; when this returns, neither it nor what it started is left.

    :param seconds: how long it may take to construct KafkaStreams
    :param properties: settings for :data:`LAUNCH`; written to a file of which the command is given the path as its last word
    :raises UsageProblem: when the command cannot be started
    """
    with tempfile.TemporaryDirectory(prefix="kops-capture-") as name:  # of mode 0700
        folder = Path(name)
        words = with_settings([*command, ""] if properties is not None else command, properties, folder)
        process = start_under_agent(words, folder, {"mode": "capture"})
        try:
            ended = _wait(process, folder, time.monotonic() + seconds)
        finally:
            end_session(process)
        return AgentRun(
            read_note(folder / "capture.json"),
            read_note(folder / "failure.json"),
            len(list(folder.glob("started-*.json"))),
            process.returncode if ended else None,
            last_lines(folder / "output"),
        )


def start_under_agent(
    words: Sequence[str],
    folder: Path,
    settings: Mapping[str, str],
    *,
    environment: Mapping[str, str] | None = None,
    directory: str | None = None,
    fds: Sequence[int] = (),
    jar: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a command with the agent in ``JAVA_TOOL_OPTIONS``, as a session of its own; what it prints goes to ``output`` in the folder.

    :param folder: private; the agent and kops speak by files in it
    :param settings: of the agent, beside the rules by which it hides secrets
    :param environment: None: that of the shell
    :param directory: where the command is run; None: in kops' own
    :param fds: that the command gets
    :param jar: the agent; None: the installed one
    :raises UsageProblem: when it cannot be started
    """
    jar = jar or require_agent()
    (folder / "agent.properties").write_text(properties_text({**_rules_of_secrets(), **settings}), encoding="utf-8")
    with (folder / "output").open("wb") as output:
        try:
            return subprocess.Popen(
                list(words),
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_with_agent(shell_environment() if environment is None else environment, jar, folder),
                start_new_session=True,
                pass_fds=fds,
            )
        except OSError as error:
            where = f" in {directory}" if directory else ""
            raise UsageProblem(f"cannot start {words[0]}{where}: {error.strerror}") from error


def shell_environment() -> dict[str, str]:
    """Return the environment that kops was started with: without the LC_CTYPE that Python has set (PEP 538), which a JVM would go by."""
    found = dict(os.environ)
    if found.get("LC_CTYPE") in _COERCED and _was_coerced():
        del found["LC_CTYPE"]
    return found


def _was_coerced() -> bool:
    """Whether Python set LC_CTYPE: the kernel keeps what a process was started with; elsewhere Python's UTF-8 mode (PEP 540) shows it."""
    try:
        return not any(each.startswith(b"LC_CTYPE=") for each in Path("/proc/self/environ").read_bytes().split(b"\0"))
    except OSError:
        locales = {os.environ.get(name) or "C" for name in ("LC_ALL", "LANG")}
        return bool(sys.flags.utf8_mode) and "PYTHONUTF8" not in os.environ and locales <= {"C", "POSIX"}


def with_settings(command: Sequence[str], properties: Mapping[str, str] | None, folder: Path) -> list[str]:
    """Return a command with a file of settings as its last word, in place of what stands there; without settings, as it is."""
    if properties is None:
        return list(command)
    given = folder / "given.properties"
    given.touch(mode=0o600)
    given.write_text(properties_text(properties), encoding="utf-8")
    return [*command[:-1], str(given)]


def _rules_of_secrets() -> dict[str, str]:
    secret, in_camels, no_secret = name_patterns()
    return {"secret": secret, "secret.in.camels": in_camels, "no.secret": no_secret, "hidden": HIDDEN}


def properties_text(values: Mapping[str, str]) -> str:
    import javaproperties

    return str(javaproperties.dumps(values, timestamp=False))


def _with_agent(environment: Mapping[str, str], jar: Path, folder: Path) -> dict[str, str]:
    """Return an environment in which every JVM takes the agent, and no server of a program the port that the application has."""
    option = quoted(f"-javaagent:{jar}={folder}")
    return {**environment, **_NO_SERVERS, "JAVA_TOOL_OPTIONS": " ".join(filter(None, [environment.get("JAVA_TOOL_OPTIONS"), option]))}


def quoted(option: str) -> str:
    """Quote a word as the JVM reads ``JAVA_TOOL_OPTIONS``: within quotes of one kind, there are no escapes."""
    if not any(each.isspace() or each in "'\"" for each in option):
        return option
    mark = '"' if "'" in option else "'"
    return f"{mark}{option}{mark}"


def _wait(process: subprocess.Popen[bytes], folder: Path, deadline: float) -> bool:
    """Wait until the agent has said something, or nothing more can come; return whether the command had ended by itself."""
    while time.monotonic() < deadline:
        ended = process.poll() is not None and not _lives(process.pid)  # looked at first: what it wrote is there when it has ended
        if (folder / "capture.json").exists() or (folder / "failure.json").exists():
            return False
        if ended:
            return True
        time.sleep(_POLL_SECONDS)
    return False


def _lives(group: int) -> bool:
    """Whether anything that a command started is still there: a script may have left a JVM in the background."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):  # macOS answers so for a group of zombies
        return False
    return True


class ProcessHandle(Protocol):
    """A process that is to end."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self) -> int | None: ...


def end_session(process: ProcessHandle) -> None:
    """End the command with all that it started: they are a session, and so a group, of their own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            break
        deadline = time.monotonic() + _GRACE_SECONDS
        while time.monotonic() < deadline:
            process.poll()
            if not _lives(process.pid):
                break
            time.sleep(_POLL_SECONDS)
    process.wait()


def read_note(file: Path) -> dict[str, Any] | None:
    """Return what the agent wrote into a file; None: nothing."""
    if not file.exists():
        return None
    body: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return body


def last_lines(file: Path) -> str:
    """Return the last lines that a command printed, without what looks like a secret."""
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    return without_secrets("\n".join([line for line in lines if not line.startswith(_PICKED_UP)][-_LINES_SHOWN:]))


def printed_text(output: str) -> str:
    """Return the end of a sentence: what a command printed last.

    :param output: :func:`last_lines`
    """
    return f"; it printed last:\n{output}" if output else "; it printed nothing"


def ended_text(code: int) -> str:
    """Say how a command ended: of its exit code, which is negative after a signal."""
    return f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"


def command_text(command: Sequence[str]) -> str:
    """Return a command as it is written in a shell, without what looks like a secret; a long one, as with a class path, in part."""
    text = without_secrets(shlex.join(without_secret_words(command)))
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN * 2 // 3]} ... {text[-_SHOWN // 3 :]}"

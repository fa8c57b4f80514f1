"""An application's own program in a JVM of its own, whose tasks kops runs: started under the agent, spoken to in frames.

The agent hands the program's topology and settings to the runner (``java/runner``), in the same JVM and with the same class loaders.
The frames (``kops.formats.runner_frames``) go over a connection of their own (``program_connection``): what the program prints, or the
scripts that start it, goes elsewhere.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kops.core.errors import KopsError, OperationFailed, Refused, TimedOut
from kops.core.sizes import size_text
from kops.formats import runner_frames as frames
from kops.gateways.machine.agent import (
    command_text,
    end_session,
    ended_text,
    last_lines,
    printed_text,
    quoted,
    read_note,
    require_runner,
    shell_environment,
    start_under_agent,
    with_settings,
)
from kops.gateways.machine.program_ahead import TakenProcess, claimed, take
from kops.gateways.machine.program_connection import Connection, Listener, Loopback, Pipes
from kops.gateways.machine.program_registries import Registries, RegistryProxies

CAPTURE_AGAIN = "start it with the settings and variables of then, or capture it again"
CLOCK, ZONE, LOCALE, CHARSET, HASH_ORDER, PROCESSORS = "clock", "zone", "locale", "charset", "hash-order", "processors"
SURROUNDINGS: Mapping[str, Sequence[str]] = {
    CLOCK: (),
    ZONE: ("-Duser.timezone=Pacific/Chatham",),
    LOCALE: ("-Duser.language=tr", "-Duser.country=TR"),
    CHARSET: ("-Dfile.encoding=ISO-8859-1",),
    HASH_ORDER: ("-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UnlockExperimentalVMOptions", "-XX:hashCode=0"),
    PROCESSORS: ("-XX:ActiveProcessorCount=7",),
}
"""What surrounds a program and may be otherwise, and the options of a JVM in which it is; the agent shifts the clock.

A zone that is off the others by a part of an hour; a language with letters of its own (i, dotted and not); a charset that has each byte;
identity hashes from another generator than ``-XX:hashCode=5``, the default; a number of processors that machines rarely have, by which
parallel streams are split. What the program's own command sets comes after these, and
stays: a run of the program cannot have it otherwise.
"""
OTHER_SURROUNDINGS = tuple(SURROUNDINGS)
_BEGINS_OFTEN = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
    "-XX:Tier4InvocationThreshold=100000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=200000",
    "-XX:Tier4BackEdgeThreshold=800000",
)
"""Options of a JVM in which the program is disturbed, and so begins afresh many times: its classes were verified where it runs as it is,
and HotSpot's C2 would take half of the time for code that is soon dropped."""
SHIFT_MS = ((400 * 24 + 7) * 60 + 13) * 60_000
"""By how much the clock goes before: years, months, days of the week, hours and minutes are others."""
_NAMED = 5
_ENVIRONMENT = "environment.json"
_LACKING = ("java.lang.NoClassDefFoundError", "java.lang.ClassNotFoundException")
_LIBRARY = "org.apache.kafka."
_UNLIKE = (
    "kops.runner.UnlikeLibrary",
    "java.lang.NoSuchMethodError",
    "java.lang.NoSuchFieldError",
    "java.lang.AbstractMethodError",
    "java.lang.IllegalAccessError",
    "java.lang.IncompatibleClassChangeError",
)
"""What is thrown where a library is not as the runner knows it."""
_ROCKSDB_LIBRARY = "ROCKSDB_SHAREDLIB_DIR"
"""Where RocksDB unpacks its library, 15 MB; a JVM that is killed leaves it there, in /tmp unless this says otherwise."""
_OUT_OF_MEMORY = "java.lang.OutOfMemoryError"
_OF_NETWORK = ("java.net.", "java.nio.channels.", "javax.net.")
_CALLER = "kops.agent.Session."
_RUNNER = "kops.runner."
_CAUSE = "Caused by: "
_OF_JAVA = ("java.", "jdk.", "sun.")
_NOT_THE_PROGRAM = (_LIBRARY, *_OF_JAVA, "kops.")


@dataclass(frozen=True)
class ProgramStart:
    """How a program is started.

    :param directory: where the command is run
    :param folder: of this run: private, and gone when nothing needs the program, which ends then
    :param process: id of a process with which it ends too, beside the one that starts it
    :param class_path: name and digest of each entry of the captured class path
    :param class_path_sha256: over all of them
    :param seconds: how long it may take to construct KafkaStreams
    :param properties: the settings of a method that is called in place of a main; None: the command is all
    :param alone: words before the command with which it has no network; none: it has that of this machine
    :param heap: the most that the heap of its JVM can be, in bytes, unless the command or its variables say so; 0: as much as Java thinks
    :param registries: that it asks through kops
    :param surroundings: which of ``SURROUNDINGS`` are other ones; another name stands for another JVM of the same
    :param jars: the agent and the runner, where kops is not installed
    :param variables: that it gets besides those of the machine; may hold secrets: never to be shown
    :param options: of its JVM, which count more than those of its variables
    :param place: folder to which its files were moved, where they keep their paths; empty: they are where they were captured
    """

    command: tuple[str, ...]
    directory: str
    folder: str
    process: int
    class_path: tuple[tuple[str, str | None], ...]
    class_path_sha256: str
    seconds: float
    properties: Mapping[str, str] | None = None
    alone: tuple[str, ...] = ()
    heap: int = 0
    registries: Registries = field(default_factory=Registries)
    surroundings: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    jars: tuple[str, str] | None = None
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    place: str = ""


class CannotBeginAfresh(OperationFailed):
    """A program that does not begin a second time within its JVM."""


class Program:
    """A program that waits for requests.

    :raises KopsError: when it does not get as far, or its class path is another than the captured one
    """

    def __init__(self, start: ProgramStart) -> None:
        self.start = start
        self._connection: Connection | None = None
        self._process: subprocess.Popen[bytes] | TakenProcess
        environment = _kept_environment(start.folder)
        is_ahead = not start.alone and start.surroundings in ((), OTHER_SURROUNDINGS)
        ahead = claimed(start.folder, disturbed=bool(start.surroundings)) if is_ahead else None
        self._folder = ahead or Path(tempfile.mkdtemp(dir=start.folder))
        token = secrets.token_hex(16)
        self._proxies = RegistryProxies(start.registries, alone=bool(start.alone), folder=self._folder)
        with closing(Pipes(self._folder) if start.alone else Loopback()) as listener:
            way = {**listener.settings, "token": token}
            try:
                self._process = take(ahead, way) if ahead else launched(start, environment, self._folder, way, self._proxies)
            except BaseException:
                self._proxies.close()
                raise
            try:
                self._proxies.answer()
                self._connection = self._accepted(listener, token)
                found = read_note(self._folder / "class-path.json") or {}
                _refuse_another_class_path(start.class_path, start.class_path_sha256, found)
            except BaseException:
                self.close()
                raise
        self._stream = self._connection.reader()

    @property
    def settings(self) -> dict[str, str]:
        """Those of the program that kops gives it."""
        return self._proxies.settings

    def ask(self, kind: int, body: bytes = b"", take: Callable[[frames.Batch], object] | None = None) -> dict[str, str]:
        """Send a frame; return the facts of the answer.

        :param take: is given what was written, some megabytes at a time, also before the program throws; None: it is dropped
        :raises OperationFailed: when the program throws, naming what and the record; or when its JVM ends
        :raises CannotBeginAfresh: at a ``RESTART``
        """
        if self._connection is None:
            raise self._ended()
        try:
            self._connection.send(frames.HEAD.pack(len(body), kind))
            self._connection.send(body)
            while True:
                length, answer = frames.HEAD.unpack(self._exactly(frames.HEAD.size))
                content = self._exactly(length)
                if answer == frames.OUTPUT:
                    if take is not None:
                        take(frames.decoded_batch(content))
                elif answer == frames.FAILED:
                    raise self._proxies.explained(program_failure(frames.decoded_map(content), alone=bool(self.start.alone)))
                elif self._proxies.refusal is not None:  # what the program's handlers made of that is not known
                    raise self._proxies.refusal
                else:
                    return frames.decoded_map(content)
        except (EOFError, ConnectionError) as error:
            raise self._ended() from error

    def _exactly(self, length: int) -> bytes:
        content: bytes = self._stream.read(length)
        if len(content) < length:
            raise EOFError
        return content

    def close(self) -> None:
        """End the JVM and all that the command started."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        end_session(self._process)
        self._proxies.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _accepted(self, listener: Listener, token: str) -> Connection:
        """Wait for the runner."""
        deadline = time.monotonic() + self.start.seconds
        while True:
            ended = self._process.poll() is not None
            connection = listener.accepted(token, max(1.0, deadline - time.monotonic()))
            if connection is not None:
                return connection
            failure = read_note(self._folder / "failure.json")
            if failure is not None:
                raise self._proxies.explained(failure_of(failure, self._text))
            if ended:
                raise self._ended()
            if time.monotonic() > deadline:
                raise too_slow(self._text, self.start.seconds, self._printed)

    @property
    def _text(self) -> str:
        return command_text(self.start.command)

    @property
    def _printed(self) -> str:
        return printed_text(last_lines(self._folder / "output"))

    def _ended(self) -> KopsError:
        return self._proxies.explained(self._end())

    def _end(self) -> KopsError:
        printed = self._printed
        failure = read_note(self._folder / "failure.json")
        self.close()
        if failure is not None:
            return failure_of(failure, self._text)
        if _OUT_OF_MEMORY in printed:
            return _out_of_memory(self._text, printed)
        lacking = [line for line in printed.splitlines() if any(name.rpartition(".")[2] in line for name in _LACKING)]
        if lacking:
            return _lacking(self._text, lacking[-1].rpartition(":")[2].strip().replace("/", "."))
        return OperationFailed(f"{self._text} {ended_text(self._process.returncode or 0)} while kops ran its tasks{printed}")


def keep_environment(folder: str, environment: Mapping[str, str]) -> None:
    """Keep the environment of a run's programs in its private folder: Spark and Python give their workers another one."""
    file = Path(folder) / _ENVIRONMENT
    file.touch(mode=0o600)
    file.write_text(json.dumps(dict(environment)), encoding="utf-8")


def _kept_environment(folder: str) -> dict[str, str]:
    file = Path(folder) / _ENVIRONMENT
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else shell_environment()


def launched(
    start: ProgramStart, environment: Mapping[str, str], folder: Path, more: Mapping[str, str], proxies: RegistryProxies | None = None
) -> subprocess.Popen[bytes]:
    """Start a program.

    :param folder: its own
    :param more: settings of the agent
    :param proxies: by which it asks registries, where it has no network
    :raises UsageProblem: when its command cannot be started
    """
    settings = {
        "mode": "run",
        "runner.jar": start.jars[1] if start.jars else str(require_runner()),
        "runner.class": "kops.runner.Runner",
        "processes": f"{start.process},{os.getpid()}",
        "seconds": str(round(start.seconds)),
        **({"clock.shift": str(SHIFT_MS)} if CLOCK in start.surroundings else {}),
        **({"place": start.place} if start.place else {}),
        **more,
    }
    environment = {**environment, **start.variables}
    words = [*start.alone, *(proxies.words if proxies else ()), *with_settings(start.command, start.properties, folder)]
    options = [f"-Xmx{start.heap >> 20}m"] if start.heap else []
    options += map(quoted, proxies.java_options if proxies else ())
    own = environment.get("JAVA_TOOL_OPTIONS", "")
    options += _BEGINS_OFTEN if start.surroundings else ()
    options += [own, *map(quoted, start.options), *_other(start.surroundings, own)]  # of which the last one counts
    environment = {**environment, "JAVA_TOOL_OPTIONS": " ".join(filter(None, options))}
    environment = {_ROCKSDB_LIBRARY: str(folder), **environment}
    fds = proxies.fds if proxies else ()
    jar = Path(start.jars[0]) if start.jars else None
    return start_under_agent(words, folder, settings, environment=environment, directory=start.directory, fds=fds, jar=jar)


def _other(surroundings: Sequence[str], own: str) -> Iterator[str]:
    """Yield the options of other surroundings, but for what the user's own options of the JVM set."""
    for option in (option for name in surroundings for option in SURROUNDINGS.get(name, ())):
        name, equals, _ = option.partition("=")
        if not equals or f"{name}=" not in own:
            yield option


def too_slow(what: str, seconds: float, printed: str) -> TimedOut:
    """Return the error for a program that was ended before it constructed KafkaStreams.

    :param what: the command, in words
    :param printed: what it printed last, in words
    """
    return TimedOut(f"{what} was ended after {seconds:.0f} s: it has not constructed KafkaStreams{printed}")


def _lacking(what: str, name: str) -> OperationFailed:
    return OperationFailed(f"{what}: the class path lacks {name}", hint="add the jar that has it, and capture the program again")


def _out_of_memory(what: str, why: str, heap: str = "") -> OperationFailed:
    """Return the error for a JVM whose memory was not enough.

    :param heap: the most that its heap could be, in bytes
    """
    size = f" of {size_text(int(heap))}" if heap else ""
    return OperationFailed(
        f"{what}: the memory of its JVM{size} was not enough, and nothing was written: {why}",
        hint="give it more by -Xmx in JAVA_TOOL_OPTIONS, or in the captured command, whose own -Xmx comes first; --master local[1] runs one"
        " JVM in place of several",
    )


def failure_of(failure: Mapping[str, Any], what: str) -> OperationFailed:
    """Return the error for what the agent says in ``failure.json``.

    :param what: the command, in words
    """
    error, missing = failure.get("error"), failure.get("missing_class")
    if missing and _lacks_what_runner_calls(missing, failure.get("trace") or ""):
        return _unlike(f"{error}", failure.get("trace") or "")
    if missing:
        return _lacking(what, missing)
    if error and error.startswith(_OUT_OF_MEMORY):
        return _out_of_memory(what, error)
    return OperationFailed(f"{what}: {failure.get('problem')}{f': {error}' if error else ''}", trace=failure.get("trace") or "")


def _refuse_another_class_path(class_path: Sequence[tuple[str, str | None]], sha256: str, found: Mapping[str, Any]) -> None:
    """Refuse a program of another build than the captured one.

    :param class_path: name and digest of each entry of the captured one; ``sha256`` is over all of them
    :raises Refused: naming the jars and folders that differ
    """
    if found.get("sha256") == sha256:
        return
    entries = [(Path(entry["path"]).name, entry["sha256"]) for entry in found.get("entries", ())]
    known, now = dict(class_path), dict(entries)
    differing = [
        *(f"{name} differs" for name in now if name in known and known[name] != now[name]),
        *(f"{name} is new" for name in now if name not in known),
        *(f"{name} is gone" for name in known if name not in now),
    ]
    more = f" and {len(differing) - _NAMED} more" if len(differing) > _NAMED else ""
    which = ", ".join(differing[:_NAMED]) + more if differing else "its entries are in another order"
    raise Refused(
        f"the class path is not that of the capture: {which}",
        hint="the state was written by the build that ran: start that one, or capture this build if it is the one",
    )


def refuse_another_application(found: str, captured: str) -> None:
    """Refuse a program that has another application id than the captured one, although its class path is the same: by its variables, say.

    :raises Refused: naming both
    """
    if found != captured:
        raise Refused(f"the program is now {found}, and {captured} was captured", hint=CAPTURE_AGAIN)


def refuse_another_topology(found: Mapping[str, str], captured: Mapping[str, str], application: str) -> None:
    """Refuse a program that has another topology than the captured one, although its class path is the same.

    :param found: what it says, by ``subtopology.NUMBER.WHAT``
    :raises Refused: naming what differs
    """
    for name, topics in captured.items():
        if found.get(name) != topics:
            _, number, what = name.split(".")
            text = f"the {what} of its sub-topology {number} are {found.get(name) or 'none'}, and were {topics or 'none'}"
            raise Refused(f"the program {application} has another topology than when it was captured: {text}", hint=CAPTURE_AGAIN)


def program_failure(failure: Mapping[str, str], *, alone: bool = False) -> OperationFailed:
    """Return the error for a frame ``FAILED``: what the program threw, where, and at which record.

    :param alone: it has no network
    """
    name, message = failure["class"], failure["message"]
    at = f" at {failure['topic']}:{failure['partition']} offset {failure['offset']}" if "topic" in failure else ""
    what, trace = f"{name}: {message}" if message != "null" else name, failure.get("trace", "")
    if name in _LACKING:
        missing = message.replace("/", ".")
        return _unlike(what, trace) if _lacks_what_runner_calls(missing, trace) else _lacking(f"the program{at}", missing)
    if name == _OUT_OF_MEMORY:
        return _out_of_memory(f"the program{at}", what, failure.get("heap", ""))
    if name in _UNLIKE and _is_of_runner(message, trace):
        return _unlike(what, trace)
    if failure.get("phase") == "restart":
        return CannotBeginAfresh(f"the program could not be begun afresh in its JVM: {what}", trace=trace)
    if failure.get("by") != "program":
        return OperationFailed(f"the runner of the program failed{at}: {what}", trace=trace)
    during = {"start": "when its task was made", "global": "while a global store was read", "close": "while it was closed"}
    phase = during.get(failure.get("phase", ""), f"while it was to {failure.get('phase')}")
    where = _place(trace)
    of_record = at and failure.get("phase") in ("read", "process")  # a commit or a punctuator has it in hand, and may not be about it
    hint = "as in production, the application would not get past this record" if of_record else None
    if alone and name.startswith(_OF_NETWORK):
        hint = (
            "it runs without a network (--no-network), and called out: the call reached no other machine; a schema registry is reached,"
            " through kops, where the program's settings (schema.registry.url) or the context (registry_url) name it"
        )
    return OperationFailed(f"the program threw {what}{where} {phase}{at}", hint=hint, trace=trace)


def _unlike(what: str, trace: str) -> OperationFailed:
    """Return the error for a library that is not as the runner knows it."""
    return OperationFailed(
        f"the tasks of this Kafka Streams cannot be run one by one: {what}",
        hint="is it a fork, or newer than kops? a state file needs none of its code (`kops state init`); or run a copy of the application"
        " by hand and compare: `kops state diff FILE --against APPLICATION`",
        trace=trace,
    )


def _lacks_what_runner_calls(missing: str, trace: str) -> bool:
    """Whether a class is missing that the library of other versions has: no jar that somebody could add has it."""
    return missing.startswith(_LIBRARY) and _is_of_runner("", trace)


def _is_of_runner(what: str, trace: str) -> bool:
    """Whether the runner called what the library lacks, or lacks what the library calls."""
    causes = ([frame for frame in _frames(cause) if not frame.startswith(_OF_JAVA)] for cause in reversed(trace.split(_CAUSE)))
    return _RUNNER in what or next((frames[0] for frames in causes if frames), "").startswith(_RUNNER)


def _place(trace: str) -> str:
    """Return the first place of the program's own code in the last cause of a stack trace."""
    for cause in reversed(trace.split(_CAUSE)):
        for frame in _frames(cause):
            if frame.startswith(_CALLER):  # what constructed KafkaStreams comes below, and did not throw
                break
            if not frame.startswith(_NOT_THE_PROGRAM):
                return f" in {frame}"
    return ""


def _frames(trace: str) -> Iterator[str]:
    """Yield the places of a stack trace, without the names of modules and class loaders."""
    for line in trace.splitlines():
        text = line.strip().removeprefix("at ")
        if text != line.strip():
            yield text.rpartition("/")[2]

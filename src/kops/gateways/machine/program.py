"""An application's own program in a JVM of its own, whose tasks kops runs: started under the agent, spoken to in frames.

The agent hands the program's topology and settings to the runner (``java/runner``), in the same JVM and with the same class loaders.
The frames (``kops.formats.runner_frames``) go over a connection on this machine's loopback address: what the program prints, or the
scripts that start it, goes elsewhere.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kops.core.errors import KopsError, OperationFailed, Refused, TimedOut, UsageProblem
from kops.formats import runner_frames as frames
from kops.gateways.machine.agent import (
    capture_rules,
    command_text,
    end_session,
    last_lines,
    properties_text,
    read_note,
    require_agent,
    require_runner,
    with_agent,
)

_HOST = "127.0.0.1"
_LOOK_SECONDS = 0.05
_NAMED = 5
_LACKING = ("java.lang.NoClassDefFoundError", "java.lang.ClassNotFoundException")
_NOT_THE_PROGRAM = ("org.apache.kafka.", "java.", "jdk.", "kops.")


@dataclass(frozen=True)
class ProgramStart:
    """How a program is started.

    :param directory: where the command is run
    :param folder: of this run: private, and gone when nothing needs the program, which ends then
    :param process: id of a process with which it ends too, beside the one that starts it
    :param class_path: name and digest of each entry of the captured class path
    :param class_path_sha256: over all of them
    :param seconds: how long it may take to construct KafkaStreams
    """

    command: tuple[str, ...]
    directory: str
    folder: str
    process: int
    class_path: tuple[tuple[str, str | None], ...]
    class_path_sha256: str
    seconds: float


class Program:
    """A program that waits for requests.

    :raises KopsError: when it does not get as far, or its class path is another than the captured one
    """

    def __init__(self, start: ProgramStart, environment: Mapping[str, str] = os.environ) -> None:
        self.start = start
        self._connection: socket.socket | None = None
        self._folder = Path(tempfile.mkdtemp(dir=start.folder))
        with socket.create_server((_HOST, 0)) as server:
            token = secrets.token_hex(16)
            self._process = self._started(environment, server.getsockname()[1], token)
            try:
                self._connection = self._accepted(server, token)
                _refuse_another_class_path(start, read_note(self._folder / "class-path.json") or {})
            except BaseException:
                self.close()
                raise
        self._stream = self._connection.makefile("rb", 1 << 20)

    @property
    def process_id(self) -> int:
        """The id of the command's process, which may have started the JVM as another one."""
        return self._process.pid

    def ask(self, kind: int, body: bytes = b"") -> tuple[list[frames.Batch], dict[str, str]]:
        """Send a frame; return what was written, and the facts of the answer.

        :raises OperationFailed: when the program throws, naming what and the record; or when its JVM ends
        """
        if self._connection is None:
            raise self._ended()
        batches: list[frames.Batch] = []
        try:
            self._connection.sendall(frames.HEAD.pack(len(body), kind))
            self._connection.sendall(body)
            while True:
                length, answer = frames.HEAD.unpack(self._exactly(frames.HEAD.size))
                content = self._exactly(length)
                if answer == frames.OUTPUT:
                    batches.append(frames.decoded_batch(content))
                elif answer == frames.FAILED:
                    raise thrown(frames.decoded_map(content))
                else:
                    return batches, frames.decoded_map(content)
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
        shutil.rmtree(self._folder, ignore_errors=True)

    def _started(self, environment: Mapping[str, str], port: int, token: str) -> subprocess.Popen[bytes]:
        jar = require_agent()
        settings = {
            **capture_rules(),
            "mode": "run",
            "runner.jar": str(require_runner()),
            "runner.class": "kops.runner.Runner",
            "port": str(port),
            "token": token,
            "processes": f"{self.start.process},{os.getpid()}",
        }
        (self._folder / "agent.properties").write_text(properties_text(settings), encoding="utf-8")
        with (self._folder / "output").open("wb") as output:
            try:
                return subprocess.Popen(
                    self.start.command,
                    cwd=self.start.directory,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=with_agent(environment, jar, self._folder),
                    start_new_session=True,
                )
            except OSError as error:
                raise UsageProblem(f"cannot start {self.start.command[0]} in {self.start.directory}: {error.strerror}") from error

    def _accepted(self, server: socket.socket, token: str) -> socket.socket:
        """Wait for the runner; another process that connects is sent away."""
        server.settimeout(_LOOK_SECONDS)
        deadline = time.monotonic() + self.start.seconds
        while True:
            ended = self._process.poll() is not None
            try:
                connection, _ = server.accept()
            except TimeoutError:
                failure = read_note(self._folder / "failure.json")
                if failure is not None:
                    raise self._failed(failure) from None
                if ended:
                    raise self._ended() from None
                if time.monotonic() > deadline:
                    text = f"{self._text} was ended after {self.start.seconds:.0f} s: it has not constructed KafkaStreams{self._printed}"
                    raise TimedOut(text) from None
                continue
            connection.settimeout(max(1.0, deadline - time.monotonic()))
            if _received(connection, len(token)) == token.encode():
                connection.settimeout(None)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
            connection.close()

    @property
    def _text(self) -> str:
        return command_text(self.start.command)

    @property
    def _printed(self) -> str:
        lines = last_lines(self._folder / "output")
        return f"; it printed last:\n{lines}" if lines else "; it printed nothing"

    def _failed(self, failure: Mapping[str, Any]) -> KopsError:
        if failure.get("missing_class"):
            return _lacking(self._text, failure["missing_class"])
        error = failure.get("error")
        return OperationFailed(f"{self._text}: {failure.get('problem')}{f': {error}' if error else ''}", trace=failure.get("trace") or "")

    def _ended(self) -> KopsError:
        """Say how the JVM ended."""
        printed = self._printed
        failure = read_note(self._folder / "failure.json")
        self.close()
        if failure is not None:
            return self._failed(failure)
        code = self._process.returncode
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        lacking = [line for line in printed.splitlines() if any(name.rpartition(".")[2] in line for name in _LACKING)]
        if lacking:
            return _lacking(self._text, lacking[-1].rpartition(":")[2].strip().replace("/", "."))
        return OperationFailed(f"{self._text} {how} while kops ran its tasks{printed}")


def _received(connection: socket.socket, length: int) -> bytes:
    found = b""
    try:
        while len(found) < length:
            more = connection.recv(length - len(found))
            if not more:
                return found
            found += more
    except OSError:
        return b""
    return found


def _lacking(what: str, name: str) -> OperationFailed:
    return OperationFailed(f"{what}: the class path lacks {name}", hint="add the jar that has it, and capture the program again")


def _refuse_another_class_path(start: ProgramStart, found: Mapping[str, Any]) -> None:
    """Refuse a program of another build than the captured one.

    :raises Refused: naming the jars and folders that differ
    """
    if found.get("sha256") == start.class_path_sha256:
        return
    entries = [(Path(entry["path"]).name, entry["sha256"]) for entry in found.get("entries", ())]
    known, now = dict(start.class_path), dict(entries)
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


def thrown(failure: Mapping[str, str]) -> OperationFailed:
    """Return the error for a frame ``FAILED``: what the program threw, where, and at which record."""
    name, message = failure["class"], failure["message"]
    at = f" at {failure['topic']}:{failure['partition']} offset {failure['offset']}" if "topic" in failure else ""
    if name in _LACKING:
        return _lacking(f"the program{at}", message.replace("/", "."))
    what = f"{name}: {message}" if message != "null" else name
    if failure.get("by") != "program":
        return OperationFailed(f"the runner of the program failed{at}: {what}", trace=failure.get("trace", ""))
    during = {"start": "when its task was made", "global": "while a global store was read", "close": "while it was closed"}
    phase = during.get(failure.get("phase", ""), f"while it was to {failure.get('phase')}")
    where = _place(failure.get("trace", ""))
    hint = "as in production, the application would not get past this record" if at else None
    return OperationFailed(f"the program threw {what}{where} {phase}{at}", hint=hint, trace=failure.get("trace", ""))


def _place(trace: str) -> str:
    """Return the first place of the program's own code in the last cause of a stack trace."""
    causes: Sequence[str] = trace.split("Caused by: ")
    for cause in reversed(causes):
        for line in cause.splitlines():
            text = line.strip().removeprefix("at ")
            text = text.rpartition("/")[2] if text != line.strip() else ""
            if text and not text.startswith(_NOT_THE_PROGRAM):
                return f" in {text}"
    return ""

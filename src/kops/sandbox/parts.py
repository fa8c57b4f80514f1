"""The parts of a sandbox as processes: brokers, Connect workers and the registry are started, recognized and stopped alike."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kops.config.durable import write_whole
from kops.core.errors import OperationFailed, Refused, TimedOut
from kops.gateways.machine.jars import class_path
from kops.gateways.machine.processes import ProcessIdentity, kill, start_detached, stop
from kops.sandbox import ports

RUNNING, STARTING, STOPPED, CRASHED = "running", "starting", "stopped", "crashed"
_START_SECONDS = 120.0
_POLL_SECONDS = 0.1
_LOG_TAIL = 5
_TROUBLE = ("ERROR", "FATAL", "Error")


@dataclass(frozen=True)
class SandboxProcess:
    """One process of a sandbox.

    :param kind: broker, worker or registry
    :param name: for people: ``broker 1``
    :param folder: its files; ``process.json`` while it runs, ``console.log`` with its output
    :param port: where it listens
    :param log: its log file
    :param controller_port: a broker's second port; 0 for none
    """

    kind: str
    id: int
    name: str
    folder: Path
    port: int
    log: Path
    controller_port: int = 0


@dataclass(frozen=True)
class PartStatus:
    """The current status of a part.

    :param state: running, starting (a process that does not listen yet), stopped, or crashed (ended unexpectedly)
    :param pid: None if it is not running
    """

    part: SandboxProcess
    state: str
    pid: int | None


def status(part: SandboxProcess) -> PartStatus:
    """Return the status of a part. A pid that was reused by another process does not count."""
    process = recorded(part)
    if process is None:
        return PartStatus(part, STOPPED, None)
    if not process.running:
        return PartStatus(part, CRASHED, None)
    return PartStatus(part, RUNNING if ports.answers(part.port) else STARTING, process.pid)


def recorded(part: SandboxProcess) -> ProcessIdentity | None:
    """Return the process that was last started for a part and not stopped since; it may have ended."""
    try:
        return ProcessIdentity(**json.loads(_record(part).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def runs(part: SandboxProcess) -> bool:
    process = recorded(part)
    return process is not None and process.running


def java_options(part: SandboxProcess, heap_megabytes: int, jars: Sequence[Path]) -> list[str]:
    """Return the options of a part's Java: a small heap, a log file, the class path.

    Performance options come from ``$KAFKA_JVM_PERFORMANCE_OPTS``, as in Kafka's own start scripts.
    """
    return [
        f"-Xmx{heap_megabytes}m",
        "-Xms64m",
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
        *shlex.split(os.environ.get("KAFKA_JVM_PERFORMANCE_OPTS", "")),
        f"-Dlog4j2.configurationFile={part.folder / 'log4j2.xml'}",
        f"-Dkops.log={part.log}",
        "-cp",
        class_path(jars),
    ]


def start(part: SandboxProcess, command: Sequence[str]) -> None:
    """Start the process of a part in the background, without the environment variables of kops and Kafka."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("KOPS_", "KAFKA_")) and name != "CLASSPATH"}
    environment["LC_ALL"] = "C.UTF-8"  # Java's encoding of file names
    started = start_detached(command, log=part.folder / "console.log", directory=part.folder, environment=environment)
    write_whole(_record(part), json.dumps({"pid": started.pid, "started": started.started}) + "\n")


def end(part: SandboxProcess) -> None:
    """Stop a part: SIGTERM, then SIGKILL after half a minute."""
    process = recorded(part)
    if process is not None:
        stop(process)
    _record(part).unlink(missing_ok=True)


def kill_at_once(part: SandboxProcess) -> None:
    """Kill a part, as a crash would; its record stays, so its state is ``crashed``."""
    process = recorded(part)
    if process is not None:
        kill(process)


def refuse_taken_ports(owner: str, parts: Iterable[SandboxProcess]) -> None:
    """Refuse to start parts whose ports are in use.

    :param owner: what they are part of: ``sandbox demo``
    :raises Refused: naming the port and the part
    """
    for part in parts:
        for port in filter(None, (part.port, part.controller_port)):
            if not ports.is_free(port):
                raise Refused(
                    f"port {port} of {part.name} of {owner} is in use by another process",
                    hint=f"stop it (ss -ltnp 'sport = :{port}' shows it), or use other ports with --new-ports",
                    port=port,
                )


def raise_if_ended(owner: str, part: SandboxProcess) -> None:
    """Report why a part ended while it was starting.

    :raises OperationFailed: if its process has ended
    """
    process = recorded(part)
    if process is not None and process.running:
        return
    tail = [line for file in (part.log, part.folder / "console.log") for line in _tail(file)]
    said = next((line for line in tail if any(sign in line for sign in _TROUBLE)), tail[-1] if tail else "nothing")
    code = None if process is None else process.ended_with
    how = "" if code is None else f" with exit code {code}" if code >= 0 else f" by signal {-code}"
    raise OperationFailed(f"{part.name} of {owner} ended{how} while starting: {said}", hint=f"its log is {part.log}")


def wait_until(owner: str, parts: Sequence[SandboxProcess], ready: Callable[[SandboxProcess], bool]) -> None:
    """Wait until every part is ready.

    :raises OperationFailed: if one of them ended
    :raises TimedOut: if one is not ready in time
    """
    deadline = time.monotonic() + _START_SECONDS
    for part in parts:
        while not ready(part):
            for each in parts:
                raise_if_ended(owner, each)
            if time.monotonic() > deadline:
                raise TimedOut(f"{part.name} of {owner} did not answer within {_START_SECONDS:g} s", hint=f"its log is {part.log}")
            time.sleep(_POLL_SECONDS)


def _tail(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_TAIL:]
    except OSError:
        return []


def _record(part: SandboxProcess) -> Path:
    return part.folder / "process.json"

"""kops as its users run it: in this process (fast), or in one of its own (signals, pipes, terminals)."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from kops.core.errors import ExitCode
from support.isolation import JVMS, XDG
from support.patience import HANG_SECONDS

AS_USERS_DO = {"SPARK_SUBMIT_OPTS": JVMS["SPARK_SUBMIT_OPTS"]}
"""Variables with which kops as a process compiles whole stages, for seconds; others run as kops in the tests' own process does."""


@dataclass(frozen=True)
class Outcome:
    """What a run of kops came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.out, f"nothing on stdout; exit code {self.code}\n{self.err}"
        return json.loads(self.out)

    def ok(self) -> "Outcome":
        """Return itself when the exit code is 0, else fail and show the output, its reason first: a summary shows one line."""
        assert self.code == 0, f"exit code {self.code}: {self._reason()}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"
        return self

    def _reason(self) -> str:
        try:
            return "; ".join(error["message"] for error in json.loads(self.out)["errors"])
        except (ValueError, LookupError, TypeError):
            return self.err.strip()[-500:]


def _run(*arguments: object, input: str | bytes = "") -> Outcome:  # noqa: A002 - as subprocess.run names it
    from kops.cli.frame.main import main

    given = input.encode() if isinstance(input, str) else input
    streams = [io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", write_through=True) for content in (given, b"", b"")]
    saved = sys.stdin, sys.stdout, sys.stderr
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdin, sys.stdout, sys.stderr = saved
        for number, handler in handlers.items():
            signal.signal(number, handler)
    out, err = (stream.buffer.getvalue().decode() for stream in streams[1:])
    return Outcome(int(code or 0), out, err)


def hear_interrupts() -> None:
    """Let a child hear Ctrl-C and SIGHUP although these tests may run in the background, or under nohup, where they are ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def run_kops():
    """Run kops in this process: ``run_kops("topics", "list", "-B", servers, "-o", "json").ok().json``; no terminal."""
    return _run


@pytest.fixture(scope="module")
def run_kops_alone(tmp_path_factory):
    """``run_kops`` with a home of its own, for what a whole module shares."""
    home = tmp_path_factory.mktemp("home")

    def run(*arguments: object) -> Outcome:
        with pytest.MonkeyPatch.context() as patch:
            for variable, name in XDG.items():
                patch.setenv(variable, str(home / name))
            return _run(*arguments)

    return run


def in_time(attempt: Callable[[float], Outcome], seconds: float = 1.0) -> Outcome:
    """Return the outcome of ``attempt(seconds)``, for a command that must wait as long as it may and then says what for.

    The limit is doubled while this machine is too slow even for what comes before that wait.
    """
    while (outcome := attempt(seconds)).code == ExitCode.TIMED_OUT and seconds < HANG_SECONDS:
        seconds *= 2
    return outcome


@pytest.fixture
def kops_process():
    """Start kops as a process: ``kops_process("state", "rebuild", ...)`` gives a Popen with text pipes; ended with the test."""
    started: list[subprocess.Popen] = []

    def start(*arguments: object, **options: Any) -> subprocess.Popen:
        command = [sys.executable, "-m", "kops", *(str(argument) for argument in arguments)]
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        pipes["preexec_fn"] = hear_interrupts
        pipes["env"] = {**os.environ, "PYTHONFAULTHANDLER": "1"}
        process = subprocess.Popen(command, **{**pipes, **options})
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()

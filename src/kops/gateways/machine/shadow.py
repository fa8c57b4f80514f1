"""A program that runs as a shadow: the real one, in a JVM under the agent, which gives it other clients and another application id.

The agent and kops speak by files in a private folder: ``hello`` and ``class-path.json`` from it, then ``go``; then ``progress`` from it,
again and again, until ``close``; then ``closed``. The JVM ends with kops, or when the folder is gone.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kops.core.errors import KopsError, OperationFailed, TimedOut
from kops.core.streams.shadow import Progress, progress_of
from kops.gateways.machine.agent import (
    command_text,
    end_session,
    ended_text,
    last_lines,
    printed_text,
    read_note,
    require_runner,
    start_under_agent,
)
from kops.gateways.machine.program import (
    failure_of,
    refuse_another_application,
    refuse_another_class_path,
    refuse_another_topology,
    too_slow,
)

LOOK_SECONDS = 0.2
_CLOSE_SECONDS = 660.0
"""The agent itself gives up after 600."""


@dataclass(frozen=True)
class ShadowStart:
    """How a shadow is started.

    :param directory: where the command is run
    :param folder: of this shadow: private; its local state is below it
    :param application: of the program
    :param shadow: the application id that it gets
    :param cuts: by TOPIC:PARTITION, the first offset of the input that it does not get; of other topics it gets nothing
    :param topology: what it says of it when it is as it was captured
    :param class_path: name and digest of each entry of the captured class path
    :param class_path_sha256: over all of them
    :param seconds: how long it may take to construct KafkaStreams
    """

    command: tuple[str, ...]
    directory: str
    folder: str
    application: str
    shadow: str
    cuts: Mapping[str, int]
    topology: Mapping[str, str]
    class_path: tuple[tuple[str, str | None], ...]
    class_path_sha256: str
    seconds: float


class ShadowProgram:
    """A shadow that runs; a context manager, at whose end neither the program nor what it started is left.

    :raises KopsError: when it does not get as far, or is another program than the captured one
    """

    def __init__(self, start: ShadowStart) -> None:
        self.start = start
        self._folder = Path(start.folder)
        self._process = self._started()

    def __enter__(self) -> ShadowProgram:
        try:
            self._let_go()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        end_session(self._process)

    def look(self) -> Progress | None:
        """Return how far it is; None: it has not begun.

        :raises OperationFailed: when it failed or ended
        """
        ended = self._process.poll() is not None
        self._refuse_failed()
        if ended:
            raise self._ended()
        seen = self._read_note("progress")
        return progress_of(seen) if seen else None

    def close(self) -> Progress:
        """Let it close, so that what its caches hold is written; return what it says then.

        :raises OperationFailed: when it fails meanwhile
        """
        (self._folder / "close").touch()
        late = f"did not close within {_CLOSE_SECONDS:.0f} s"
        return progress_of(self._awaited("closed", _CLOSE_SECONDS, lambda: TimedOut(f"{self._text} {late}{self._printed}")))

    def _started(self) -> subprocess.Popen[bytes]:
        start = self.start
        settings = {
            "mode": "shadow",
            "runner.jar": str(require_runner()),
            "runner.class": "kops.runner.Shadow",
            "processes": str(os.getpid()),
            "shadow.id": start.shadow,
            "shadow.state.dir": str(self._folder / "state"),
            **{f"cut.{place}": str(offset) for place, offset in start.cuts.items()},
        }
        return start_under_agent(start.command, self._folder, settings, directory=start.directory)

    def _let_go(self) -> None:
        """Wait until the program is about to begin, and let it if it is the one that was captured."""
        seconds = self.start.seconds
        hello = self._awaited("hello", seconds, lambda: too_slow(self._text, seconds, self._printed))
        refuse_another_class_path(self.start.class_path, self.start.class_path_sha256, read_note(self._folder / "class-path.json") or {})
        refuse_another_application(hello["application"], self.start.application)
        refuse_another_topology(self._as_of_application(hello), self.start.topology, self.start.application)
        (self._folder / "go").touch()

    def _awaited(self, name: str, seconds: float, late: Callable[[], TimedOut]) -> dict[str, str]:
        """Wait until the program has written a note.

        :param late: makes the error for a program that takes longer
        """
        deadline = time.monotonic() + seconds
        while True:
            ended = self._process.poll() is not None
            note = self._read_note(name)
            if note:
                return note
            self._refuse_failed()
            if ended:
                raise self._ended()
            if time.monotonic() > deadline:
                raise late()
            time.sleep(LOOK_SECONDS)

    def _as_of_application(self, hello: Mapping[str, str]) -> dict[str, str]:
        """Give the topics of a topology the names that they have in the application."""
        shadow, application = f"{self.start.shadow}-", f"{self.start.application}-"
        return {name: ",".join(sorted(topics.replace(shadow, application).split(","))) for name, topics in hello.items()}

    def _read_note(self, name: str) -> dict[str, str] | None:
        import javaproperties

        try:
            with (self._folder / name).open(encoding="utf-8") as file:
                return dict(javaproperties.load(file))
        except FileNotFoundError:
            return None

    @property
    def _text(self) -> str:
        return command_text(self.start.command)

    @property
    def _printed(self) -> str:
        return printed_text(last_lines(self._folder / "output"))

    def _refuse_failed(self) -> None:
        failure = read_note(self._folder / "failure.json")
        if failure is not None:
            found = failure_of(failure, self._text)
            raise OperationFailed(f"{found.message}{self._printed}", hint=found.hint, trace=found.details.get("trace", ""))

    def _ended(self) -> KopsError:
        self.end()
        return OperationFailed(f"{self._text} {ended_text(self._process.returncode)} while it ran as a shadow{self._printed}")

"""Programs that are started before anything needs them, while Spark starts: each is taken over by one of Spark's Python workers.

The driver and the workers share the folder of a run. A program that was started ahead waits, with its topology constructed, in a folder of
its own for a file that says who takes it; the driver, whose child it is, leaves a note there when it has ended.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread

from kops.core.errors import KopsError
from kops.gateways.machine.agent import end_session, properties_text

TAKEN = "taken.properties"
"""What the agent waits for: ``port``, ``token`` and ``process``, the taker's id."""
_AHEAD, _DISTURBED = "ahead-", "disturbed-"
_CLAIM, _PID, _ENDED = "claimed", "pid", "ended"
_LOOK_SECONDS = 0.02
_NOTED_SECONDS = 5.0

Launch = Callable[[Path, Mapping[str, str]], "subprocess.Popen[bytes]"]
"""Starts a program with its folder and further settings of the agent."""


class ProgramPool:
    """Programs that wait to be taken.

    :param folder: of the run
    :param disturbed: in other surroundings
    """

    def __init__(self, folder: str, count: int, launch: Launch, *, disturbed: bool = False) -> None:
        self._started = []
        with contextlib.suppress(KopsError):  # who needs one starts it, and says why it cannot be
            for _ in range(count):
                own = Path(tempfile.mkdtemp(prefix=_DISTURBED if disturbed else _AHEAD, dir=folder))
                process = launch(own, {"taken.file": TAKEN})
                Thread(target=_note_the_end, args=(own, process), daemon=True).start()
                _write(own / _PID, str(process.pid))
                self._started.append(process)

    def close(self) -> None:
        """End those that are still there."""
        for process in self._started:
            if process.poll() is None:
                end_session(process)


def _note_the_end(folder: Path, process: subprocess.Popen[bytes]) -> None:
    code = process.wait()
    with contextlib.suppress(OSError):  # once the folder of the run is gone, the note is not needed
        _write(folder / _ENDED, str(code))


def _write(file: Path, text: str) -> None:
    part = file.with_name(f".{file.name}")
    part.write_text(text, encoding="utf-8")
    part.replace(file)


class TakenProcess:
    """The process of a program that another process has started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.pid = int((folder / _PID).read_text(encoding="utf-8"))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            with contextlib.suppress(FileNotFoundError):
                self.returncode = int((self._folder / _ENDED).read_text(encoding="utf-8"))
        return self.returncode

    def wait(self) -> int | None:
        """Wait for the end, which its parent reports; not for long where that one is gone."""
        deadline = time.monotonic() + _NOTED_SECONDS
        while self.poll() is None and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        return self.returncode


def claimed(folder: str, *, disturbed: bool = False) -> Path | None:
    """Return the folder of a program that was started ahead, and claim it; None: there is none left."""
    for file in sorted(Path(folder).glob(f"{_DISTURBED if disturbed else _AHEAD}*/{_PID}")):
        try:
            os.close(os.open(file.with_name(_CLAIM), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except OSError:
            continue
        return file.parent
    return None


def take(folder: Path, way: Mapping[str, str]) -> TakenProcess:
    """Take a claimed program.

    :param way: settings of the agent by which it connects
    """
    _write(folder / TAKEN, properties_text({**way, "process": str(os.getpid())}))
    return TakenProcess(folder)

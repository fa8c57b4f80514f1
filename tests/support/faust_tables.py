"""Faust in an environment of its own: what it needs does not fit beside what kops is tested with (an older click)."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import pytest

from kops.config.paths import directories
from support.examples import EXAMPLES
from support.patience import HANG_SECONDS
from support.streams_apps import wait_for

FOLDER = EXAMPLES / "inventory" / "faust"


def environment() -> Path:
    """Return the folder of an environment with Faust, made once for this Python; the test is left out where it cannot be."""
    needed = (FOLDER / "requirements.txt").read_text(encoding="utf-8")
    name = hashlib.sha256(f"{needed}{sys.version}".encode()).hexdigest()[:16]
    target = directories(os.environ).cache / "tests" / f"faust-{name}"
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=target.parent))
        venv.create(work, with_pip=True)
        pip = [str(work / "bin" / "python"), "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "-r", FOLDER / "requirements.txt"]
        done = subprocess.run(pip, capture_output=True, text=True, check=False, timeout=HANG_SECONDS)
        if done.returncode:
            shutil.rmtree(work)
            pytest.skip(f"no {needed.strip()} from a package index: {(done.stderr.strip().splitlines() or ['pip failed'])[-1]}")
        work.rename(target)
    return target


class Worker:
    """A Faust worker; a context manager that closes it."""

    def __init__(self, servers: str, prefix: str, folder: Path) -> None:
        self.log = folder / "faust.log"
        options = ["--datadir", str(folder / "data"), "worker", "--without-web", "-l", "info"]
        command = [str(environment() / "bin" / "python"), "-m", "faust", "-A", "inventory_faust", *options]
        settings = {**os.environ, "KAFKA": servers, "PREFIX": prefix, "PYTHONPATH": str(FOLDER.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(command, cwd=FOLDER, env=settings, stdout=output, stderr=output)

    def __enter__(self) -> Worker:
        wait_for(f"the worker to be ready ({self.log})", lambda: "Worker ready" in self.log.read_text(errors="replace"))
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(HANG_SECONDS)

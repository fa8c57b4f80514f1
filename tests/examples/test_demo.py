"""``kops demo``: the whole promise on real parts, and nothing left behind."""

import os
import subprocess
import sys
import time
from pathlib import Path

from support.command_line import AS_USERS_DO
from support.patience import HANG_SECONDS


def test_the_state_is_lost_and_comes_back(tmp_path, kafka_jar_files):
    environment = {**os.environ, **AS_USERS_DO, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "kops", "demo", "--guarantee", "exactly_once_v2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "laptop  6000.0" in done.stdout
    assert "laptop  8000.0" in done.stdout
    assert "each once, none sent twice" in done.stdout
    assert not list(tmp_path.glob("kops-demo-*"))
    deadline = time.monotonic() + HANG_SECONDS
    while left := processes_with(str(tmp_path)):  # the first JVM of a cache writes its class archive when kops has ended, then ends too
        assert time.monotonic() < deadline, left
        time.sleep(0.2)


def processes_with(text: str) -> list[str]:
    """Return the command lines of the running processes that contain a text."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_text().replace("\0", " "))
        except OSError:
            continue
    return [line for line in lines if text in line]

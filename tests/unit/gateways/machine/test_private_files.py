"""Folders of keys and tokens: private, one for each run, and gone with the process."""

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

from kops.gateways.machine.private_files import keep_renewed, run_folder
from support.patience import HANG_SECONDS

CHILD = """
import sys, time
from pathlib import Path
from kops.gateways.machine.private_files import run_folder
folder = run_folder(Path(sys.argv[1]))
(folder / "keystore-1.pem").write_text("secret")
print(folder, flush=True)
sys.stdin.readline()
"""


def child(parent):
    process = subprocess.Popen([sys.executable, "-c", CHILD, str(parent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, Path(process.stdout.readline().strip())


def test_run_folder_is_deleted_with_its_process_or_by_the_next(tmp_path):
    parent = tmp_path / "spark"
    first, one = child(parent)
    second, two = child(parent)
    assert one != two
    assert stat.S_IMODE(one.stat().st_mode) == stat.S_IMODE(parent.stat().st_mode) == 0o700
    first.communicate("\n", timeout=HANG_SECONDS)
    assert not one.exists()
    assert (two / "keystore-1.pem").exists()
    second.send_signal(signal.SIGKILL)
    second.communicate(timeout=HANG_SECONDS)
    assert two.exists()
    third, three = child(parent)
    assert not two.exists()
    assert three.exists()
    third.communicate("\n", timeout=HANG_SECONDS)
    assert list(parent.iterdir()) == []


def test_one_run_folder_per_process(tmp_path):
    assert run_folder(tmp_path / "a") == run_folder(tmp_path / "a")
    assert run_folder(tmp_path / "a") != run_folder(tmp_path / "b")
    assert str(os.getpid()) in run_folder(tmp_path / "a").name


def test_token_is_renewed_before_expiry(tmp_path, monkeypatch):
    slept, renewed, gone = [], [], threading.Event()
    file = tmp_path / "run" / "token.jwt"
    file.parent.mkdir()

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) > 3:
            file.parent.rmdir()
            gone.set()

    def renew():
        renewed.append(1)
        if len(renewed) == 2:
            raise OSError
        return time.time() + 1000

    monkeypatch.setattr("kops.gateways.machine.private_files.time.sleep", sleep)
    keep_renewed(file, time.time() + 100, renew)
    keep_renewed(file, time.time() + 100, renew)
    assert gone.wait(HANG_SECONDS)
    assert 70 < slept[0] <= 80
    assert 700 < slept[1] <= 800
    assert slept[2] > 0
    assert len(renewed) == 3

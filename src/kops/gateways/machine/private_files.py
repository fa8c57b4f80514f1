"""A private directory per process for what Java reads from files: keys and tokens.

A directory belongs to the process that holds its lock; those of killed processes are deleted by the next run.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from kops.core.errors import UsageProblem

_LOCK = "lock"
_YOUNG_SECONDS = 3600.0
"""A younger directory without a lock may be about to get one."""
_SOONEST_SECONDS = 5.0
_made: dict[Path, Path] = {}
_held: list[int] = []
_renewed: set[Path] = set()
_guard = threading.Lock()


def run_folder(parent: Path) -> Path:
    """Return this process's directory below ``parent``, created on first use with mode 0700 and deleted when the process ends."""
    with _guard:
        if parent not in _made or not _made[parent].is_dir():
            parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _sweep(parent)
            _made[parent] = _make(parent)
            atexit.register(shutil.rmtree, _made[parent], ignore_errors=True)
        return _made[parent]


def _make(parent: Path) -> Path:
    while True:
        folder = parent / f"run-{os.getpid()}-{secrets.token_hex(4)}"
        folder.mkdir(mode=0o700)
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if lock_whole(descriptor):
            _held.append(descriptor)  # until the process ends
            return folder
        os.close(descriptor)  # another process mistook it for an abandoned one


def _sweep(parent: Path) -> None:
    """Delete directories whose process has died."""
    for folder in parent.glob("run-*"):
        with contextlib.suppress(OSError):
            lock = folder / _LOCK
            if not lock.exists():
                if time.time() - folder.stat().st_mtime > _YOUNG_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)
                continue
            descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
            try:
                if lock_whole(descriptor):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def lock_whole(descriptor: int) -> bool:
    """Lock a file for this process and those that it forks (flock); return False if others hold a lock on it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def keep_renewed(file: Path, expires: float, renew: Callable[[], float]) -> None:
    """Renew a file in the background before its contents expire, until the process ends; a second call for the same file does nothing.

    :param expires: when the current contents expire, in seconds since the epoch
    :param renew: rewrites the file and returns the new expiry, in seconds since the epoch; an error keeps the file until the next attempt
    """
    with _guard:
        if file in _renewed:
            return
        _renewed.add(file)
    threading.Thread(target=_renew, args=(file, expires, renew), name="kops-token", daemon=True).start()


def _renew(file: Path, expires: float, renew: Callable[[], float]) -> None:
    while True:
        time.sleep(max(_SOONEST_SECONDS, 0.8 * (expires - time.time())))
        if not file.parent.is_dir():
            return
        with contextlib.suppress(Exception):
            expires = renew()


def write_private(path: Path, text: str) -> None:
    """Write a secret to a new file that only its owner can read.

    :raises UsageProblem: when the file exists or cannot be written
    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageProblem(f"cannot write {path}: {error.strerror}", hint="name a file that does not exist yet") from error

"""Writing files durably: they must be on disk before anything that refers to them is written."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def sync(path: Path) -> None:
    """Wait until a file's content, or a directory's entries, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path, *, private: bool) -> None:
    """Wait until a directory with everything in it is on disk.

    :param private: make everything readable by this user only, so that this holds even in a copy without the directory's own mode
    """
    for path in (*folder.rglob("*"), folder):
        if private:
            with suppress(PermissionError):  # owned by another user: Spark's workers wrote it
                path.chmod(0o700 if path.is_dir() else 0o600)
        sync(path)


def write_whole(path: Path, text: str) -> None:
    """Write a file that only this user can read, atomically: after a crash it is complete or as it was before.

    :raises OSError: if it cannot be written
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync(path.parent)

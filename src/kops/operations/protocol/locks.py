"""Locks between the kops processes of one user on one machine, released by the system when a process ends.

Kafka cannot compare and set an offset in one request. Between machines, only the read-back detects a conflict; on one machine these locks
prevent it: the second process is refused immediately.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from kops.core.errors import ConfigError, Refused, StateMoved
from kops.core.progress import Progress
from kops.gateways.machine.worker_locks import wait_for_workers

_PLACES = 2**31


@contextlib.contextmanager
def exclusive(folder: Path, cluster_id: str, names: Iterable[str]) -> Iterator[None]:
    """Hold the locks of some names until the block ends; each lock is one byte of a file that stays empty.

    :raises StateMoved: when another process holds one
    :raises ConfigError: when the folder cannot be written
    """
    # Two names with one checksum share a lock: that may refuse more than it must, and never less.
    wanted = {zlib.crc32(name.encode()) % _PLACES: name for name in names}
    if not wanted:
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(folder / f"{zlib.crc32(cluster_id.encode()):08x}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(
            f"cannot make a lock in {folder}: {error.strerror}; nothing was changed",
            hint="make room there, or set XDG_STATE_HOME to a folder that is yours",
        ) from error
    try:
        for place, name in wanted.items():
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            except BlockingIOError:
                raise StateMoved(
                    f"another kops is moving {name} right now", hint="wait for it, then plan again from what is there", name=name
                ) from None
        yield
    finally:
        os.close(descriptor)


def wait_for_others(folder: Path, progress: Progress) -> None:
    """Wait until the Spark workers of every kops that was killed have ended: what they still write would change what is planned from.

    :raises Refused: when some do not end
    """
    left = wait_for_workers(folder, waiting=lambda pid: progress.step(f"waiting for the Spark workers of process {pid}, which has ended"))
    if left:
        names = ", ".join(f"process {pid}" for pid in left)
        raise Refused(
            f"Spark workers of {names}, a kops that has ended, are still running and may write",
            hint="find them with `pgrep -f kops.spark.python_daemon`, stop them, then run the command again",
        )

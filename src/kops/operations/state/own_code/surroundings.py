"""Where an application's own program has other surroundings here than when it was captured."""

from __future__ import annotations

import socket
from pathlib import Path

from kops.core.streams.capture import Capture
from kops.core.streams.surroundings import FILE, READS, UNKNOWN, UNREADABLE, Difference, before_start, digest_of
from kops.gateways.machine.agent import shell_environment


def differences_here(capture: Capture) -> tuple[Difference, ...]:
    """Return what differs of what a program read while it was built: known before anything is started."""

    def digest_of_file(path: str) -> str | None:
        file = Path(path)
        try:
            return digest_of(capture.application, FILE, path, file.read_bytes()) if file.is_file() else None
        except OSError:
            return UNREADABLE

    then, environment = capture.surroundings, shell_environment()
    unseen = [Difference(READS, UNKNOWN, why) for what, why in capture.unknown if what == "surroundings.read"]
    before = before_start(capture.application, then, capture.command, environment, host=socket.gethostname(), digest_of_file=digest_of_file)
    return (*unseen, *before)

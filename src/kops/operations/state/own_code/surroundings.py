"""Where an application's own program has other surroundings here than when it was captured."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kops.core.streams.capture import Capture
from kops.core.streams.surroundings import FILE, READS, UNKNOWN, UNREADABLE, Difference, before_start, digest_of, while_it_ran
from kops.gateways.machine.agent import shell_environment
from kops.operations.state.exactness import Exactness

if TYPE_CHECKING:
    from kops.operations.state.own_code.start import ProgramRun
    from kops.spark.programs.jobs import Ran


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


def of_surroundings(program: ProgramRun, ran: Mapping[int, Ran]) -> tuple[Exactness, ...]:
    """Doubt all stores where the program had other surroundings than when it was captured."""
    notes = [note for each in ran.values() for note in each.surroundings]
    found = dict.fromkeys([*program.differences, *while_it_ran(program.capture.surroundings, notes)])
    return (Exactness("C", tuple(each.text for each in found)),) if found else ()

"""``--watch``: a look that is repeated until Ctrl-C, or a number of times."""

from __future__ import annotations

import time
from collections.abc import Callable

from kops.cli.frame.session import Session
from kops.core.durations import parse_duration
from kops.core.errors import ExitCode, KopsError, UsageProblem
from kops.core.times import time_text, to_milliseconds

SHORTEST_MS = 100


def watch_interval(session: Session, text: str) -> int:
    """Return an interval in milliseconds.

    :raises UsageProblem: when it is too short, or the output format has no lines
    """
    milliseconds = parse_duration(text, what="interval")
    if milliseconds < SHORTEST_MS:
        raise UsageProblem(f"{text} is too short", hint=f"{SHORTEST_MS}ms is the shortest")
    if session.written_format not in ("table", "json"):
        raise UsageProblem(f"--watch has no {session.written_format}", hint="it writes lines for people, or one JSON object per poll")
    return milliseconds


def watched(
    session: Session, milliseconds: int, count: int | None, look: Callable[[], int], *, passing: tuple[type[KopsError], ...]
) -> int:
    """Look again and again, and return the exit code of the last look.

    :param look: shows what there is, and returns an exit code
    :param passing: errors that a later look may not meet, once one succeeded: they are noted
    """
    looks, code = 0, 0
    try:
        while True:
            started = time.monotonic()
            try:
                code = look()
            except passing as silence:
                if not looks:
                    raise
                code = int(silence.exit_code)
                session.note(f"{clock(session)}  {silence.message}")
            looks += 1
            if looks == count:
                return code
            time.sleep(max(0.0, started + milliseconds / 1000 - time.monotonic()))
    except KeyboardInterrupt:  # it is how a watch ends
        return int(ExitCode.INTERRUPTED)


def clock(session: Session) -> str:
    return time_text(to_milliseconds(session.now()))

"""``kops groups lag --watch``: look again and again."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from kops.cli.frame.session import Session
from kops.cli.groups.lag import Exceeded, Question
from kops.core.durations import parse_duration
from kops.core.errors import ExitCode, KopsError, TimedOut, Unreachable, UsageProblem
from kops.core.groups.lag_rates import Look, Rates
from kops.core.times import time_text, to_milliseconds

if TYPE_CHECKING:
    from kops.output.watch import Show

SHORTEST_MS = 100


def watched(session: Session, question: Question, interval: str, count: int | None) -> int:
    """Look until Ctrl-C, or a number of times, and return the exit code of the last look.

    A cluster that does not answer for a while, after it once did, is reported on stderr and asked again.

    :raises UsageProblem: when the interval is too short, or the output format has no lines
    """
    milliseconds = parse_duration(interval, what="interval")
    if milliseconds < SHORTEST_MS:
        raise UsageProblem(f"{interval} is too short", hint=f"{SHORTEST_MS}ms is the shortest")
    try:
        return _looks(session, question, milliseconds, count)
    except KeyboardInterrupt:  # it is how a watch ends
        return int(ExitCode.INTERRUPTED)


def _looks(session: Session, question: Question, milliseconds: int, count: int | None) -> int:
    rates, looks, code = Rates(question.by), 0, 0
    with _shown(session, question.by) as show:
        while True:
            started = time.monotonic()
            try:
                look, exceeded, code = _look(session, question, rates)
            except (TimedOut, Unreachable) as silence:
                if not looks:
                    raise
                code = int(silence.exit_code)
                session.note(f"{time_text(to_milliseconds(session.now()))}  {silence.message}")
            else:
                show(look, time_text(to_milliseconds(session.now())), exceeded)
            looks += 1
            if looks == count:
                return code
            time.sleep(max(0.0, started + milliseconds / 1000 - time.monotonic()))


def _look(session: Session, question: Question, rates: Rates) -> tuple[Look, list[str], int]:
    report = question.ask(session)
    now = time.monotonic()
    blocks = list(report.blocks)
    exceeded = Exceeded(question.limits)
    exceeded.look_at(question.summed(blocks))
    code = ExitCode.FAILED if exceeded.first else ExitCode.PARTIAL if report.problems else ExitCode.DONE
    problems: list[KopsError] = list(report.problems.values())
    for problem in problems:
        session.note(f"warning: {problem.message}")
    return rates.look((row for block in blocks for row in block.rows()), now), exceeded.first, int(code)


def _shown(session: Session, by: str) -> AbstractContextManager[Show]:
    from kops.output.watch import json_lines, live_table, plain_lines

    if session.output_format == "json":
        return nullcontext(json_lines(by, sys.stdout))
    if session.written_format != "table":
        raise UsageProblem(f"--watch has no {session.written_format}", hint="it writes lines for people, or one JSON object per poll")
    return live_table(by, sys.stdout) if sys.stdout.isatty() else nullcontext(plain_lines(sys.stdout))

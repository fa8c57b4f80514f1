"""Findings for people: a line each with what it is about, the commands for it below."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Mapping

from kops.cli.session import Session
from kops.core.errors import KopsError
from kops.core.findings import Finding, Severity, names_text

FINDING_COLUMNS = ("severity", "check", "subject", "summary", "commands")
WIDEST = 100
_WORD = max(len(severity.word) for severity in Severity) + 2


def findings_text(findings: Iterable[Finding]) -> str:
    """Return findings as lines of text, wrapped to the terminal (80 columns where there is none); empty when there are none."""
    width = min(shutil.get_terminal_size((80, 24)).columns, WIDEST)
    return "".join(_lines(finding, width) for finding in findings)


def cluster_words(session: Session) -> list[str]:
    """Return how the command line named the cluster, for commands that are to reach the same one."""
    options = {"-c": "context", "-B": "bootstrap_server", "--command-config": "command_config"}
    return [word for option, name in options.items() if (given := session.settings.get(name)) for word in (option, str(given))]


def note_gaps(session: Session, gaps: Mapping[str, KopsError]) -> int:
    """Say what could not be looked at, and return the exit code for it."""
    from kops.core.errors import ExitCode

    reasons: dict[str, list[str]] = {}
    for what, error in gaps.items():
        reasons.setdefault(error.message, []).append(what)
    for reason, some in reasons.items():
        session.note(f"warning: not known: {names_text(some)}: {reason}")
    return int(ExitCode.PARTIAL if gaps else ExitCode.DONE)


def _lines(finding: Finding, width: int) -> str:
    margin = " " * _WORD
    # Names stay whole, so that they can be copied.
    wrapped = textwrap.wrap(
        f"{finding.subject}: {finding.summary}",
        width,
        initial_indent=f"{finding.severity.word:{_WORD}}",
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join([*wrapped, *(f"{margin}$ {command}" for command in finding.commands)]) + "\n"

"""Findings for people: a line each with what it is about, the commands for it below."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any, TypeVar

import click

from kops.cli.frame.session import Session
from kops.core.errors import KopsError
from kops.core.findings import Finding, Severity, names_text
from kops.core.visible import visible
from kops.output.records import as_line

F = TypeVar("F", bound=Callable[..., Any])

FINDING_COLUMNS = ("severity", "check", "subject", "summary", "commands")
WIDEST = 100
SHOWN_ALIKE = 5
"""Findings of one kind that are shown one by one: a thousand groups without members are one piece of news."""
fail_on_option: Callable[[F], F] = click.option(
    "--fail-on",
    type=click.Choice(["critical", "warning", "note"]),
    default="warning",
    show_default=True,
    help="The severity from which on the exit code is 1.",
)
_MARGIN = " " * (max(len(severity.word) for severity in Severity) + 2)


def findings_text(findings: Iterable[Finding]) -> str:
    """Return findings as lines of text, wrapped to the terminal (80 columns where there is none); empty when there are none."""
    width = min(shutil.get_terminal_size((80, 24)).columns, WIDEST)
    text = []
    for (severity, _), alike in groupby(findings, key=lambda finding: (finding.severity, finding.check)):
        same = list(alike)
        text += [_lines(finding, width) for finding in same[:SHOWN_ALIKE]]
        if rest := same[SHOWN_ALIKE:]:
            names = names_text([finding.subject for finding in rest])
            text.append(_wrapped(severity, f"{len(rest)} more like this: {names}; -o json shows all", width))
    return "".join(text)


def render_findings(session: Session, findings: Iterable[Finding]) -> None:
    """Write findings to stdout as CSV, or as the names of what they are about."""
    columns = ["subject"] if session.output_format == "name" else FINDING_COLUMNS
    session.render((finding.as_json() for finding in findings), columns)


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
    commands = "".join(f"{_MARGIN}$ {visible(command)}\n" for command in finding.commands)
    return _wrapped(finding.severity, f"{finding.subject}: {finding.summary}", width) + commands


def _wrapped(severity: Severity, text: str, width: int) -> str:
    """Return a text beside its severity. Names stay whole, so that they can be copied."""
    text = as_line(text)  # causes and records come from elsewhere, and must not steer the terminal
    first = f"{severity.word:{len(_MARGIN)}}"
    lines = textwrap.wrap(text, width, initial_indent=first, subsequent_indent=_MARGIN, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines) + "\n"

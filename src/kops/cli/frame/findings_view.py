"""Findings for people: a line each with what it is about, the commands for it below."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping
from itertools import groupby

import click

from kops.cli.frame.session import Session
from kops.core.errors import ExitCode, KopsError
from kops.core.findings import Finding, Severity, names_text
from kops.core.visible import visible
from kops.output.colour import COMMAND, has_colours, painted, painted_word, write_coloured
from kops.output.records import as_line

FINDING_COLUMNS = ("severity", "check", "subject", "summary", "commands")
WIDEST = 100
SHOWN_ALIKE = 5
"""Findings of one kind that are shown one by one: a thousand groups without members are one piece of news."""
fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(["critical", "warning", "note"]),
    default="warning",
    show_default=True,
    help="Exit with 1 for a finding of this severity or worse.",
)
_MARGIN = " " * (max(len(severity.word) for severity in Severity) + 2)


def write_findings(findings: Iterable[Finding], headline: str, *, after: Iterable[str] = ()) -> None:
    """Write findings to stdout, for people: how many there are first, and last too where the first has left the terminal.

    :param after: lines that follow
    """
    terminal, colours = sys.stdout.isatty(), has_colours(sys.stdout)
    text = f"{_line(headline)}\n{findings_text(findings, colours=colours)}" + "".join(f"{_line(each)}\n" for each in after)
    if terminal and text.count("\n") >= shutil.get_terminal_size((80, 24)).lines:
        text += f"{_line(headline)}\n"
    write_coloured(text, sys.stdout) if colours else sys.stdout.write(text)


def _line(text: str) -> str:
    """Return a sentence, on a terminal in lines of whole words."""
    shown = as_line(text)
    if not sys.stdout.isatty():
        return shown
    return textwrap.fill(shown, min(shutil.get_terminal_size().columns, WIDEST), break_long_words=False, break_on_hyphens=False)


def findings_text(findings: Iterable[Finding], *, colours: bool = False) -> str:
    """Return findings as lines of text, wrapped to the terminal (80 columns where there is none); empty when there are none."""
    width = min(shutil.get_terminal_size((80, 24)).columns, WIDEST)
    text = []
    for (severity, _), alike in groupby(findings, key=lambda finding: (finding.severity, finding.check)):
        same = list(alike)
        text += [_lines(finding, width, colours=colours) for finding in same[:SHOWN_ALIKE]]
        if rest := same[SHOWN_ALIKE:]:
            names = names_text([finding.subject for finding in rest])
            text.append(_wrapped(severity, f"{len(rest)} more like this: {names}; -o json shows all", width, colours=colours))
    return "".join(text)


def render_findings(session: Session, findings: Iterable[Finding]) -> None:
    """Write findings to stdout as CSV, or as the names of what they are about."""
    columns = ["subject"] if session.output_format == "name" else FINDING_COLUMNS
    session.render((finding.as_json() for finding in findings), columns)


def note_gaps(session: Session, gaps: Mapping[str, KopsError]) -> int:
    """Say what could not be looked at, and return the exit code for it."""
    reasons: dict[str, list[str]] = {}
    for what, error in gaps.items():
        reasons.setdefault(error.message, []).append(what)
    for reason, some in reasons.items():
        session.note(f"warning: not known: {names_text(some)}: {reason}")
    return int(ExitCode.PARTIAL if gaps else ExitCode.DONE)


def _lines(finding: Finding, width: int, *, colours: bool) -> str:
    shown = [f"$ {visible(command)}" for command in finding.commands]
    commands = "".join(f"{_MARGIN}{painted(command, COMMAND if colours else None)}\n" for command in shown)
    follows = f" (may follow from {names_text(finding.follows)})" if finding.follows else ""
    return _wrapped(finding.severity, f"{finding.subject}: {finding.summary}{follows}", width, colours=colours) + commands


def _wrapped(severity: Severity, text: str, width: int, *, colours: bool) -> str:
    """Return a text next to its severity. Names stay whole, so that they can be copied."""
    text = as_line(text)  # causes and records come from elsewhere, and must not steer the terminal
    first = f"{severity.word:{len(_MARGIN)}}"
    lines = textwrap.wrap(text, width, initial_indent=first, subsequent_indent=_MARGIN, break_long_words=False, break_on_hyphens=False)
    if colours:
        lines[0] = painted_word(severity.word) + lines[0].removeprefix(severity.word)
    return "\n".join(lines) + "\n"

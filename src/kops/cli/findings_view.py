"""Findings for people: a line each with what it is about, the command for it below."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable

from kops.core.findings import Finding, Severity

WIDEST = 100
_WORD = max(len(severity.word) for severity in Severity) + 2


def findings_text(findings: Iterable[Finding]) -> str:
    """Return findings as lines of text, wrapped to the terminal (80 columns where there is none); empty when there are none."""
    width = min(shutil.get_terminal_size((80, 24)).columns, WIDEST)
    return "".join(_lines(finding, width) for finding in findings)


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
    command = [f"{margin}$ {finding.command}"] if finding.command else []
    return "\n".join([*wrapped, *command]) + "\n"

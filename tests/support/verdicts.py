"""Findings about computed stores, as tests ask for them."""

from __future__ import annotations

from collections.abc import Iterable

from kops.core.findings import Finding, Severity

NOTHING, REMARK, DOUBT, OBSTACLE = "nothing", "remark", "doubt", "obstacle"
_KINDS = {Severity.NOTE: REMARK, Severity.WARNING: DOUBT, Severity.CRITICAL: OBSTACLE}


def kinds(findings: Iterable[Finding]) -> list[str]:
    return [_KINDS[finding.severity] for finding in findings]


def worst(findings: Iterable[Finding]) -> str:
    """Return the kind of the worst finding; ``NOTHING`` where there is none."""
    return _KINDS[min(severities)] if (severities := [finding.severity for finding in findings]) else NOTHING


def summaries(findings: Iterable[Finding]) -> list[str]:
    return [finding.summary for finding in findings]


def said(findings: Iterable[Finding]) -> str:
    """Return all that findings say, in one text."""
    return "; ".join(summaries(findings))


def remarks(findings: Iterable[Finding]) -> list[str]:
    """Return what gives no reason to doubt a value."""
    return [finding.summary for finding in findings if finding.severity is Severity.NOTE]


def doubts(findings: Iterable[Finding]) -> list[str]:
    """Return why values may be otherwise."""
    return [finding.summary for finding in findings if finding.severity is not Severity.NOTE]

"""What ``kops state verify`` says of a store, as its JSON has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kops.core.streams.verdict import WORDS


def counts(row: Mapping[str, Any]) -> tuple[int, ...]:
    """Return how many keys are proven, computed, doubtful, impossible."""
    return tuple(row[word] for word in WORDS)


def findings(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what is known of the keys, and what else is in doubt, without notices about topics."""
    return [finding for finding in row["findings"] if finding["severity"] != "note" or not finding["subject"]]


def checks(row: Mapping[str, Any]) -> dict[str, str]:
    """Return how severe each finding is, by its check."""
    return {finding["check"]: finding["severity"] for finding in findings(row)}


def summaries(row: Mapping[str, Any]) -> str:
    """Return what the findings say."""
    return " ".join(finding["summary"] for finding in row["findings"])


def differs(row: Mapping[str, Any]) -> bool:
    """Whether the changelog holds something else than what was computed."""
    return any(row[word] for word in ("missing", "different", "unexpected"))

"""Findings about a cluster: severity, subject, and the kops commands that investigate or repair it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from kops.core.models import TopicPartition, numbers_by_topic
from kops.core.suggestions import completed

SHOWN_PLACES = 4


class Severity(IntEnum):
    """How bad something is; worse is smaller, so that findings sort worst first.

    CRITICAL: something does not work now, or data is about to be lost. WARNING: it works, with less margin than it should have.
    NOTE: worth knowing, but nothing to wake anyone for.
    """

    CRITICAL = 0
    WARNING = 1
    NOTE = 2

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    :param check: the check, a stable name for programs: ``offline_partitions``
    :param subject: what it is about: a group, a topic, partitions, a broker, ``cluster``
    :param summary: what is wrong, a sentence without a final full stop
    :param commands: commands of kops that investigate or repair it, in the order to run them
    :param facts: the numbers and names behind the sentence; JSON values only
    :param follows: the subjects of other findings that may be the reason for this one; see ``kops.core.diagnosis.causes``
    :param settled_by: what would show that it makes no difference, one of ``kops.core.streams.verdict``; empty: nothing that kops can see
    """

    severity: Severity
    check: str
    subject: str
    summary: str
    commands: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    follows: tuple[str, ...] = ()
    settled_by: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "severity": self.severity.word,
            "check": self.check,
            "subject": self.subject,
            "summary": self.summary,
            "commands": list(self.commands),
            "facts": dict(self.facts),
            "follows": list(self.follows),
            **({"settled_by": self.settled_by} if self.settled_by else {}),
        }


def command(*words: str) -> str:
    """Return a kops command line, quoted for a shell."""
    return shlex.join(["kops", *words])


def for_connection(findings: Iterable[Finding], words: Sequence[str]) -> list[Finding]:
    """Return findings whose commands reach the same cluster as the current command line.

    :param words: how the command line names it, such as ``-c prod``; empty if commands reach the cluster without
    """
    added = f" {shlex.join(words)}" if words else ""
    return [
        replace(finding, summary=completed(finding.summary, words), commands=tuple(f"{text}{added}" for text in finding.commands))
        for finding in findings
    ]


def any_at_least(findings: Iterable[Finding], least: Severity) -> bool:
    return any(finding.severity <= least for finding in findings)


def partitions_text(partitions: Iterable[TopicPartition]) -> str:
    """Format partitions for people: ``orders:0,3-5, payments:1 and 3 more topics``."""
    numbers = numbers_by_topic(partitions)
    shown = ", ".join(f"{topic}:{ranges_text(some)}" for topic, some in list(numbers.items())[:SHOWN_PLACES])
    rest = len(numbers) - SHOWN_PLACES
    return f"{shown} and {counted(rest, 'more topic')}" if rest > 0 else shown


def ranges_text(numbers: Iterable[int]) -> str:
    """Format partition numbers as people write them: ``0,3-5``."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def names_text(names: Iterable[object], most: int = SHOWN_PLACES, *, of: str = "") -> str:
    """Format names for people: ``a, b and 3 more``.

    :param of: what they are, as in ``and 3 more stores``
    """
    texts = list(map(str, names))
    more = f" and {len(texts) - most} more{of and f' {of}'}" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def counted(number: int, noun: str) -> str:
    """Format a number with its noun: ``1 partition``, ``2,000 partitions``, ``3 sub-topologies``."""
    if number == 1:
        return f"1 {noun}"
    ending = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}s"
    return f"{number:,} {ending}"

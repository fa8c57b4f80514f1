"""What is known of the keys that kops computed for a store, in four words.

A key is *proven* where an independent witness has the same record: its record in the changelog that survived, the newest record of the
output topic, or a snapshot. It is *computed* where nothing contradicts it and no witness is left. It is *doubtful* where a finding says why
the application may hold something else, or where a witness differs. It is *impossible* where its input or its code cannot give it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.findings import Finding, Severity

PROVEN, COMPUTED, DOUBTFUL, IMPOSSIBLE = "proven", "computed", "doubtful", "impossible"
WORDS = (PROVEN, COMPUTED, DOUBTFUL, IMPOSSIBLE)
"""Best first."""
KEYS_ANYWHERE, KEYS_THERE, ALL_KEYS = "equal keys of any partition", "equal keys of each partition", "all keys, equal"
"""What settles a finding that is about more than single keys: enough keys that survived, and are as computed.

The application's code does the same in all partitions, so keys of any partition show what it does; what happened to the application in one
partition only keys of that partition show; and what may have happened to any key only all keys show.
"""


LIMITED_TO = "limited_to"
"""The fact of a doubt that is about this many keys, and no others."""


def doubt(check: str, summary: str, *, subject: str = "", settled_by: str = "", **facts: Any) -> Finding:
    """Return why keys without a witness may be otherwise.

    :param subject: what else is in doubt, such as a topic; empty: the keys of the store
    """
    return Finding(Severity.WARNING, check, subject, summary, facts=facts, settled_by=settled_by)


def obstacle(check: str, summary: str, **facts: Any) -> Finding:
    """Return why keys without a witness cannot be computed."""
    return Finding(Severity.CRITICAL, check, "", summary, facts=facts)


def remark(check: str, summary: str, **facts: Any) -> Finding:
    """Return what should be known of keys and gives no reason to doubt their values, such as why their timestamps may differ."""
    return Finding(Severity.NOTE, check, "", summary, facts=facts)


def notice(check: str, summary: str, subject: str, **facts: Any) -> Finding:
    """Return what should be known whatever is known of the keys.

    :param subject: what it is about, such as a topic
    """
    return Finding(Severity.NOTE, check, subject, summary, facts=facts)


def is_open(findings: Iterable[Finding]) -> bool:
    """Whether a finding is a doubt or an obstacle."""
    return any(finding.severity < Severity.NOTE for finding in findings)


@dataclass(frozen=True)
class Verdict:
    """What is known of a store's keys.

    :param findings: of the computation, then of the witnesses; those with a subject of their own are about more than the computed keys
    :param proven: how many keys a witness shows
    :param computed: how many have no witness, and no doubt about them
    :param doubtful: how many are in doubt; those that a changelog holds and should not are among them
    :param impossible: how many cannot be computed; then all that differ, as the witnesses may be right
    :param keys: the first of the doubtful ones that would be written, each in a few words
    :param is_clear: nothing is in doubt but what the witnesses contradict: where they differ, one of both is wrong
    """

    findings: tuple[Finding, ...] = ()
    proven: int = 0
    computed: int = 0
    doubtful: int = 0
    impossible: int = 0
    keys: tuple[str, ...] = ()
    is_clear: bool = True

    @property
    def beyond(self) -> list[Finding]:
        """The doubts about something else than the computed keys, which no key settles."""
        return [finding for finding in self.findings if finding.subject and is_open([finding])]

    @property
    def word(self) -> str:
        if self.impossible:
            return IMPOSSIBLE
        if self.doubtful or self.beyond:
            return DOUBTFUL
        return PROVEN if self.proven and not self.computed else COMPUTED

    @property
    def text(self) -> str:
        """For example ``1,204,331 proven, 3 computed``."""
        counts = zip(WORDS, (self.proven, self.computed, self.doubtful, self.impossible), strict=True)
        return ", ".join(f"{count:,} {word}" for word, count in counts if count) or "no keys"

    @property
    def reasons(self) -> list[Finding]:
        """The findings that people are shown: those about keys that are not proven, about something else, and remarks."""
        unproven = self.computed + self.doubtful + self.impossible
        return [finding for finding in self.findings if unproven or finding.subject]

    def as_json(self) -> dict[str, Any]:
        return {
            "verdict": self.word,
            "proven": self.proven,
            "computed": self.computed,
            "doubtful": self.doubtful,
            "impossible": self.impossible,
            "doubtful_keys": list(self.keys),
            "findings": [finding.as_json() for finding in self.findings],
        }


def counted(
    findings: Sequence[Finding], contradictions: Sequence[Finding], *, keys: int, proven: int, contradicted: int, unexpected: int
) -> Verdict:
    """Count the keys of a store by what is known of them.

    :param findings: of the computation
    :param contradictions: of the witnesses
    :param keys: that were computed
    :param proven: those of which a witness has the same record
    :param contradicted: those of which a witness has another, or none where it should have one
    :param unexpected: keys that a witness has and that were not computed
    """
    everything: list[Finding] = []
    for finding in (*findings, *contradictions):
        if finding not in everything:
            everything.append(finding)
    left = max(0, keys - proven - contradicted)
    of_keys = [finding.severity for finding in everything if not finding.subject]
    is_impossible, doubtful = Severity.CRITICAL in of_keys, _doubtful(everything, left)
    differing = contradicted + unexpected
    return Verdict(
        tuple(everything),
        proven=min(proven, keys),
        computed=0 if is_impossible else left - doubtful,
        doubtful=0 if is_impossible else differing + doubtful,
        impossible=differing + left if is_impossible else 0,
        is_clear=not is_open(findings),
    )


def _doubtful(findings: Iterable[Finding], left: int) -> int:
    """Return how many of the keys without a witness are in doubt: all, or at most as many as doubts about single keys name."""
    doubts = [finding for finding in findings if finding.severity is Severity.WARNING and not finding.subject]
    if any(LIMITED_TO not in finding.facts for finding in doubts):
        return left
    limit: int = sum(finding.facts[LIMITED_TO] for finding in doubts)
    return min(left, limit)

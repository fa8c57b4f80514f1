"""Guesses the type of the store behind a topic, from its name, its settings and some of its records, and says why.

A guess: nothing in a changelog names its store's type, and bytes may look like what they are not. So the caller can say it instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kops.core.records.models import Record
from kops.formats.streams import store_types
from kops.formats.streams.detection_bytes import bytes_evidence
from kops.formats.streams.detection_names import name_evidence, settings_evidence
from kops.formats.streams.evidence import Evidence

HIGH, MEDIUM, LOW, NAMED = "high", "medium", "low", "named"
"""How sure a guess is; ``named``: it is none, the caller said it."""

SAMPLE = 500
"""As many records of a topic are enough; more only cost time."""

_SURE, _CLEAR, _AHEAD = 6, 4, 2
_IMPOSSIBLE = -6
_SHOWN = 3


@dataclass(frozen=True)
class Alternative:
    """Another type that the topic may be of, and what speaks for it."""

    type: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Guess:
    """What a topic seems to hold.

    :param type: one of ``store_types.ALL_TYPES``
    :param confidence: ``high``, ``medium`` or ``low``; ``named`` when the caller said the type
    :param reasons: what speaks for it, a sentence each; with ``named`` what speaks against it
    :param alternatives: other types it may be of, the likeliest first
    """

    type: str
    confidence: str
    reasons: tuple[str, ...]
    alternatives: tuple[Alternative, ...] = ()

    @property
    def what(self) -> str:
        """Return in words what such a topic holds."""
        return store_types.ALL_TYPES[self.type]


def detect(topic: str, settings: Mapping[str, str], records: Iterable[Record], *, named: str | None = None) -> Guess:
    """Return what a topic seems to hold.

    :param settings: the topic's, by name: ``cleanup.policy`` and ``min.compaction.lag.ms`` are looked at
    :param records: some of the topic, from anywhere; ``SAMPLE`` of them are enough, none will do
    :param named: the type that the caller says it is: taken, and only what speaks against it is looked for
    """
    sample = list(records)
    evidence = [*name_evidence(topic), *settings_evidence(topic, settings), *bytes_evidence(sample, topic)]
    if not sample:
        evidence.append(Evidence("", 0, "it has no records that could be looked at"))
    if named is not None:
        against = [each.sentence for each in evidence if each.type == named and each.weight < 0]
        return Guess(named, NAMED, tuple(against))
    scores = {name: sum(each.weight for each in evidence if each.type == name) for name in store_types.ALL_TYPES}
    ranked = sorted(scores, key=lambda name: -scores[name])
    best, second = ranked[:2]
    reasons = [*_speaking_for(best, evidence), *(each.sentence for each in evidence if not each.type)]
    rest = [name for name in ranked[1:] if scores[name] > max(0, scores[best] + _IMPOSSIBLE)][:_SHOWN]
    alternatives = tuple(Alternative(name, _speaking_for(name, evidence)) for name in rest)
    return Guess(best, _confidence(scores[best], scores[best] - scores[second]), tuple(reasons), alternatives)


def _speaking_for(name: str, evidence: Iterable[Evidence]) -> tuple[str, ...]:
    return tuple(each.sentence for each in evidence if each.type == name and each.weight > 0 and each.sentence)


def _confidence(score: int, ahead: int) -> str:
    if score >= _SURE and ahead >= _CLEAR:
        return HIGH
    return MEDIUM if ahead >= _AHEAD else LOW

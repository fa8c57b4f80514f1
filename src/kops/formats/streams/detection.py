"""Guesses the type of the store behind a topic from its name, its settings and some of its records, with reasons.

It is only a guess: nothing in a changelog names the type of its store, and bytes may look like another type by chance. So the caller can
name the type instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kops.core.records.models import Record
from kops.formats.streams import store_types as types
from kops.formats.streams.detection_bytes import Evidence, bytes_evidence

HIGH, MEDIUM, LOW, NAMED = "high", "medium", "low", "named"
"""Confidence of a guess; ``named``: not a guess, the caller named the type."""

SAMPLE = 500
"""This many records of a topic are enough; more only cost time."""

_NAMES: tuple[tuple[str, str, str], ...] = (
    (r"-KTABLE-SUPPRESS-STATE-STORE-\d+-changelog$", types.SUPPRESS, "suppress() names its buffer so"),
    (
        r"-(?:KSTREAM-OUTERSHARED-\d+|(?:left|outer)-shared-join)-store-changelog$",
        types.OUTER_JOIN,
        "left and outer stream-stream joins name the store they share so",
    ),
    (
        r"-(?:KSTREAM-(?:JOIN|OUTER)(?:THIS|OTHER)-\d+|(?:outer-)?(?:this|other)-join)-store-changelog$",
        types.JOIN,
        "stream-stream joins name their stores so",
    ),
    (r"-KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-\d+-changelog$", types.SUBSCRIPTION, "foreign-key joins name their store so"),
    (r"-subscription-store-changelog$", types.SUBSCRIPTION, "named foreign-key joins name their store so"),
    (
        r"-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-\d+-topic$",
        types.SUBSCRIPTION_REGISTRATION,
        "foreign-key joins name this topic so",
    ),
    (r"-subscription-registration-topic$", types.SUBSCRIPTION_REGISTRATION, "named foreign-key joins name this topic so"),
    (r"-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-\d+-topic$", types.SUBSCRIPTION_RESPONSE, "foreign-key joins name this topic so"),
    (r"-subscription-response-topic$", types.SUBSCRIPTION_RESPONSE, "named foreign-key joins name this topic so"),
    (r"-Buffer-changelog$", types.JOIN_BUFFER, "stream-table joins with a grace period name their buffer so"),
    (r"-KTABLE-(?:AGGREGATE|REDUCE)-STATE-STORE-\d+-changelog$", types.KEY_VALUE, "aggregates of grouped tables name their store so"),
    (
        r"-KTABLE-(?:AGGREGATE|REDUCE)-STATE-STORE-\d+-repartition$",
        types.GROUPED_TABLE,
        "grouped tables name their repartition topic so",
    ),
    (r"-repartition$", types.REPARTITION, "its name is that of a repartition topic"),
)
_BY_NAME = 6
_BY_SETTINGS = 3

_OF_WINDOWS = (types.WINDOW, types.SESSION)
_COMPACTED = (
    types.KEY_VALUE,
    types.VERSIONED,
    types.OUTER_JOIN,
    types.SUPPRESS,
    types.JOIN_BUFFER,
    types.SUBSCRIPTION,
)
_SURE, _CLEAR, _AHEAD = 6, 4, 2
_IMPOSSIBLE = -6
_SHOWN = 3


@dataclass(frozen=True)
class Guess:
    """What a topic seems to hold.

    :param type: one of ``store_types.ALL_TYPES``
    :param confidence: ``high``, ``medium`` or ``low``; ``named`` when the caller named the type
    :param reasons: evidence for the type, one sentence each; with ``named`` the evidence against it
    :param alternatives: other possible types, the likeliest first
    """

    type: str
    confidence: str
    reasons: tuple[str, ...]
    alternatives: tuple[str, ...] = ()


def detect(topic: str, settings: Mapping[str, str], records: Iterable[Record], *, named: str | None = None) -> Guess:
    """Guess what a topic holds.

    :param settings: the topic's, by name; only ``cleanup.policy`` and ``min.compaction.lag.ms`` are read
    :param records: some of the topic's, from any position; ``SAMPLE`` of them are enough, and there may be none
    :param named: the type that the caller names: it is accepted, and only evidence against it is collected
    """
    sample = list(records)
    evidence = [*name_evidence(topic), *settings_evidence(topic, settings), *bytes_evidence(sample, topic)]
    if not sample:
        evidence.append(Evidence("", 0, "it has no records that could be looked at"))
    if named is not None:
        against = [each.sentence for each in evidence if each.type == named and each.weight < 0]
        return Guess(named, NAMED, tuple(against))
    scores = {name: sum(each.weight for each in evidence if each.type == name) for name in types.ALL_TYPES}
    ranked = sorted(scores, key=lambda name: -scores[name])
    best, second = ranked[:2]
    reasons = [each.sentence for each in evidence if each.type == best and each.weight > 0 and each.sentence]
    reasons += [each.sentence for each in evidence if not each.type]
    alternatives = [name for name in ranked[1:] if scores[name] > max(0, scores[best] + _IMPOSSIBLE)][:_SHOWN]
    return Guess(best, _confidence(scores[best], scores[best] - scores[second]), tuple(reasons), tuple(alternatives))


def _confidence(score: int, ahead: int) -> str:
    if score >= _SURE and ahead >= _CLEAR:
        return HIGH
    return MEDIUM if ahead >= _AHEAD else LOW


def name_evidence(topic: str) -> list[Evidence]:
    for pattern, kind, why in _NAMES:
        if re.search(pattern, topic):
            found = [Evidence(kind, _BY_NAME, why)]
            if kind == types.REPARTITION:
                found += [Evidence(types.GROUPED_TABLE, _BY_NAME - 1)]
            return found
    if topic.endswith("-changelog"):
        return [Evidence(types.KEY_VALUE, 1)]
    return [Evidence(types.KEY_VALUE, 1), Evidence("", 0, "its name is not that of a changelog, so it may be a topic like any other")]


def settings_evidence(topic: str, settings: Mapping[str, str]) -> list[Evidence]:
    """Return the evidence in a topic's settings (``WindowedChangelogTopicConfig`` and its siblings)."""
    policy = {part.strip() for part in settings.get("cleanup.policy", "").split(",") if part.strip()}
    found: list[Evidence] = []
    if policy == {"compact", "delete"}:
        why = "it is compacted and its old records are deleted, as Kafka Streams sets it for windows and sessions"
        found += [*_for(_OF_WINDOWS, _BY_SETTINGS, why), *_against((*_COMPACTED, types.JOIN), why)]
    elif policy == {"compact"}:
        why = "it is compacted and nothing of it is deleted, as Kafka Streams sets it for stores without windows"
        found += [*_for(_COMPACTED, 1, why), *_against((*_OF_WINDOWS, types.JOIN), why)]
    elif policy == {"delete"} and topic.endswith("-changelog"):
        why = "it is not compacted and its old records are deleted, as Kafka Streams sets it for the stores of stream-stream joins"
        found += [*_for((types.JOIN,), _BY_SETTINGS, why), *_against((*_COMPACTED, *_OF_WINDOWS), why)]
    elif policy == {"delete"}:
        found += _against((*_COMPACTED, *_OF_WINDOWS, types.JOIN), "it is not compacted, as it is set for topics on the way")
    lag = settings.get("min.compaction.lag.ms", "")
    if lag.isdecimal() and policy == {"compact"}:
        if int(lag):
            why = f"old versions stay for min.compaction.lag.ms={lag}, which Kafka Streams sets for versioned stores"
            found.append(Evidence(types.VERSIONED, _BY_NAME, why))
        else:
            found.append(Evidence(types.VERSIONED, -_BY_SETTINGS, "it has no min.compaction.lag.ms, which versioned stores need"))
    return found


def _for(kinds: tuple[str, ...], weight: int, why: str) -> list[Evidence]:
    return [Evidence(kind, weight, why) for kind in kinds]


def _against(kinds: tuple[str, ...], why: str) -> list[Evidence]:
    return [Evidence(kind, -_BY_SETTINGS, f"{why}, not for this type") for kind in kinds]

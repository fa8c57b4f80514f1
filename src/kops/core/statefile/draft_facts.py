"""What the cluster shows about the stores and input topics of an application, for a draft of its state file. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kops.core.records.format_guess import FormatGuess

WINDOW, SESSION, VERSIONED, KEY_VALUE = "window", "session", "versioned", "key-value"
DAY_MS = 86_400_000
"""Kafka Streams adds this to the retention of windows and versions in changelogs, unless set otherwise."""

NOTHING = FormatGuess(None, "no record to look at")


@dataclass(frozen=True)
class StoreFacts:
    """What the changelog of a store shows.

    :param changelog: whether it has a changelog topic of its own
    :param type: as guessed from settings and records: ``key-value``, ``window``, ``session``, ``versioned``
    :param reasons: why
    :param retention_ms: ``retention.ms`` of the changelog, for windows and sessions
    :param history_ms: ``min.compaction.lag.ms`` of the changelog, for a versioned store
    :param step_ms: the distances between window starts are multiples of this; None if there are fewer than two windows
    :param alignment_ms: how far after a multiple of ``step_ms`` windows start
    """

    changelog: bool
    type: str = KEY_VALUE
    reasons: tuple[str, ...] = ()
    retention_ms: int | None = None
    history_ms: int | None = None
    step_ms: int | None = None
    alignment_ms: int = 0
    key: FormatGuess = NOTHING
    value: FormatGuess = NOTHING


@dataclass(frozen=True)
class TopicFacts:
    """What the records of an input topic show."""

    key: FormatGuess = NOTHING
    value: FormatGuess = NOTHING


@dataclass(frozen=True)
class Facts:
    """What the cluster shows.

    :param transactions: whether changelogs end in transaction markers; None if none has records
    """

    stores: Mapping[str, StoreFacts]
    topics: Mapping[str, TopicFacts]
    transactions: bool | None = None

    def store(self, name: str) -> StoreFacts:
        return self.stores.get(name, StoreFacts(changelog=False))

    def topic(self, name: str) -> TopicFacts:
        return self.topics.get(name, TopicFacts())

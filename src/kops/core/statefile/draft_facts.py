"""What the cluster says about an application's stores and input topics, for a draft of its state file. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kops.core.records.format_guess import FormatGuess

WINDOW, SESSION, VERSIONED, KEY_VALUE = "window", "session", "versioned", "key-value"
DAY_MS = 86_400_000
"""What Kafka Streams adds to the retention of windows and versions in their changelogs, unless it was set otherwise."""

NOTHING = FormatGuess(None, "no record to look at")


@dataclass(frozen=True)
class StoreFacts:
    """What the changelog of a store looks like.

    :param changelog: whether it has a changelog topic of its own
    :param type: as guessed from settings and records: ``key-value``, ``window``, ``session``, ``versioned``
    :param reasons: why
    :param retention_ms: ``retention.ms`` of the changelog, of windows and sessions
    :param history_ms: ``min.compaction.lag.ms``, of a versioned store
    :param step_ms: of which the distances between windows' starts are multiples; None when no two are there
    :param alignment_ms: how far after a multiple of that they start
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
    """What the records of an input topic look like."""

    key: FormatGuess = NOTHING
    value: FormatGuess = NOTHING


@dataclass(frozen=True)
class Facts:
    """What the cluster says.

    :param transactions: whether changelogs end in the marks of transactions; None when none has records
    """

    stores: Mapping[str, StoreFacts]
    topics: Mapping[str, TopicFacts]
    transactions: bool | None = None

    def store(self, name: str) -> StoreFacts:
        """Return what is known of a store."""
        return self.stores.get(name, StoreFacts(changelog=False))

    def topic(self, name: str) -> TopicFacts:
        """Return what is known of a topic."""
        return self.topics.get(name, TopicFacts())

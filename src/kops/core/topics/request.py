"""What somebody asks for who creates topics, and the settings that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kops.core.errors import UsageProblem
from kops.core.topics.settings import POLICY, RETENTION


@dataclass(frozen=True)
class Wish:
    """What was asked for: the same for all names of one command.

    :param partitions: None: as ``like``, else the brokers' default; ``replication_factor`` likewise
    :param compacted: ``cleanup.policy=compact``, with ``expire_ms`` ``compact,delete``
    :param expire_ms: milliseconds after which records are deleted
    :param settings: Kafka's settings, as given
    :param like: an existing topic to take everything from that is not given
    """

    partitions: int | None = None
    replication_factor: int | None = None
    compacted: bool = False
    expire_ms: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    like: str | None = None

    @property
    def expires(self) -> bool:
        """Tell whether records are to be deleted after a time."""
        return self.expire_ms is not None


def wished_settings(wish: Wish, inherited: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the settings that a topic gets of its own.

    :param inherited: those of the topic that it is made like
    :raises UsageProblem: when the options contradict each other
    """
    for option, name in (("--compacted", POLICY) if wish.compacted else ("", ""), ("--expire", RETENTION) if wish.expires else ("", "")):
        if option and name in wish.settings:
            raise UsageProblem(f"{option} and --config {name}={wish.settings[name]} contradict each other", hint="leave one of them out")
    settings = {**(inherited or {}), **wish.settings}
    if wish.compacted:
        settings[POLICY] = "compact"
    if wish.expires:
        settings[RETENTION] = str(wish.expire_ms)
        if settings.get(POLICY) == "compact":
            settings[POLICY] = "compact,delete"
    return settings

"""Observes a cluster for ``cluster health`` and ``diagnose``. A request that fails leaves a named gap; the others go ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from kops.core.cluster.models import Release
from kops.core.cluster.observed import ObservedCluster, is_under_replicated
from kops.core.errors import AuthorizationFailed, BrokerDown, KopsError, NotFound, TimedOut, Unreachable
from kops.core.findings import names_text
from kops.core.models import Setting, Topic
from kops.core.rights import Right
from kops.operations.services import Services

T = TypeVar("T")

_UNSEEN = "whether topics may not be described"
_NOT_OFFERED = "UNSUPPORTED_VERSION"
"""Older clusters and those of other vendors do not support every request: they have nothing to report, which is not a gap."""


@dataclass
class Gaps:
    """What could not be looked at, and why.

    :ivar errors: by what was requested, such as ``quorum``
    :ivar lacking: the same, for requests that the cluster does not support
    """

    errors: dict[str, KopsError] = field(default_factory=dict)
    lacking: dict[str, KopsError] = field(default_factory=dict)

    def ask(self, what: str, request: Callable[[], T]) -> T | None:
        """Return the answer to a request; None if it fails, with the reason recorded."""
        try:
            return request()
        except KopsError as error:
            self.note(what, error)
            return None

    def answered(self, what: str, answers: Mapping[int, T | KopsError]) -> dict[int, T]:
        """Return the brokers' answers that are not errors, and record each error."""
        for broker_id, answer in answers.items():
            if isinstance(answer, BrokerDown):
                self.note(f"{what} of broker {broker_id}", answer)
            elif isinstance(answer, Unreachable):  # it names the bootstrap servers, which do answer
                self.note(f"{what} of broker {broker_id}", Unreachable(f"broker {broker_id} does not answer"))
            elif isinstance(answer, KopsError):
                self.note(f"{what} of broker {broker_id}", answer)
        return {broker_id: answer for broker_id, answer in answers.items() if not isinstance(answer, KopsError)}

    def note(self, what: str, error: KopsError) -> None:
        """Record a failure; requests that the cluster does not support are kept apart, in ``lacking``."""
        (self.lacking if error.details.get("kafka_error") == _NOT_OFFERED else self.errors)[what] = error


def observe(services: Services, gaps: Gaps, names: Sequence[str] | None = None) -> ObservedCluster:
    """Observe brokers, controllers and disks, and some topics, or all topics when ``names`` is None.

    :param gaps: receives what could not be observed
    :raises Unreachable: when no broker answers
    """
    kafka = services.kafka
    cluster = kafka.cluster()
    topics = tuple(kafka.topics.describe().values()) if names is None else _existing(services, names, gaps)
    if names is None:
        note_unseen_topics(gaps, partial(kafka.hidden_topics, internal=True))
    seen = ObservedCluster(
        topics,
        cluster.brokers,
        settings=_settings(services, topics, gaps),
        registered=gaps.ask("registered brokers", kafka.details.registered_brokers) or (),
        quorum=gaps.ask("quorum", kafka.details.quorum),
        cluster_id=cluster.cluster_id,
    )
    in_service = sorted(seen.live - {broker.id for broker in seen.registered if broker.fenced})
    # Without partitions the answer is short: the directories, without their replicas.
    answers = releases(services, in_service, gaps)
    silent = frozenset(broker_id for broker_id, answer in answers.items() if isinstance(answer, (BrokerDown, Unreachable, TimedOut)))
    versions = gaps.answered("version", {broker_id: answer for broker_id, answer in answers.items() if broker_id not in silent})
    speaking = [broker_id for broker_id in in_service if broker_id not in silent]
    asked = gaps.ask("log directories", partial(kafka.log_dirs.describe_or_errors, speaking, ()))
    disks = gaps.answered("log directories", asked or {}).values()
    seen = replace(seen, versions=versions, unanswering=silent, log_dirs=tuple(one for some in disks for one in some))
    return _with_details(services, seen, gaps)


def note_unseen_topics(gaps: Gaps, look: Callable[[], tuple[list[str], KopsError | None]]) -> None:
    """Record the topics that may not be described, which brokers leave out without an error, or why these are not known.

    :param look: as ``Kafka.hidden_topics`` returns them
    """
    hidden, unknown = gaps.ask(_UNSEEN, look) or ([], None)
    if hidden:
        gaps.note(f"topics {names_text(hidden)}", Right("DESCRIBE", f"topic {hidden[0]}").lacking("they may not be described"))
    if unknown is not None:
        gaps.note(_UNSEEN, unknown)


def _existing(services: Services, names: Sequence[str], gaps: Gaps) -> tuple[Topic, ...]:
    """Return the topics that exist; each one that may not be described leaves its own gap."""
    topics = services.kafka.topics
    try:
        return tuple(topics.existing(names).values())
    except AuthorizationFailed:
        answers = [gaps.ask(f"topic {name}", lambda name=name: topics.existing([name])) for name in names]  # type: ignore[misc]
        return tuple(topic for found in answers if found for topic in found.values())


def _settings(services: Services, topics: Iterable[Topic], gaps: Gaps) -> dict[str, dict[str, Setting]]:
    """Return the settings of the topics that may be seen; the others leave a gap."""
    answers = gaps.ask("topic settings", lambda: services.kafka.topics.settings_or_errors(one.name for one in topics)) or {}
    hidden = {name: one for name, one in answers.items() if isinstance(one, KopsError) and not isinstance(one, NotFound)}
    if hidden:
        gaps.note(f"settings of {names_text(hidden)}", next(iter(hidden.values())))
    return {name: one for name, one in answers.items() if not isinstance(one, KopsError)}


def _with_details(services: Services, seen: ObservedCluster, gaps: Gaps) -> ObservedCluster:
    """Add reassignments and eligible leaders, which matter only where partitions are under-replicated or offline."""
    details = services.kafka.details
    offline = sorted({place.topic for place, partition in seen.partitions() if partition.leader is None})
    if any(is_under_replicated(partition) for _, partition in seen.partitions()):
        seen = replace(seen, adding=gaps.ask("reassignments", details.adding_replicas) or {})
    return replace(seen, eligible=gaps.ask("eligible leaders", lambda: details.eligible_leaders(offline)) or {}) if offline else seen


def releases(services: Services, broker_ids: Sequence[int], gaps: Gaps) -> dict[int, Release | KopsError]:
    return gaps.ask("broker versions", lambda: services.kafka.details.releases_or_errors(broker_ids)) or {}

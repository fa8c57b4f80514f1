"""Whether the topics that connectors use exist, as far as their configurations name them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kops.core.connect.topics import Brokers, Lack, UsedTopic, UsedTopics, lacks_of, matches_any
from kops.core.errors import AuthorizationFailed, KopsError, NotFound, UsageProblem
from kops.core.findings import names_text
from kops.core.models import value_of
from kops.operations.services import Services


class TopicLook:
    """One look at the topics of Connect's Kafka cluster: all names in one request, and more only where a topic is missing.

    :param names: those of all topics, if they are known
    :ivar gaps: what could not be looked at, by connector
    :ivar problem: why no topic could be looked at; None if they could
    """

    def __init__(self, services: Services, names: Collection[str] | None = None) -> None:
        self._services, self._names = services, names
        self._brokers: Brokers | None = None
        self.gaps: dict[str, str] = {}
        self.problem: KopsError | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not known of the topics, in sentences."""
        reasons: dict[str, list[str]] = {}
        for name, reason in self.gaps.items():
            reasons.setdefault(reason, []).append(name)
        texts = [f"not every topic of {names_text(names, of='connectors')} is known: {reason}" for reason, names in reasons.items()]
        return (*([f"whether the connectors' topics exist is not known: {self.problem.message}"] if self.problem else ()), *texts)

    def brokers(self) -> Brokers:
        """Return the brokers that create topics for Connect.

        :raises KopsError: if they cannot be asked, or Connect does not belong to them
        """
        if self._brokers is None:
            cluster = self._services.kafka.cluster()
            if cluster.cluster_id != self._services.connect.about()["kafka_cluster_id"]:
                raise UsageProblem(
                    "Connect belongs to another Kafka cluster than the brokers of this context",
                    hint="correct bootstrap_servers or connect_urls",
                )
            self._brokers = Brokers(len(cluster.brokers), self._create(cluster.brokers[0].id) if cluster.brokers else None)
        return self._brokers

    def lacks(self, name: str, used: UsedTopics) -> tuple[Lack, ...]:
        """Return the topics that a connector lacks; nothing if that could not be checked.

        :param name: of the connector
        """
        missing = self.missing(name, used)
        try:
            matched = self._is_matched(name, used.pattern)
            if matched and not missing:
                return ()
            return tuple(lacks_of(used, [one.name for one in missing], unmatched=not matched, brokers=self.brokers()))
        except KopsError as problem:
            self.problem = problem
            return ()

    def missing(self, name: str, used: UsedTopics) -> tuple[UsedTopic, ...]:
        """Return the topics of a connector that do not exist; nothing where it could not be looked at."""
        if used.unknown:
            self.gaps[name] = used.unknown
        if self.problem is not None or not used.named:
            return ()
        try:
            there = self._existing()
            missing = [one for one in used.named if one.name not in there]
            if not missing:
                return ()
            self.brokers()
            reasons = self._services.kafka.topics.problems(one.name for one in missing)
        except KopsError as problem:
            self.problem = problem
            return ()
        hidden = [topic for topic, reason in reasons.items() if not isinstance(reason, NotFound)]
        if hidden:
            self.gaps[name] = f"{names_text(hidden)} cannot be described: {reasons[hidden[0]].message}"
        return tuple(one for one in missing if isinstance(reasons.get(one.name), NotFound))

    def count_as_existing(self, names: Iterable[str]) -> None:
        """Count topics that are going to be created among those that exist."""
        self._names = frozenset((*self._existing(), *names))

    def _is_matched(self, name: str, pattern: str | None) -> bool:
        """Whether a topic matches the pattern of a connector, as far as it can be seen."""
        if self.problem is not None or pattern is None:
            return True
        matched = matches_any(pattern, self._existing())
        if matched is None:
            self.gaps[name] = f"topics.regex {pattern} is written in a way that only Java reads"
        return matched is not False

    def _existing(self) -> Collection[str]:
        if self._names is None:
            if not self._services.connection.bootstrap_servers:
                raise UsageProblem("no brokers are configured", hint="pass -B HOST:PORT, or choose a context with -c")
            self._names = frozenset(self._services.kafka.topics.names())
        return self._names

    def _create(self, broker_id: int) -> bool | None:
        try:
            settings = self._services.kafka.topics.broker_settings(broker_id)
        except AuthorizationFailed:
            return None
        return value_of(settings, "auto.create.topics.enable") == "true"

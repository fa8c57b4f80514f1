"""Whether the topics that connectors need exist, as far as their configurations name them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from kops.core.connect.needed_topics import Lack, lacks_of, names_topics, needs_of
from kops.core.errors import KopsError
from kops.operations.services import Services


class Topics:
    """The topics of Connect's Kafka cluster, for one command; only those that connectors need are asked for."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._brokers: int | str | None = None
        self._silent: list[str] = []

    @property
    def unknown(self) -> tuple[str, ...]:
        """What is not known of the topics, in sentences."""
        silent = ", ".join(self._silent)
        return (
            *([f"whether the connectors' topics exist is not known: {self._brokers}"] if isinstance(self._brokers, str) else ()),
            *([f"which topics {silent} will use is not known: kops knows no setting that says so"] if silent else ()),
        )

    def lacks(self, name: str, kind: str, config: Mapping[str, str]) -> Iterator[Lack]:
        """Yield the topics that a connector lacks; what cannot be looked at is in ``unknown``.

        :param kind: sink or source
        """
        if not names_topics(kind, config):
            self._silent.append(name)
        names = {need.topic for need in needs_of(kind, config)}
        pattern = config.get("topics.regex") if kind == "sink" else None
        if not names and pattern is None:
            return
        if self._brokers is None:
            self._brokers = self._look()
        if isinstance(self._brokers, int):
            try:
                there = self._services.kafka.topics.existing(names)
                every = [] if pattern is None else self._services.kafka.topics.names()
            except KopsError as error:
                self._brokers = error.message
            else:
                yield from lacks_of(kind, config, there, brokers=self._brokers)
                if pattern is not None and not _matches(pattern, every):
                    what = f"no topic matches {pattern} now: the connector runs and reads nothing until one does"
                    yield Lack("topics.regex", what, "`kops topics list` shows those that there are")

    def _look(self) -> int | str:
        """Return the number of brokers, or why they cannot be asked."""
        if not self._services.connection.bootstrap_servers:
            return "no brokers are configured"
        try:
            cluster = self._services.kafka.cluster()
        except KopsError as error:
            return error.message
        if cluster.cluster_id != self._services.connect.about()["kafka_cluster_id"]:
            return "Connect belongs to another Kafka cluster than the brokers of this context"
        return len(cluster.brokers)


def _matches(pattern: str, names: Sequence[str]) -> bool:
    """Whether a pattern matches a topic; also if Python cannot read what Java can."""
    try:
        return any(re.fullmatch(pattern, name) for name in names)
    except re.error:
        return True

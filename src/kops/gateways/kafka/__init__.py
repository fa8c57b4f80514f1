"""Kafka through confluent-kafka. Above this package there are only kops' own types and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from kops.config.connection import Connection
from kops.core.cluster.models import LogDir
from kops.core.errors import AuthorizationFailed, BrokerDown, KopsError, NotFound, answer_or_error
from kops.core.permit import ALWAYS, Permit
from kops.gateways.kafka.client import Client

if TYPE_CHECKING:
    from kops.core.models import Cluster, NewRecord
    from kops.gateways.kafka.acls import Acls
    from kops.gateways.kafka.cluster_details import ClusterDetails, LogDirs
    from kops.gateways.kafka.groups.groups import Groups
    from kops.gateways.kafka.groups.streams import StreamsGroups
    from kops.gateways.kafka.offsets import Offsets
    from kops.gateways.kafka.principals import Principals
    from kops.gateways.kafka.records import Records
    from kops.gateways.kafka.replicas import ReplicaRequests
    from kops.gateways.kafka.settings import SettingsRequests
    from kops.gateways.kafka.tokens import Tokens
    from kops.gateways.kafka.topics import Topics
    from kops.gateways.kafka.transactions import Transactions


class Kafka:
    """One cluster, its requests by subject. Connects on first use."""

    def __init__(
        self, connection: Connection, *, verbose: bool = False, notify: Callable[[str], None] | None = None, permit: Permit = ALWAYS
    ) -> None:
        """Connect to nothing yet.

        :param notify: receives a sentence for the user when brokers are found not to answer
        :param permit: to send what may change something; consumers that commit need none
        """
        self.client = Client(connection, verbose=verbose, notify=notify, permit=permit)

    def close(self) -> None:
        """Close all connections. The object remains usable and reconnects when needed."""
        self.client.close()

    @cached_property
    def topics(self) -> Topics:
        from kops.gateways.kafka.topics import Topics

        return Topics(self.client, self.heard_by_all)

    @cached_property
    def offsets(self) -> Offsets:
        from kops.gateways.kafka.offsets import Offsets

        return Offsets(self.client)

    @cached_property
    def groups(self) -> Groups:
        from kops.gateways.kafka.groups.groups import Groups

        return Groups(self.client)

    @cached_property
    def streams_groups(self) -> StreamsGroups:
        """Groups of Kafka Streams applications, with what their members report about themselves."""
        from kops.gateways.kafka.groups.streams import StreamsGroups

        return StreamsGroups(self.client)

    @cached_property
    def acls(self) -> Acls:
        from kops.gateways.kafka.acls import Acls

        return Acls(self.client)

    @cached_property
    def log_dirs(self) -> LogDirs:
        from kops.gateways.kafka.cluster_details import LogDirs

        return LogDirs(self.client)

    @cached_property
    def records(self) -> Records:
        from kops.gateways.kafka.records import Records

        return Records(self.client)

    @cached_property
    def details(self) -> ClusterDetails:
        from kops.gateways.kafka.cluster_details import ClusterDetails

        return ClusterDetails(self.client)

    @cached_property
    def replicas(self) -> ReplicaRequests:
        from kops.gateways.kafka.replicas import ReplicaRequests

        return ReplicaRequests(self.client)

    @cached_property
    def settings(self) -> SettingsRequests:
        """Settings of brokers, groups and client metrics."""
        from kops.gateways.kafka.settings import SettingsRequests

        return SettingsRequests(self.client)

    @cached_property
    def principals(self) -> Principals:
        from kops.gateways.kafka.principals import Principals

        return Principals(self.client)

    @cached_property
    def tokens(self) -> Tokens:
        """Delegation tokens."""
        from kops.gateways.kafka.tokens import Tokens

        return Tokens(self.client)

    @cached_property
    def transactions(self) -> Transactions:
        from kops.gateways.kafka.transactions import Transactions

        return Transactions(self.client)

    def produce(self, topic: str, records: Iterable[NewRecord]) -> int:
        from kops.gateways.kafka.producing_stream import produce

        return produce(self.client, topic, records)

    def heard_by_all(self) -> None:
        """Wait until each broker shows what one of them shows, as far as it can be known; see ``ClusterDetails.heard_by_all``."""
        with suppress(KopsError):  # it only spares what is read next from a broker that is behind
            self.details.heard_by_all()

    def down(self) -> Mapping[int, str]:
        """Return the brokers found not to answer, though the cluster's metadata has them, and why; looked for once an answer was late."""
        return self.client.presence.down()

    def replaced(self) -> Mapping[int, str]:
        """Return the brokers whose groups are moving to others just now, and why."""
        return self.client.presence.replaced()

    def cluster(self) -> Cluster:
        """Return the cluster's id, controller and brokers; cached.

        :raises Unreachable: when no broker answers
        """
        return self._cluster

    def hidden_topics(
        self,
        elsewhere: Iterable[int] = (),
        *,
        internal: bool = False,
        answers: Mapping[int, Sequence[LogDir] | KopsError] | None = None,
    ) -> tuple[list[str], KopsError | None]:
        """Return the topics in log directories that may not be described, and why these may not be all.

        Metadata and committed offsets leave such topics out without an error; log directories, which need DESCRIBE on the cluster, do not.

        :param elsewhere: brokers on which there may be others even if they are out of service
        :param internal: include internal topics, in which nobody commits
        :param answers: the log directories of each broker in service, where they have been asked for
        """
        if not self.acls.are_enforced():
            return [], None
        in_service = {broker.id for broker in self.cluster().brokers}
        found = answer_or_error(lambda: self.log_dirs.describe_or_errors(in_service)) if answers is None else answers
        if isinstance(found, KopsError):
            return [], found
        problems = [answer for answer in found.values() if isinstance(answer, KopsError)]
        problems += [BrokerDown(f"broker {broker} is not in service") for broker in sorted({*elsewhere} - in_service)]
        known = [one for answer in found.values() if not isinstance(answer, KopsError) for one in answer]
        there = {replica.partition.topic for one in known for replica in one.replicas}
        missing = {topic for topic in there.difference(self.topics.names()) if internal or not topic.startswith("__")}
        lacking = self.topics.problems(sorted(missing))
        hidden = [topic for topic, problem in lacking.items() if isinstance(problem, AuthorizationFailed)]
        problems += [problem for problem in lacking.values() if not isinstance(problem, (AuthorizationFailed, NotFound))]
        return hidden, problems[0] if problems else None

    @cached_property
    def _cluster(self) -> Cluster:
        return self.client.cluster()

"""What the checks of one ``kops diagnose`` share: each request is made once, by the first check that needs its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from kops.core.cluster.observed import ObservedCluster
from kops.core.connect.models import Connector, concerns
from kops.core.errors import KopsError, OperationFailed
from kops.core.groups.look import GroupLook
from kops.core.models import INTERNAL_TOPICS, TopicPartition
from kops.core.times import to_milliseconds
from kops.operations.cluster.observe import Gaps, observe
from kops.operations.diagnose.looks import look_at_groups, with_transactions
from kops.operations.diagnose.scope import Scope
from kops.operations.groups.open_transactions import OpenTransactions, find_open_transactions, stable_offsets
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.core.streams.capture import Capture


class NotAsked(KopsError):
    """Raised by a check that was not requested, or has nothing to ask: a reason, and not a failure."""


@dataclass(frozen=True)
class Options:
    """How to look.

    :param within: milliseconds; unread data that expires within them is reported
    :param sample_seconds: time between two looks at groups that are behind; 0 looks once
    :param history: milliseconds for which past commits are read; 0 reads none
    :param capture: path of a captured program
    """

    within: int
    sample_seconds: float
    history: int = 0
    capture: str = ""


@dataclass
class Incident:
    """What is to be examined, and what is known of it so far.

    :param every_connector: of all workers; None if there is no Connect, or it does not answer
    :param program: of ``Options.capture``
    """

    services: Services
    scope: Scope
    options: Options
    gaps: Gaps = field(default_factory=Gaps)
    every_connector: tuple[Connector, ...] | None = None
    program: Capture | None = None

    @cached_property
    def cluster(self) -> ObservedCluster:
        """Brokers, controllers, disks, and the topics of the scope."""
        return observe(self.services, self.gaps, None if self.scope.whole else self._topics)

    @cached_property
    def topic_names(self) -> frozenset[str]:
        """All topics of the cluster.

        :raises KopsError: when they cannot be listed
        """
        if self.scope.whole:
            return frozenset(topic.name for topic in self.cluster.topics)
        return frozenset(self.services.kafka.topics.names())

    @cached_property
    def transactions(self) -> OpenTransactions:
        """The open transactions that hold back a last stable offset, of partitions where it is below the high watermark."""
        partitions = self.cluster.partitions()
        places = [place for place, partition in partitions if partition.leader is not None and place.topic not in INTERNAL_TOPICS]
        stable = stable_offsets(self.services, places)
        held, problem = find_open_transactions(self.services, stable, self.services.kafka.offsets.bounds_or_errors(places))
        if problem is not None:
            self.gaps.note("transactions", problem)
        else:
            for place, reason in held.unknown.items():
                self.gaps.note(f"transactions of {place}", reason)
        return held

    @cached_property
    def groups(self) -> Mapping[str, GroupLook]:
        """The groups of the scope that commit offsets, by name."""
        options = self.options
        since = to_milliseconds(self.services.now()) - options.history if options.history else None
        looks = look_at_groups(
            self.services,
            self.scope,
            self.gaps,
            self.cluster.settings,
            within=options.within,
            sample_seconds=options.sample_seconds,
            since=since,
        )
        return {look.group.group_id: look for look in with_transactions(self.services, looks, self.transactions, self.gaps)}

    @cached_property
    def connectors(self) -> Mapping[str, Connector]:
        """The connectors of the scope, by name."""
        scope = self.scope
        some = [
            one
            for one in self.every_connector or ()
            if scope.whole or one.name in scope.connectors or concerns(one, {*scope.groups, *scope.share_groups}, scope.topics)
        ]
        return {one.name: one for one in some}

    def require_connect(self) -> None:
        """Make sure that connectors are known.

        :raises NotAsked: when no address of Connect is
        :raises KopsError: when Connect does not answer; the reason is among the gaps
        """
        if not self.services.connection.connect_urls:
            raise NotAsked("no address of Connect is known; connect_urls of the context or KOPS_CONNECT_URLS names it")
        if self.every_connector is None:
            raise self.gaps.errors["connect"]

    @property
    def now(self) -> int:
        return to_milliseconds(self.services.now())

    @cached_property
    def places(self) -> Mapping[str, tuple[TopicPartition, ...]]:
        """The partitions with a leader of each topic that was observed, without Kafka's internal topics."""
        found: dict[str, list[TopicPartition]] = {}
        for place, partition in self.cluster.partitions():
            if partition.leader is not None and place.topic not in INTERNAL_TOPICS:
                found.setdefault(place.topic, []).append(place)
        return {topic: tuple(places) for topic, places in found.items()}

    @staticmethod
    def too_many(number: int, most: int) -> KopsError:
        """Return the reason for not examining more partitions than can be read in a second or two."""
        return OperationFailed(f"{number:,} partitions are too many, the most is {most:,}: name groups or topics")

    @cached_property
    def _topics(self) -> list[str]:
        """The topics to examine for a scope that names something.

        These are the topics that it names, those that its groups have commits for, and Kafka's internal ones, without which neither groups
        nor transactions work.
        """
        committed = self.services.kafka.groups.committed_or_errors(self.scope.groups)
        used = {
            partition.topic
            for group_id, found in committed.items()
            if not isinstance(found, KopsError)
            for partition in found
            if self.scope.includes(group_id, partition)
        }
        return sorted({*used, *self.scope.topics, *INTERNAL_TOPICS})

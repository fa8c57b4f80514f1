"""A group as it was seen, twice where there was reason to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kops.core.groups.history import NO_HISTORY, GroupHistory
from kops.core.groups.lag import Headroom, OpenTransaction, TimeLag
from kops.core.models import Bounds, Committed, Group, Setting, TopicPartition

BEHIND_MS = 60_000
"""A record that waits for less is how batches, commits and fetches work."""
REBALANCING = ("PREPARING_REBALANCE", "COMPLETING_REBALANCE", "ASSIGNING", "RECONCILING")
NOT_KNOWN = TimeLag(None)
LEAST_NEW = 100
"""With fewer new records chance makes a partition hot."""
CRASHES = 3
"""So many members must have left and come back, while a partition stood still, to speak of a crash loop."""
CRASHES_WITHIN_MS = 1_800_000
"""Kubernetes waits for up to five minutes before each restart."""


@dataclass(frozen=True)
class PartitionLook:
    """A partition of a group.

    :param bounds: None when the topic is gone
    :param owner: client id of the member that reads it
    :param waiting: how long its first unread record has been waiting
    :param moved: offsets that the group committed between the looks; None when it was looked at once only
    :param arrived: offsets that were written between the looks
    :param gone: whether its topic no longer exists
    :param held: the transaction that is open there and begins first
    :param in_doubt: whether a transaction may be open there, of which nothing is known
    :param blocked: whether readers of committed data find nothing between the committed offset and the first open transaction
    """

    partition: TopicPartition
    committed: Committed | None
    bounds: Bounds | None
    owner: str | None = None
    waiting: TimeLag = NOT_KNOWN
    moved: int | None = None
    arrived: int = 0
    expiring: Headroom | None = None
    gone: bool = False
    held: OpenTransaction | None = None
    in_doubt: bool = False
    blocked: bool = False

    @property
    def next_offset(self) -> int | None:
        """Return where the group reads on; None without a commit or bounds."""
        return None if self.committed is None or self.bounds is None else max(self.committed.offset, self.bounds.log_start_offset)

    @property
    def unread(self) -> int:
        """Return the offsets that are left to read; 0 when that is not known."""
        place = self.next_offset
        return 0 if place is None or self.bounds is None else max(0, self.bounds.log_end_offset - place)

    @property
    def behind(self) -> bool:
        """Tell whether a record has been waiting for longer than reading takes."""
        return self.unread > 0 and (self.waiting.milliseconds or 0) >= BEHIND_MS

    @property
    def lost(self) -> int:
        """Return the offsets between the committed one and the log start: deleted before they were read."""
        return 0 if self.committed is None or self.bounds is None else max(0, self.bounds.log_start_offset - self.committed.offset)

    @property
    def past_end(self) -> int:
        """Return by how much the committed offset lies past the end of the log."""
        return 0 if self.committed is None or self.bounds is None else max(0, self.committed.offset - self.bounds.log_end_offset)


@dataclass(frozen=True)
class Skew:
    """A partition that gets most of what is written to its topic.

    :param share: of the new records, 0 to 1
    :param records: that are new in all partitions
    :param milliseconds: how long new is
    """

    partition: TopicPartition
    share: float
    records: int
    milliseconds: int


@dataclass(frozen=True)
class GroupLook:
    """A group as it was seen, twice where there was reason to.

    :param later_state: at the second look; None when there was none
    :param seconds: between the looks
    :param streams: whether it is a Kafka Streams application
    :param records: the record that the group reads next, for people and as JSON, by partition
    :param settings: of the topics, by topic and name
    :param history: its commits and members of the last hours, as far as they are known
    :param topic_ids: of topics, where they matter
    :param skews: partitions of its topics that get most of the new records
    :param at: when it was looked at, in milliseconds since the epoch
    """

    group: Group
    partitions: tuple[PartitionLook, ...]
    later_state: str | None = None
    seconds: float = 0.0
    streams: bool = False
    records: Mapping[TopicPartition, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)
    history: GroupHistory = NO_HISTORY
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    skews: tuple[Skew, ...] = ()
    at: int = 0

    @property
    def crashing(self) -> tuple[PartitionLook, ...]:
        """Return the partitions that stood still while members left and came back again and again, the longest waiting first."""
        recent = self.at - CRASHES_WITHIN_MS
        if self.history.departures(recent) < CRASHES:
            return ()
        some = []
        for one in self.partitions:
            if one.behind and not one.blocked and not one.moved:
                since = max(recent, self.history.standing_since(one.partition) or recent)
                if min(self.history.departures(since), self.history.arrivals(since)) >= CRASHES:
                    some.append(one)
        return _longest_first(some)

    @property
    def abandoned(self) -> bool:
        """Tell whether records were deleted before the group read them: it is no longer used."""
        return self.group.state == "EMPTY" and any(look.lost for look in self.partitions)

    @property
    def may_change(self) -> bool:
        """Tell whether a second look may tell more: somebody reads and is behind, or it rebalances."""
        return self.group.state in REBALANCING or (self.group.state != "EMPTY" and any(one.behind for one in self.partitions))

    def reads(self, look: PartitionLook) -> bool:
        """Tell whether somebody should be reading a partition: a member has it, or members are there and not known."""
        return self.group.state != "EMPTY" and (look.owner is not None or not self.group.members)

    @property
    def waiting(self) -> tuple[PartitionLook, ...]:
        """Return the partitions where an open transaction leaves nothing to read, the longest waiting first."""
        return _longest_first(look for look in self.partitions if look.behind and look.blocked and not look.moved and self.reads(look))

    @property
    def stuck(self) -> tuple[PartitionLook, ...]:
        """Return the partitions that somebody should be reading and that did not move, the longest waiting first."""
        return _longest_first(look for look in self.partitions if look.behind and look.moved == 0 and not look.blocked and self.reads(look))


def skew_of(new: Mapping[TopicPartition, int], milliseconds: int) -> Skew | None:
    """Return the partition of a topic that gets most of its new records; None when they are spread, or too few to tell.

    :param new: records by partition
    """
    total = sum(new.values())
    hot = max(new, key=lambda one: new[one], default=None)
    if hot is None or len(new) < 2 or total < LEAST_NEW:  # noqa: PLR2004 - one partition has everything
        return None
    share = new[hot] / total
    return Skew(hot, share, total, milliseconds) if share >= max(0.5, min(0.9, 3 / len(new))) else None


def _longest_first(some: Iterable[PartitionLook]) -> tuple[PartitionLook, ...]:
    return tuple(sorted(some, key=lambda look: -(look.waiting.milliseconds or 0)))

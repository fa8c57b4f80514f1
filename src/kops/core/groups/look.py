"""A group as observed, twice where there was reason to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kops.core.groups.history import NO_HISTORY, GroupHistory
from kops.core.groups.lag import Headroom, OpenTransaction, TimeLag
from kops.core.models import Bounds, CommittedOffset, Group, Setting, TopicPartition

BEHIND_MS = 60_000
"""A shorter wait is normal: it comes from batches, commits and fetches."""
REBALANCING = ("PREPARING_REBALANCE", "COMPLETING_REBALANCE", "ASSIGNING", "RECONCILING")
NOT_KNOWN = TimeLag(None)
LEAST_NEW = 100
"""With fewer new records, a partition may look hot by chance."""
CRASHES = 3
"""At least this many members must have left and come back while a partition stood still for this to be a crash loop."""
CRASHES_WITHIN_MS = 1_800_000
"""Kubernetes waits for up to five minutes before each restart."""
RARELY_MS = 900_000
"""Longer pauses between commits mean that there was nothing to commit: checkpoints, the rarest commits, are minutes apart."""
PAUSES = 3
"""A group that has not committed for this many of its own longest pauses between commits does not just commit rarely."""


@dataclass(frozen=True)
class EpochEnd:
    """What the leader of a partition says about the leader epoch of a commit (``OffsetsForLeaderEpoch``).

    :param end_offset: where that epoch ends in the log as it is now; -1 if the leader does not know it
    :param current_epoch: of the partition now; None if unknown
    :param leader: broker id
    """

    end_offset: int
    current_epoch: int | None = None
    leader: int | None = None

    @property
    def unknown(self) -> bool:
        """Whether the epoch is newer than any of the log: within one topic, that cannot be."""
        return self.end_offset < 0


@dataclass(frozen=True)
class PartitionLook:
    """A partition of a group.

    :param bounds: None if the topic is gone
    :param owner: client id of the member that reads it
    :param waiting: how long its first unread record has been waiting
    :param moved: offsets that the group committed between the looks; None if there was only one look
    :param arrived: offsets written between the looks
    :param gone: whether its topic no longer exists
    :param held: the open transaction there that begins first
    :param in_doubt: whether a transaction of which nothing is known may be open there
    :param blocked: whether ``read_committed`` consumers find nothing between the committed offset and the first open transaction
    :param epoch_end: where the leader epoch of the commit ends now, if that lies past the end of the log
    """

    partition: TopicPartition
    committed: CommittedOffset | None
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
    epoch_end: EpochEnd | None = None

    @property
    def next_offset(self) -> int | None:
        """Where the group resumes reading; None without a commit or bounds."""
        return None if self.committed is None or self.bounds is None else max(self.committed.offset, self.bounds.log_start_offset)

    @property
    def unread(self) -> int:
        """Number of offsets left to read; 0 if unknown."""
        place = self.next_offset
        return 0 if place is None or self.bounds is None else max(0, self.bounds.log_end_offset - place)

    @property
    def unknown(self) -> bool:
        """Whether there are records, and no commit that says how many of them were read."""
        return self.committed is None and self.bounds is not None and self.bounds.offsets > 0

    @property
    def behind(self) -> bool:
        """Whether a record has been waiting for longer than reading normally takes."""
        return self.unread > 0 and (self.waiting.milliseconds or 0) >= BEHIND_MS

    @property
    def lost(self) -> int:
        """Number of offsets between the committed one and the log start: deleted before they were read."""
        return 0 if self.committed is None or self.bounds is None else max(0, self.bounds.log_start_offset - self.committed.offset)

    @property
    def past_end(self) -> int:
        return 0 if self.committed is None or self.bounds is None else max(0, self.committed.offset - self.bounds.log_end_offset)


@dataclass(frozen=True)
class Skew:
    """A partition that gets most of what is written to its topic.

    :param share: of the new records, 0 to 1
    :param milliseconds: length of the period in which records count as new
    """

    partition: TopicPartition
    share: float
    milliseconds: int


@dataclass(frozen=True)
class GroupLook:
    """A group as observed, twice where there was reason to.

    :param later_state: at the second look; None if there was none
    :param seconds: between the looks
    :param streams: whether it is a Kafka Streams application
    :param records: the record that the group reads next, as text and as JSON, by partition
    :param settings: of the topics, by topic and name
    :param history: its commits and members of the last hours, as far as known
    :param known_since: milliseconds since the epoch, from which on the commits are known; None if they were not read
    :param topic_ids: of topics, where they matter
    :param skews: partitions of its topics that get most of the new records
    :param at: time of the look, in milliseconds since the epoch
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
    known_since: int | None = None

    @property
    def crashing(self) -> tuple[PartitionLook, ...]:
        """Partitions that stood still while members kept leaving and coming back, the longest waiting first.

        Where the next record has been waiting for less than reading normally takes, more members must have left since it came than there
        ever were at once: each may leave once because a new release is rolled out.
        """
        recent = self.at - CRASHES_WITHIN_MS
        if self.history.departures(recent) < CRASHES:
            return ()
        some = []
        for one in self.partitions:
            if one.unread and not one.blocked and not one.moved:
                since = max(recent, self.history.standing_since(one.partition) or recent)
                least = CRASHES
                if not one.behind:
                    since = max(since, one.waiting.timestamp or self.at)
                    least = max(CRASHES, self.history.most_present(since) + 1)
                if min(self.history.departures(since), self.history.arrivals(since)) >= least:
                    some.append(one)
        return _longest_first(some)

    def quiet(self, look: PartitionLook) -> int | None:
        """Return for how many milliseconds a partition has got no commit that moved it forward, at least; None if that is not known."""
        if self.known_since is None:
            return None
        pace = self.history.pace(look.partition)
        return max(0, self.at - (self.known_since if pace is None else pace.last))

    def commits_rarely(self, look: PartitionLook) -> bool:
        """Whether it fits how this group commits that it committed nothing between the looks."""
        quiet = self.quiet(look)
        if quiet is None:
            return False
        pauses = [pace.longest_pause for one in self.partitions if (pace := self.history.pace(one.partition)) and pace.longest_pause]
        return quiet < max(BEHIND_MS, min(RARELY_MS, PAUSES * max(pauses, default=0)))

    @property
    def abandoned(self) -> bool:
        """Whether records were deleted before the group, now without members, read them: it is no longer used."""
        return self.group.state == "EMPTY" and any(look.lost for look in self.partitions)

    @property
    def may_change(self) -> bool:
        """Whether a second look may show more: there are members and the group is behind, or it rebalances."""
        return self.group.state in REBALANCING or (self.group.state != "EMPTY" and any(one.behind for one in self.partitions))

    def reads(self, look: PartitionLook) -> bool:
        """Whether a partition should have a consumer: a member owns it, or there are members, but they are not known."""
        return self.group.state != "EMPTY" and (look.owner is not None or not self.group.members)

    @property
    def waiting(self) -> tuple[PartitionLook, ...]:
        """Partitions where an open transaction leaves nothing to read, the longest waiting first."""
        return _longest_first(look for look in self.partitions if look.behind and look.blocked and not look.moved and self.reads(look))

    @property
    def stuck(self) -> tuple[PartitionLook, ...]:
        """Partitions that should have a consumer and did not move, although the group commits more often; the longest waiting first."""
        some = (look for look in self.partitions if look.behind and look.moved == 0 and not look.blocked and self.reads(look))
        return _longest_first(look for look in some if not self.commits_rarely(look))


def skew_of(new: Mapping[TopicPartition, int], milliseconds: int) -> Skew | None:
    """Return the partition of a topic that gets most of its new records; None if they are spread, or too few to judge.

    :param new: records by partition
    """
    total = sum(new.values())
    hot = max(new, key=lambda one: new[one], default=None)
    if hot is None or len(new) < 2 or total < LEAST_NEW:  # noqa: PLR2004 - one partition has everything
        return None
    share = new[hot] / total
    return Skew(hot, share, milliseconds) if share >= max(0.5, min(0.9, 3 / len(new))) else None


def _longest_first(some: Iterable[PartitionLook]) -> tuple[PartitionLook, ...]:
    return tuple(sorted(some, key=lambda look: -(look.waiting.milliseconds or 0)))

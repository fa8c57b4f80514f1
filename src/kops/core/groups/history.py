"""A group's commits and members over time, as far as ``__consumer_offsets`` still has them. Pure.

Times are milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from kops.core.models import CommittedOffset, TopicPartition

PACED_BY = 12
"""How many commits of a partition say how often its group commits."""


@dataclass(frozen=True, slots=True)
class CommitEvent:
    """A commit of one partition, or its deletion.

    :param time: of the commit; for a deletion, of its record
    :param committed: None if the commit was deleted or expired
    :param log_offset: of the record in its partition of ``__consumer_offsets``
    :param topic_id: of the topic at that time; None if the brokers did not record it
    """

    partition: TopicPartition
    time: int
    committed: CommittedOffset | None
    log_offset: int
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class MembersEvent:
    """A change of a group's members.

    :param present: number of members afterwards
    :param session_ms: after which a member that no longer answers is removed, the longest of those present; None if unknown
    """

    time: int
    joined: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()
    present: int = 0
    session_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Jump:
    """A commit that did not come from reading.

    :param before: the committed offset before it
    :param after: the committed offset after it
    :param rest: how many of the offsets in between were not read since: skipped, or still to be read again
    """

    partition: TopicPartition
    time: int
    before: int
    after: int
    rest: int

    @property
    def onward(self) -> bool:
        return self.after > self.before


@dataclass(frozen=True, slots=True)
class Deletion:
    """A commit that was deleted, with or without its topic.

    :param offset: the offset that was committed
    :param again: where the group restarted; None if it has not committed since
    """

    partition: TopicPartition
    time: int
    offset: int
    topic_id: str | None = None
    again: int | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """How a group commits in one partition, by its last commits that came from reading.

    :param last: time of the last commit that moved forward
    :param longest_pause: between two of them, in milliseconds; None if only one is known
    :param per_second: offsets committed in a second; None if only one commit is known
    """

    last: int
    longest_pause: int | None = None
    per_second: float | None = None


@dataclass(frozen=True)
class GroupHistory:
    """A group's history.

    :param commits: by partition, in log order
    :param members: in log order
    """

    commits: Mapping[TopicPartition, Sequence[CommitEvent]] = field(default_factory=dict)
    members: Sequence[MembersEvent] = ()

    def standing_since(self, partition: TopicPartition) -> int | None:
        """Return since when a partition has stood at its offset; None if that began before the known history."""
        events = self.commits.get(partition, ())
        since = None
        for event in reversed(events):
            if event.committed is None or events[-1].committed is None or event.committed.offset != events[-1].committed.offset:
                return since
            since = event.time
        return since

    def pace(self, partition: TopicPartition) -> Pace | None:
        """Return the pace of a group's commits in a partition; None if no known commit moved forward."""
        advances: list[tuple[int, int]] = []
        before: int | None = None
        for event in self.commits.get(partition, ()):
            if event.committed is None or (before is not None and event.committed.offset < before):
                advances = []
            elif before is None or event.committed.offset > before:
                advances.append((event.time, event.committed.offset))
            before = event.committed.offset if event.committed else None
        if not advances:
            return None
        some = advances[-PACED_BY:]
        last, offset = some[-1]
        if len(some) == 1 or last <= some[0][0]:
            return Pace(last)
        pauses = [later[0] - earlier[0] for earlier, later in pairwise(some)]
        return Pace(last, max(pauses), (offset - some[0][1]) * 1000 / (last - some[0][0]))

    def most_present(self, since: int) -> int:
        """Return the largest number of members."""
        before = next((event.present for event in reversed(self.members) if event.time < since), 0)
        return max((event.present for event in self.members if event.time >= since), default=before)

    def pauses(self, since: int, now: int) -> list[tuple[int, int]]:
        """Return when the group had no members, and for how long, in milliseconds."""
        events = [event for event in self.members if event.time >= since]
        ends = [*(event.time for event in events[1:]), now]
        return [(event.time, end - event.time) for event, end in zip(events, ends, strict=bool(events)) if not event.present]

    @property
    def session_ms(self) -> int | None:
        """The session timeout of the members, the longest that is known."""
        return max((event.session_ms for event in self.members if event.session_ms is not None), default=None)

    def departures(self, since: int) -> int:
        return sum(len(event.left) for event in self.members if event.time >= since)

    def arrivals(self, since: int) -> int:
        return sum(len(event.joined) for event in self.members if event.time >= since)

    @property
    def last_left(self) -> int | None:
        return next((event.time for event in reversed(self.members) if event.left), None)


NO_HISTORY = GroupHistory()


def jumps(history: GroupHistory) -> list[Jump]:
    """Return the commits that tools made, except those that were undone since and those that undid others."""
    found = moves_of_tools(history)
    forward = [jump for jump in found if jump.onward]

    def takes_back(jump: Jump) -> bool:
        earlier = [one for one in forward if one.partition == jump.partition and one.time <= jump.time]
        return not jump.onward and any(one.before <= jump.after < one.after for one in earlier)

    return [jump for jump in found if jump.rest > 0 and not takes_back(jump)]


def moves_of_tools(history: GroupHistory) -> list[Jump]:
    """Return the commits that tools made.

    Such a commit has no leader epoch where those of the group's consumers have one, as consumers of recent years do, or came while the
    group had no members.
    """
    epochs = any(event.committed and event.committed.leader_epoch is not None for some in history.commits.values() for event in some)
    found = []
    for partition, events in history.commits.items():
        stood: CommittedOffset | None = None
        for at, event in enumerate(events):
            now = event.committed
            if now and stood and now.offset != stood.offset and now.leader_epoch is None and (epochs or _was_empty(history, event.time)):
                rest = max(0, _rest(stood.offset, now.offset, events[at + 1 :]))
                found.append(Jump(partition, event.time, stood.offset, now.offset, rest))
            stood = now
    return sorted(found, key=lambda jump: (jump.time, jump.partition))


def _was_empty(history: GroupHistory, time: int) -> bool:
    """Whether a group had members earlier but none at ``time``."""
    before = [event for event in history.members if event.time <= time]
    return bool(before) and before[-1].present == 0 and any(event.joined or event.left for event in before)


def _rest(before: int, after: int, later: Sequence[CommitEvent]) -> int:
    """Return how many of the offsets in between are still skipped, or still to be read again."""
    offsets = [event.committed.offset for event in later if event.committed]
    if any(event.committed is None for event in later):
        return 0  # it has restarted since: that is reported as a deletion
    if after > before:
        return min([after, *offsets]) - before
    return before - max([after, *offsets])


def deletions(history: GroupHistory) -> Iterator[Deletion]:
    """Yield the last deletion of a commit for each partition that had one."""
    for partition, events in history.commits.items():
        at = next((index for index in range(len(events) - 1, 0, -1) if events[index].committed is None), None)
        before = events[at - 1] if at is not None else None
        if at is None or before is None or before.committed is None:
            continue
        again = next((event.committed.offset for event in events[at + 1 :] if event.committed), None)
        yield Deletion(partition, events[at].time, before.committed.offset, before.topic_id, again)

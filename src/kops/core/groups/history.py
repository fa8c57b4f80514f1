"""What became of a group: its commits and its members over time, as far as ``__consumer_offsets`` still has them. Pure.

Times are milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kops.core.models import Committed, TopicPartition


@dataclass(frozen=True, slots=True)
class CommitEvent:
    """A commit of one partition, or its end.

    :param time: of the commit, and for a deletion of its record
    :param committed: None when the commit was deleted, or expired
    :param log_offset: of the record in its partition of ``__consumer_offsets``
    :param topic_id: of the topic then; None where the brokers did not note it
    """

    group: str
    partition: TopicPartition
    time: int
    committed: Committed | None
    log_offset: int
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class MembersEvent:
    """A change of a group's members.

    :param present: how many were there afterwards
    """

    time: int
    joined: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()
    present: int = 0


@dataclass(frozen=True, slots=True)
class Jump:
    """A commit that did not come of reading.

    :param before: where the partition stood
    :param after: where it was put
    :param rest: of the offsets in between those that were not read since: passed over, or to be read once more
    """

    partition: TopicPartition
    time: int
    before: int
    after: int
    rest: int

    @property
    def onward(self) -> bool:
        """Tell whether records were passed over."""
        return self.after > self.before


@dataclass(frozen=True, slots=True)
class Deletion:
    """A commit that was deleted, with its topic or without.

    :param offset: where the partition stood
    :param again: where the group began again; None when it has no commit since
    """

    partition: TopicPartition
    time: int
    offset: int
    topic_id: str | None = None
    again: int | None = None


@dataclass(frozen=True)
class GroupHistory:
    """A group's past.

    :param commits: of each partition, in the order of the log
    :param members: in the order of the log
    :param since: from when on everything is known; None: as long as the log goes back
    """

    commits: Mapping[TopicPartition, Sequence[CommitEvent]] = field(default_factory=dict)
    members: Sequence[MembersEvent] = ()
    since: int | None = None

    def standing_since(self, partition: TopicPartition) -> int | None:
        """Return since when a partition stands at its offset; None when that was before what is known."""
        events = self.commits.get(partition, ())
        since = None
        for event in reversed(events):
            if event.committed is None or events[-1].committed is None or event.committed.offset != events[-1].committed.offset:
                return since
            since = event.time
        return since

    def departures(self, since: int | None) -> int:
        """Return how many members left, after a time where one is given."""
        return sum(len(event.left) for event in self.members if since is None or event.time >= since)

    def arrivals(self, since: int | None) -> int:
        """Return how many members joined, after a time where one is given."""
        return sum(len(event.joined) for event in self.members if since is None or event.time >= since)

    @property
    def last_left(self) -> int | None:
        """Return when a member left for the last time; None when none did."""
        return next((event.time for event in reversed(self.members) if event.left), None)

    @property
    def knows_epochs(self) -> bool:
        """Tell whether the group's consumers commit with a leader epoch: those of the last years do, tools that move offsets do not."""
        return any(event.committed and event.committed.leader_epoch is not None for some in self.commits.values() for event in some)


NO_HISTORY = GroupHistory()


def jumps(history: GroupHistory) -> list[Jump]:
    """Return the commits that tools made, without those that were taken back since and those that took others back."""
    found = moves_of_tools(history)
    forward = [jump for jump in found if jump.onward]

    def takes_back(jump: Jump) -> bool:
        earlier = [one for one in forward if one.partition == jump.partition and one.time <= jump.time]
        return not jump.onward and any(one.before <= jump.after < one.after for one in earlier)

    return [jump for jump in found if jump.rest > 0 and not takes_back(jump)]


def moves_of_tools(history: GroupHistory) -> list[Jump]:
    """Return the commits that tools made.

    Such a commit has no leader epoch where those of the consumers have one, or came while the group had no members.
    """
    epochs = history.knows_epochs
    found = []
    for partition, events in history.commits.items():
        stood: Committed | None = None
        for at, event in enumerate(events):
            now = event.committed
            if now and stood and now.offset != stood.offset and now.leader_epoch is None and (epochs or _was_empty(history, event.time)):
                rest = max(0, _rest(stood.offset, now.offset, events[at + 1 :]))
                found.append(Jump(partition, event.time, stood.offset, now.offset, rest))
            stood = now
    return sorted(found, key=lambda jump: (jump.time, jump.partition))


def _was_empty(history: GroupHistory, time: int) -> bool:
    """Tell whether a group had members before, and none at a time."""
    before = [event for event in history.members if event.time <= time]
    return bool(before) and before[-1].present == 0 and any(event.joined or event.left for event in before)


def _rest(before: int, after: int, later: Sequence[CommitEvent]) -> int:
    """Return how many of the offsets in between are still passed over, or still to be read again."""
    offsets = [event.committed.offset for event in later if event.committed]
    if any(event.committed is None for event in later):
        return 0  # it began again since: that is reported as a deletion
    if after > before:
        return min([after, *offsets]) - before
    return before - max([after, *offsets])


def deletions(history: GroupHistory) -> Iterator[Deletion]:
    """Yield for each partition the last time that its commit was deleted, if it ever was."""
    for partition, events in history.commits.items():
        at = next((index for index in range(len(events) - 1, 0, -1) if events[index].committed is None), None)
        before = events[at - 1] if at is not None else None
        if at is None or before is None or before.committed is None:
            continue
        again = next((event.committed.offset for event in events[at + 1 :] if event.committed), None)
        yield Deletion(partition, events[at].time, before.committed.offset, before.topic_id, again)

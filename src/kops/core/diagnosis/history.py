"""What the history of a group explains: crash loops, commits that jumped, commits that were deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

from kops.core.diagnosis.parts import finding_about, longest_wait, topic_options, unread_text
from kops.core.durations import MILLISECONDS, duration_text
from kops.core.findings import Finding, Severity, command, counted, partitions_text
from kops.core.groups.history import Deletion, Jump, deletions, jumps
from kops.core.groups.lag import age_text
from kops.core.groups.look import CRASHES_WITHIN_MS, GroupLook, PartitionLook
from kops.core.models import Bounds
from kops.core.times import time_text

SEEN_EMPTY_MS = 1_000
"""A shorter moment without members is easily missed by ``--wait-empty``, which looks four times a second."""
SESSION_MS = 45_000
"""``session.timeout.ms`` of consumers, unless the group says another one."""
TOGETHER_MS = 60_000
"""Commits that a tool makes at once are at most this far apart."""
FEW = 10
"""Fewer skipped records than this are worth only a note: poison pills are stepped over like this."""
SHOWN_RECORDS = 3
E = TypeVar("E", Jump, Deletion)


def crash_loop(look: GroupLook, now: int) -> Finding:
    """Report members that join and leave while partitions do not move.

    :param now: milliseconds since the epoch
    """
    name, some, history = look.group.group_id, look.crashing, look.history
    first = some[0]
    recent = now - CRASHES_WITHIN_MS
    since = history.standing_since(first.partition)
    counted_from = max(recent, since or recent)
    times = f"members joined {history.arrivals(counted_from)} times and left {history.departures(counted_from)} times"
    stands = f"{first.partition} stands at offset {first.next_offset}"
    stands += f" for {age_text(max(0, now - since))}" if since is not None else ""
    others = f", as do {counted(len(some) - 1, 'other partition')}" if len(some) > 1 else ""
    left = history.last_left
    ago = "" if left is None else f", the last left {age_text(max(0, now - left))} ago"
    text = f"looks like a crash loop: {stands}{others}, while {times}{ago}: {unread_text(some)}"
    skips = len(some) == 1 and first.held is None and not first.in_doubt and not look.streams
    text += _how_to_wait(look, counted_from, now) if skips else ""
    shown = [one for one in some if one.partition in look.records][:SHOWN_RECORDS]
    text += "".join(f"; {one.partition} is at {look.records[one.partition][0]}" for one in shown)
    commands = [command("records", "peek", name, "--topic", str(first.partition))]
    if len(some) > 1:
        text += "; the log of the consumer shows which of them stops it"
    if skips:
        commands.append(command("offsets", "seek", name, f"{first.partition}=skip:1", *wait_empty(look, counted_from, now)))
    return finding_about(
        look,
        Severity.CRITICAL,
        "crash_loop",
        some,
        text,
        commands=commands,
        lag=sum(one.unread for one in some),
        time_lag_ms=longest_wait(some),
        joined=history.arrivals(counted_from),
        left=history.departures(counted_from),
        records=[look.records[one.partition][1] for one in some if one.partition in look.records],
    )


def wait_empty(look: GroupLook, since: int, now: int) -> tuple[str, str]:
    """Return the option that waits until a group has no members, long enough for members that died without leaving to be removed.

    :param since: milliseconds since the epoch; from then on the pauses between restarts count
    """
    session = look.history.session_ms or SESSION_MS
    moments = _moments(look, since, now)
    cycle = max((later - earlier for earlier, later in pairwise(moments)), default=0)
    return "--wait-empty", duration_text(_whole_minutes(max(2 * cycle, session + 15_000)))


def _how_to_wait(look: GroupLook, since: int, now: int) -> str:
    """Say that consumers must be stopped first, if the group is not without members for long enough between restarts."""
    if _moments(look, since, now):
        return ""
    if look.history.pauses(since, now):
        return "; it is without members for moments only: stop the consumer before a skip"
    session = age_text(look.history.session_ms or SESSION_MS)
    return f"; members that die without leaving count for {session} more, so it is never without members: stop the consumer before a skip"


def _moments(look: GroupLook, since: int, now: int) -> list[int]:
    """Return when the group was without members for long enough to be noticed."""
    return [time for time, length in look.history.pauses(since, now) if length >= SEEN_EMPTY_MS]


def _whole_minutes(milliseconds: int) -> int:
    return -(-milliseconds // MILLISECONDS["m"]) * MILLISECONDS["m"]


def history_findings(look: GroupLook) -> Iterator[Finding]:
    """Report the effects of commits that did not come from reading."""
    here = {one.partition: one for one in look.partitions if not one.gone}
    existing = [jump for jump in jumps(look.history) if jump.partition in here and _rest(jump, here[jump.partition]) > 0]
    for some in _together(existing):
        for onward in (True, False):
            if alike := [jump for jump in some if jump.onward == onward]:
                yield _jumped(look, alike, sum(_rest(jump, here[jump.partition]) for jump in alike))
    for deleted in _together(one for one in deletions(look.history) if one.partition in here):
        for recreated in (True, False):
            if same := [one for one in deleted if _recreated(look, one, here[one.partition]) == recreated]:
                yield from _deleted(look, same, [here[one.partition] for one in same], recreated=recreated)


def _together(events: Iterable[E]) -> Iterator[list[E]]:
    """Yield events in runs, each at most ``TOGETHER_MS`` after the one before."""
    run: list[E] = []
    for event in sorted(events, key=lambda one: (one.time, one.partition)):
        if run and event.time - run[-1].time > TOGETHER_MS:
            yield run
            run = []
        run.append(event)
    if run:
        yield run


def _rest(jump: Jump, look: PartitionLook) -> int:
    """Return how many of the offsets that a jump left out are still in the log."""
    if look.bounds is None:
        return 0
    if jump.onward:
        return min(jump.rest, jump.before + jump.rest - look.bounds.log_start_offset)
    return min(jump.rest, look.unread)


def _jumped(look: GroupLook, some: Sequence[Jump], rest: int) -> Finding:
    name, first = look.group.group_id, min(jump.time for jump in some)
    places = partitions_text(jump.partition for jump in some)
    by = sum(abs(jump.after - jump.before) for jump in some)
    forward = some[0].onward
    how, left = ("forward", "skipped unread") if forward else ("back", "still to be read again")
    text = f"commits of {places} were moved {how} by {counted(by, 'offset')} at {time_text(first)}, by a tool and not by reading"
    text += f": {counted(rest, 'offset')} {left}"
    back = command("offsets", "reset", name, *topic_options(jump.partition for jump in some), "--to-history", f"@{time_text(first - 1)}")
    back = f"{back} {' '.join(wait_empty(look, first, look.at))}"
    commands = (back, command("offsets", "history", name, "--jumps"))
    facts = {
        "partitions": [str(jump.partition) for jump in some],
        "moved": sum(jump.after - jump.before for jump in some),
        "at": time_text(first),
        "rest": rest,
    }
    severity = Severity.WARNING if forward and rest >= FEW else Severity.NOTE
    return Finding(severity, "commits_jumped", f"group {name}", text, commands if forward else commands[1:], facts)


def _recreated(look: GroupLook, deleted: Deletion, partition: PartitionLook) -> bool:
    """Whether the topic is another one now: it has another id, or ends before the offset that was committed."""
    now = look.topic_ids.get(deleted.partition.topic)
    if deleted.topic_id is not None and now is not None:
        return deleted.topic_id != now
    return partition.bounds is not None and partition.bounds.log_end_offset < deleted.offset


def _deleted(look: GroupLook, some: Sequence[Deletion], partitions: Sequence[PartitionLook], *, recreated: bool) -> Iterator[Finding]:
    missed = [(one, _missed(one, partition.bounds, recreated=recreated)) for one, partition in zip(some, partitions, strict=True)]
    missed = [(one, count) for one, count in missed if count > 0 or one.again is None]
    if not missed:
        return
    name, places = look.group.group_id, [one.partition for one, _ in missed]
    first, count = min(one.time for one, _ in missed), sum(count for _, count in missed)
    text = f"commits of {partitions_text(places)} were deleted at {time_text(first)}"
    if recreated:
        changed = any(one.topic_id is not None for one, _ in missed)
        text += f": the topic was recreated, {'its id changed' if changed else 'its log ends before what was committed'}"
    again = [one for one, _ in missed if one.again is not None]
    if again:
        text += f"; it restarted past {counted(count, 'record')} that it did not read"
    else:
        text += f"; no commit since, {counted(count, 'record')} unread, and auto.offset.reset decides where it reads on"
    target = ("--to-earliest",) if recreated else ("--to-history", f"@{time_text(first - 1)}")
    back = command("offsets", "reset", name, *topic_options(places), *target, *wait_empty(look, first, look.at))
    facts = {"partitions": [str(place) for place in places], "at": time_text(first), "recreated": recreated, "missed": count}
    used = look.group.state != "EMPTY" or bool(again) or recreated
    severity = Severity.WARNING if used and count else Severity.NOTE
    history = command("offsets", "history", name, *topic_options(places))
    yield Finding(severity, "commits_deleted", f"group {name}", text, (back, history), facts)


def _missed(deleted: Deletion, bounds: Bounds | None, *, recreated: bool) -> int:
    """Return how many offsets at most were or will be left out: those between the deleted commit and where reading restarted."""
    if bounds is None:
        return 0
    start = bounds.log_start_offset if recreated else max(deleted.offset, bounds.log_start_offset)
    return max(0, (bounds.log_end_offset if deleted.again is None else min(deleted.again, bounds.log_end_offset)) - start)

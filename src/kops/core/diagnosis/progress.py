"""Whether the partitions that a group reads move, or are held back by a transaction, stopped or slow. Pure.

A single partition that stops while others move may have a record that cannot be processed, unless its consumer is still busy with those
others: many clients work through what they have fetched from one partition before they turn to the next. Several that stop together point
to the consumer: advice to skip records would lose them for nothing. Where a transaction is or may be open, no record must be skipped:
read_committed consumers stop there by design.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kops.core.diagnosis.history import wait_empty
from kops.core.diagnosis.parts import finding_about, longest_wait, places_text, unread_text
from kops.core.diagnosis.transactions import end_text, is_hanging
from kops.core.findings import Finding, Severity, command, counted, names_text
from kops.core.groups.lag import age_text
from kops.core.groups.look import GroupLook, PartitionLook, Skew

STUCK_MS = 300_000
"""A partition that does not move while a record waits this long is stuck rather than slow."""
LONG_SAMPLE_MS = 60_000
"""Time between two looks in which consumers commit, also those that do so rarely."""
STREAMS_COMMIT_MS = 30_000
"""``commit.interval.ms`` of Kafka Streams without exactly-once: progress shows only after that time."""


def progress_findings(look: GroupLook, now: int) -> Iterator[Finding]:
    """Yield why partitions that have a consumer do not move, or do not move fast enough.

    :param now: milliseconds since the epoch
    """
    yield from _waiting(look, now)
    if len(look.stuck) == 1:
        yield _one_stopped(look, look.stuck[0], now)
    elif look.stuck:
        yield _several_stopped(look, look.stuck)
    yield from _slow(look)


def _waiting(look: GroupLook, now: int) -> Iterator[Finding]:
    some = look.waiting
    if not some:
        return
    first = next((one for one in some if one.held is not None), some[0])
    held = first.held
    names = list(dict.fromkeys(one.held.producer for one in some if one.held is not None))
    text = f"waits on {places_text(some)} for {'open transactions' if len(names) > 1 else 'an open transaction'}: {unread_text(some)}"
    hanging = held is not None and is_hanging(held, now)
    if held is None:
        text += "; which transaction is not known"
    else:
        age = held.age(now)
        since = "" if age is None else f", open for {age_text(age)}"
        text += f"; {names_text(names)}, at {first.partition} from offset {held.start_offset} on{since}; {end_text(held, now)}"
    yield finding_about(
        look,
        Severity.CRITICAL if hanging or longest_wait(some) >= STUCK_MS else Severity.WARNING,
        "waits_for_transaction",
        some,
        text,
        commands=[command("groups", "lag", look.group.group_id, "--isolation", "read_committed")],
        lag=sum(one.unread for one in some),
        time_lag_ms=longest_wait(some),
        transactional_ids=[one.held.transactional_id for one in some if one.held is not None],
        start_offset=None if held is None else held.start_offset,
    )


def _one_stopped(look: GroupLook, one: PartitionLook, now: int) -> Finding:
    name, place = look.group.group_id, str(one.partition)
    moving = [other for other in look.partitions if (other.moved or 0) > 0]
    mates = [other for other in moving if one.owner is not None and other.owner == one.owner]
    if mates:
        others = f"{places_text(mates)} of the same member {'does' if len(mates) == 1 else 'do'}"
        text = f"{place} does not move, while {others}: {unread_text([one])}"
    elif moving:
        text = f"{place} does not move, the others do: {unread_text([one])}"
    else:
        text = f"{place} does not move, and no other partition of the group shows whether its consumer works: {unread_text([one])}"
    busy = [other for other in mates if other.behind]
    text += _quiet_text(look, [one])
    text += f"; a consumer that is busy with {places_text(busy)} looks the same, so --sample 60s shows more" if busy else ""
    sure = not busy and _is_sure(look, [one])
    if one.partition in look.records:
        text += f"; it is at {look.records[one.partition][0]}"
    commands = [command("records", "peek", name, "--topic", place)]
    if one.held is not None:
        age = one.held.age(now)
        since = "" if age is None else f", for {age_text(age)}"
        text += f"; {one.held.producer} has a transaction open there from offset {one.held.start_offset} on{since}"
    elif one.in_doubt:
        text += "; whether a transaction is open there is not known"
    elif not sure:
        commands.append(command("diagnose", name, "--sample", "60s"))
    elif not look.streams:
        commands.append(command("offsets", "seek", name, f"{place}=skip:1", *wait_empty(look, now, now)))
    return _stopped(look, "stuck_partitions", [one], text, commands, is_sure=sure)


def _several_stopped(look: GroupLook, some: Sequence[PartitionLook]) -> Finding:
    name = look.group.group_id
    owners = sorted({one.owner for one in some if one.owner is not None})
    moving = any((one.moved or 0) > 0 for one in look.partitions)
    of_members = f" of {names_text(owners)}" if owners else ""
    text = f"commits nothing on {counted(len(some), 'partition')}{of_members}, {places_text(some)}{', while others move' if moving else ''}"
    text += f": {unread_text(some)}{_quiet_text(look, some)}; partitions that stop together point to the consumer, not to one record"
    if look.known_since is not None and not any(look.history.pace(one.partition) for one in some):
        text += "; a consumer that keeps its offsets elsewhere looks the same"
    sure = _is_sure(look, some)
    commands = [command("groups", "describe", name), command("groups", "lag", name)]
    commands += [] if sure else [command("diagnose", name, "--sample", "60s")]
    return _stopped(look, "not_progressing", some, text, commands, is_sure=sure)


def _stopped(look: GroupLook, check: str, some: Sequence[PartitionLook], text: str, commands: Sequence[str], *, is_sure: bool) -> Finding:
    severe = longest_wait(some) >= STUCK_MS and is_sure
    return finding_about(
        look,
        Severity.CRITICAL if severe else Severity.WARNING,
        check,
        some,
        text,
        commands=commands,
        lag=sum(one.unread for one in some),
        time_lag_ms=longest_wait(some),
        records=[{"client_id": one.owner, **look.records[one.partition][1]} for one in some if one.partition in look.records],
    )


def _is_sure(look: GroupLook, some: Sequence[PartitionLook]) -> bool:
    """Whether a group that commits more rarely than most would have been seen to commit by now."""
    quiet = [look.quiet(one) for one in some]
    known = [each for each in quiet if each is not None]
    return min(known) >= STUCK_MS if known else look.seconds * 1000 >= LONG_SAMPLE_MS


def _quiet_text(look: GroupLook, some: Sequence[PartitionLook]) -> str:
    """Say for how long nothing was committed, and what that leaves open."""
    known = [quiet for one in some if (quiet := look.quiet(one)) is not None]
    text = (
        f"; no commit for {age_text(min(known))}"
        if known
        else f"; no commit during the last {look.seconds:g} s, earlier ones are not known"
    )
    if _is_sure(look, some):
        return text
    if look.streams and not known:
        return f"{text}: Kafka Streams commits every {STREAMS_COMMIT_MS // 1000} s, so --sample 60s shows more"
    return f"{text}: consumers that commit rarely look the same"


def _slow(look: GroupLook) -> Iterator[Finding]:
    reported = {*look.waiting, *look.stuck}
    some = [one for one in look.partitions if one.behind and one not in reported and look.reads(one)]
    if not some:
        return
    facts: dict[str, Any] = {"lag": sum(one.unread for one in some), "time_lag_ms": longest_wait(some)}
    unread, places = unread_text(some), {one.partition for one in some}
    hot = [skew for skew in look.skews if skew.partition in places]
    if hot:
        facts["skew"] = {str(one.partition): round(one.share, 3) for one in hot}
    skewed = "".join(_hot_text(one) for one in hot)
    commands = [command("groups", "lag", look.group.group_id)]
    reads = _read_per_second(look, some)
    if reads is None or any(one.moved is None for one in some):
        yield finding_about(
            look, Severity.WARNING, "behind", some, f"is behind on {places_text(some)}: {unread}{skewed}", commands=commands, **facts
        )
        return
    comes = sum(one.arrived for one in some) / look.seconds
    facts |= {"read_per_second": round(reads, 1), "written_per_second": round(comes, 1)}
    if reads > comes:
        left = int(facts["lag"] / (reads - comes) * 1000)
        text = f"is catching up on {places_text(some)}: {unread}; done in about {age_text(left)}{skewed}"
        yield finding_about(look, Severity.NOTE, "catching_up", some, text, commands=commands, **facts, ready_in_ms=left)
    else:
        rates = f"{_rate(reads)} records a second are read, {_rate(comes)} are written"
        text = f"is falling behind on {places_text(some)}: {unread}; {rates}{skewed}"
        yield finding_about(look, Severity.WARNING, "falling_behind", some, text, commands=commands, **facts)


def _read_per_second(look: GroupLook, some: Sequence[PartitionLook]) -> float | None:
    """Return the offsets that a group commits per second: by its last commits if they are known, otherwise between the two looks."""
    paces = [look.history.pace(one.partition) for one in some]
    known = [pace.per_second for pace in paces if pace is not None and pace.per_second is not None]
    if known and len(known) == len(some) and all(look.commits_rarely(one) for one in some):
        return sum(known)
    return sum(one.moved or 0 for one in some) / look.seconds if look.seconds else None


def _rate(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"  # noqa: PLR2004 - digits that matter


def _hot_text(one: Skew) -> str:
    new = f"{one.share:.0%} of the new records of {one.partition.topic} (last {age_text(one.milliseconds)})"
    return f"; {one.partition} gets {new}: a hot key, or the partitioner"

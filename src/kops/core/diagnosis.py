"""What two looks at a group tell: is it alive, does it move, is something about to be lost. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kops.core.durations import MILLISECONDS
from kops.core.findings import Finding, Severity, command, counted, places_text, ranges_text
from kops.core.group_look import REBALANCING, GroupLook, PartitionLook
from kops.core.lag import Headroom, age_text
from kops.core.models import Setting
from kops.core.topic_settings import RETENTION

STUCK_MS = 300_000
"""A partition that does not move while a record waits for so long is stuck, not slow."""
STREAMS_COMMIT_MS = 30_000
"""``commit.interval.ms`` of Kafka Streams where it is not exactly-once: it does not show any move for so long."""
SHOWN_RECORDS = 3


def group_findings(look: GroupLook, now: int) -> Iterator[Finding]:
    """Yield what is wrong with a group.

    :param now: milliseconds since the epoch
    """
    if look.abandoned:
        yield _abandoned(look)
    else:
        yield from _expiring(look, now)
        yield from _unattended(look)
        yield from _rebalancing(look)
        yield from _stuck(look)
        yield from _slow(look)
        yield from _lost(look)
    yield from _past_end(look)
    yield from _gone(look)


def _finding(
    look: GroupLook,
    severity: Severity,
    check: str,
    some: Sequence[PartitionLook],
    text: str,
    *,
    commands: Sequence[str],
    **facts: Any,
) -> Finding:
    places = [str(one.partition) for one in some]
    return Finding(severity, check, f"group {look.group.group_id}", text, tuple(commands), {"partitions": places, **facts})


def _where(some: Sequence[PartitionLook]) -> str:
    return places_text(one.partition for one in some)


def _longest(some: Sequence[PartitionLook]) -> int:
    return max((one.waiting.milliseconds or 0 for one in some), default=0)


def _topic_options(some: Sequence[PartitionLook]) -> list[str]:
    """Return ``--topic orders:0,3`` for partitions, an option a topic."""
    numbers: dict[str, list[int]] = {}
    for one in sorted(some, key=lambda each: each.partition):
        numbers.setdefault(one.partition.topic, []).append(one.partition.partition)
    return [word for topic, those in numbers.items() for word in ("--topic", f"{topic}:{ranges_text(those)}")]


def _abandoned(look: GroupLook) -> Finding:
    name, lost = look.group.group_id, [one for one in look.partitions if one.lost]
    text = f"nobody reads, and records of {_where(lost)} were deleted unread: if it is no longer used, it can be deleted"
    commands = [command("groups", "lag", name), command("groups", "delete", name)]
    return _finding(look, Severity.NOTE, "abandoned", lost, text, commands=commands, lost=sum(one.lost for one in lost))


def _expiring(look: GroupLook, now: int) -> Iterator[Finding]:
    some = [(one, one.expiring) for one in look.partitions if one.expiring is not None]
    if not some:
        return
    risk = sum(found.at_risk for _, found in some)
    first_look, first = min(some, key=lambda each: each[1].expires)
    when = f"in {age_text(first.expires - now)}" if first.expires > now else "now"
    topic = first_look.partition.topic
    text = f"{counted(risk, 'unread record')} of {_where([one for one, _ in some])} will be deleted before being read, the first {when}"
    longer = command("topics", "alter", topic, "--config", _longer(first, look.settings.get(topic, {})))
    yield _finding(look, Severity.CRITICAL, "expiring_unread", [one for one, _ in some], text, commands=[longer], at_risk=risk, by=first.by)


def _longer(risk: Headroom, settings: Mapping[str, Setting]) -> str:
    """Return the setting that keeps records: twice the time, or no limit of size."""
    if risk.by == "size":
        return "retention.bytes=-1"
    found = settings.get(RETENTION)
    value = int(found.value) if found is not None and found.value and found.value.isdigit() else MILLISECONDS["d"]
    return f"{RETENTION}={2 * value}"


def _unattended(look: GroupLook) -> Iterator[Finding]:
    name = look.group.group_id
    closer = [command("groups", "lag", name), command("groups", "describe", name)]
    if look.group.state == "EMPTY":
        some = [one for one in look.partitions if one.behind]
        if some:
            text = f"no members: nobody reads {_where(some)}; {_unread(some)}"
            yield _finding(look, Severity.WARNING, "no_members", some, text, commands=closer, lag=sum(one.unread for one in some))
    elif look.group.members and look.group.state == "STABLE":
        some = [one for one in look.partitions if one.behind and not one.owner]
        if some:
            text = f"no member has {_where(some)}; {_unread(some)}"
            yield _finding(
                look, Severity.WARNING, "unassigned_partitions", some, text, commands=closer, lag=sum(one.unread for one in some)
            )


def _unread(some: Sequence[PartitionLook]) -> str:
    return f"{counted(sum(one.unread for one in some), 'record')} unread, the first has been waiting for {age_text(_longest(some))}"


def _rebalancing(look: GroupLook) -> Iterator[Finding]:
    if look.group.state not in REBALANCING:
        return
    lasting = look.later_state in REBALANCING
    how = f"and still after {look.seconds:g} s: nobody reads meanwhile" if lasting else "at the time of the look"
    text = f"is rebalancing ({look.group.state}) {how}"
    yield _finding(
        look,
        Severity.WARNING if lasting else Severity.NOTE,
        "rebalancing",
        (),
        text,
        commands=[command("groups", "describe", look.group.group_id)],
        state=look.group.state,
    )


def _stuck(look: GroupLook) -> Iterator[Finding]:
    some = look.stuck
    if not some:
        return
    name, first = look.group.group_id, some[0]
    too_short = look.streams and look.seconds * 1000 < STREAMS_COMMIT_MS
    severe = _longest(some) >= STUCK_MS and not too_short
    alone = any((one.moved or 0) > 0 for one in look.partitions)
    text = f"{_where(some)} {'does' if len(some) == 1 else 'do'} not move{', the others do' if alone else ''}: {_unread(some)}"
    if too_short:
        text += f"; Kafka Streams commits every {STREAMS_COMMIT_MS // 1000} s, so --sample 40s tells more"
    shown = [one for one in some if one.partition in look.records][:SHOWN_RECORDS]
    text += "".join(f"; {one.partition} is at {look.records[one.partition][0]}" for one in shown)
    place = str(first.partition)
    skip = command("offsets", "seek", name, f"{place}=skip:1", "--wait-empty", "60s")
    yield _finding(
        look,
        Severity.CRITICAL if severe else Severity.WARNING,
        "stuck_partitions",
        some,
        text,
        commands=[command("records", "peek", name, "--topic", place), *([skip] if not look.streams else [])],
        lag=sum(one.unread for one in some),
        time_lag_ms=_longest(some),
        records=[{"client_id": one.owner, **look.records[one.partition][1]} for one in some if one.partition in look.records],
    )


def _slow(look: GroupLook) -> Iterator[Finding]:
    if look.group.state == "EMPTY":
        return
    stuck = set(look.stuck)
    some = [one for one in look.partitions if one.behind and one not in stuck and (one.owner or not look.group.members)]
    if not some:
        return
    unread, facts = _unread(some), {"lag": sum(one.unread for one in some), "time_lag_ms": _longest(some)}
    closer = [command("groups", "lag", look.group.group_id)]
    if any(one.moved is None for one in some):
        yield _finding(look, Severity.WARNING, "behind", some, f"is behind on {_where(some)}: {unread}", commands=closer, **facts)
        return
    gained = sum((one.moved or 0) - one.arrived for one in some)
    if gained > 0:
        left = int(facts["lag"] / gained * look.seconds * 1000)
        text = f"is catching up on {_where(some)}: {unread}; done in about {age_text(left)}"
        yield _finding(look, Severity.NOTE, "catching_up", some, text, commands=closer, **facts, ready_in_ms=left)
    else:
        text = f"falls behind on {_where(some)}: {unread}, and not fewer than {look.seconds:g} s before"
        yield _finding(look, Severity.WARNING, "falling_behind", some, text, commands=closer, **facts)


def _lost(look: GroupLook) -> Iterator[Finding]:
    some = [one for one in look.partitions if one.lost]
    if some:
        lost = sum(one.lost for one in some)
        text = (
            f"{counted(lost, 'offset')} of {_where(some)} were deleted before they were read; auto.offset.reset decides where it reads on"
        )
        commands = [command("groups", "lag", look.group.group_id)]
        yield _finding(look, Severity.WARNING, "deleted_unread", some, text, commands=commands, lost=lost)


def _past_end(look: GroupLook) -> Iterator[Finding]:
    some = [one for one in look.partitions if one.past_end]
    if some:
        name = look.group.group_id
        text = f"has committed past the end of {_where(some)}: the topic was made anew, or lost records; new ones may be passed over"
        reset = command("offsets", "reset", name, *_topic_options(some), "--to-earliest")
        yield _finding(look, Severity.WARNING, "past_the_end", some, text, commands=[command("groups", "lag", name), reset])


def _gone(look: GroupLook) -> Iterator[Finding]:
    some = [one for one in look.partitions if one.gone]
    if some:
        text = f"has committed offsets of {_where(some)}, which do not exist any more"
        forget = command("offsets", "delete", look.group.group_id, *_topic_options(some))
        yield _finding(look, Severity.NOTE, "topic_gone", some, text, commands=[forget])

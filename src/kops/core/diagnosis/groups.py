"""What two looks at a group show: whether it is alive, whether it moves, whether something is about to be lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kops.core.diagnosis.history import crash_loop
from kops.core.diagnosis.parts import finding_about, places_text, topic_options, unread_text
from kops.core.diagnosis.progress import progress_findings
from kops.core.findings import Finding, Severity, command, counted
from kops.core.groups.lag import age_text
from kops.core.groups.look import REBALANCING, GroupLook, PartitionLook
from kops.core.topics.settings import RETENTION


def member_findings(look: GroupLook, now: int) -> Iterator[Finding]:
    """Yield whether the members of a group are there, and what they get done.

    :param now: milliseconds since the epoch
    """
    if look.crashing:
        yield crash_loop(look, now)
    elif look.abandoned:
        yield _abandoned(look)
    else:
        yield from _unattended(look, now)
        yield from _rebalancing(look)
        yield from progress_findings(look, now)
        yield from _lost(look)


def _abandoned(look: GroupLook) -> Finding:
    name, lost = look.group.group_id, [one for one in look.partitions if one.lost]
    text = f"has no members, and records of {places_text(lost)} were deleted unread: if it is no longer used, it can be deleted"
    commands = [command("groups", "lag", name), command("groups", "delete", name)]
    return finding_about(look, Severity.NOTE, "abandoned", lost, text, commands=commands, lost=sum(one.lost for one in lost))


def expiring_findings(look: GroupLook, now: int) -> Iterator[Finding]:
    """Yield the unread records that retention will or may delete, unless a partition is read in time at the pace that was seen."""
    some = [one for one in look.partitions if one.expiring is not None and not _read_in_time(look, one, now)]
    for certain in (True, False):
        alike = [one for one in some if one.expiring is not None and one.expiring.certain == certain]
        if alike and not look.abandoned:
            yield _expiring(look, alike, now, certain=certain)


def _expiring(look: GroupLook, some: Sequence[PartitionLook], now: int, *, certain: bool) -> Finding:
    risks = [(one, one.expiring) for one in some if one.expiring is not None]
    count = sum(found.at_risk for _, found in risks)
    first = min((found for _, found in risks), key=lambda found: found.expires)
    when = f"in {age_text(first.expires - now)}" if first.expires > now else "at the brokers' next check"
    records = f"{counted(count, 'unread record')} of {places_text(some)}"
    if certain:
        text = f"{records} will be deleted before being read, the first {when}, unless they are read by then"
    else:
        text = f"up to {records} may be deleted before being read, the first {when}: whole segments go, whose borders brokers do not report"
    keeps: dict[str, tuple[str, int]] = {}
    for one, found in risks:
        name = RETENTION if found.by == "age" else "retention.bytes"
        keeps[one.partition.topic] = (name, max(found.keeps, keeps.get(one.partition.topic, ("", -1))[1]))
    commands = [command("topics", "alter", topic, "--config", f"{name}={value}") for topic, (name, value) in list(keeps.items())[:3]]
    severity = Severity.CRITICAL if certain else Severity.WARNING
    return finding_about(look, severity, "expiring_unread", some, text, commands=commands, at_risk=count, by=first.by, certain=certain)


def _read_in_time(look: GroupLook, one: PartitionLook, now: int) -> bool:
    """Whether a group gets past what will expire in half of the time that is left, at its pace between the looks."""
    if one.expiring is None or not one.moved or one.moved < 0 or not look.seconds:
        return False
    return one.expiring.at_risk / (one.moved / look.seconds) * 1000 < (one.expiring.expires - now) / 2


def _unattended(look: GroupLook, now: int) -> Iterator[Finding]:
    name = look.group.group_id
    commands = [command("groups", "lag", name), command("groups", "describe", name)]
    if look.group.state == "EMPTY":
        some = [one for one in look.partitions if one.behind]
        if some:
            left = look.history.last_left
            since = "" if left is None else f", the last left {age_text(max(0, now - left))} ago"
            text = f"no members{since}: no consumer for {places_text(some)}; {unread_text(some)}"
            yield finding_about(look, Severity.WARNING, "no_members", some, text, commands=commands, lag=sum(one.unread for one in some))
    elif look.group.members and look.group.state == "STABLE":
        some = [one for one in look.partitions if one.behind and not one.owner]
        if some:
            text = f"no member has {places_text(some)}; {unread_text(some)}"
            yield finding_about(
                look, Severity.WARNING, "unassigned_partitions", some, text, commands=commands, lag=sum(one.unread for one in some)
            )


def _rebalancing(look: GroupLook) -> Iterator[Finding]:
    if look.group.state not in REBALANCING:
        return
    lasting = look.later_state in REBALANCING
    how = f"and still after {look.seconds:g} s: no records are read meanwhile" if lasting else "at the moment"
    text = f"is rebalancing ({look.group.state}) {how}"
    yield finding_about(
        look,
        Severity.WARNING if lasting else Severity.NOTE,
        "rebalancing",
        (),
        text,
        commands=[command("groups", "describe", look.group.group_id)],
        state=look.group.state,
    )


def _lost(look: GroupLook) -> Iterator[Finding]:
    some = [one for one in look.partitions if one.lost]
    if some:
        lost = sum(one.lost for one in some)
        places = places_text(some)
        text = f"{counted(lost, 'offset')} of {places} were deleted before they were read; auto.offset.reset decides where it reads on"
        commands = [command("groups", "lag", look.group.group_id)]
        yield finding_about(look, Severity.WARNING, "deleted_unread", some, text, commands=commands, lost=lost)


def gone_findings(look: GroupLook) -> Iterator[Finding]:
    """Yield the partitions that a group has commits for, and that no longer exist."""
    some = [one for one in look.partitions if one.gone]
    if some:
        text = f"has committed offsets of {places_text(some)}, which no longer exist"
        forget = command("offsets", "delete", look.group.group_id, *topic_options(one.partition for one in some))
        yield finding_about(look, Severity.NOTE, "topic_gone", some, text, commands=[forget])

"""What two looks at a group show: whether it is alive, whether it moves, whether something is about to be lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kops.core.diagnosis.history import crash_loop, history_findings
from kops.core.diagnosis.parts import finding_about, places_text, topic_options, unread_text
from kops.core.diagnosis.progress import progress_findings
from kops.core.durations import MILLISECONDS
from kops.core.findings import Finding, Severity, command, counted
from kops.core.groups.lag import Headroom, age_text
from kops.core.groups.look import REBALANCING, GroupLook
from kops.core.models import Setting
from kops.core.topics.settings import RETENTION


def group_findings(look: GroupLook, now: int) -> Iterator[Finding]:
    """Yield what is wrong with a group.

    :param now: milliseconds since the epoch
    """
    if look.crashing:
        yield crash_loop(look, now)
        yield from _expiring(look, now)
    elif look.abandoned:
        yield _abandoned(look)
    else:
        yield from _expiring(look, now)
        yield from _unattended(look, now)
        yield from _rebalancing(look)
        yield from progress_findings(look, now)
        yield from _lost(look)
    yield from history_findings(look)
    yield from _past_end(look)
    yield from _gone(look)


def _abandoned(look: GroupLook) -> Finding:
    name, lost = look.group.group_id, [one for one in look.partitions if one.lost]
    text = f"has no members, and records of {places_text(lost)} were deleted unread: if it is no longer used, it can be deleted"
    commands = [command("groups", "lag", name), command("groups", "delete", name)]
    return finding_about(look, Severity.NOTE, "abandoned", lost, text, commands=commands, lost=sum(one.lost for one in lost))


def _expiring(look: GroupLook, now: int) -> Iterator[Finding]:
    some = [(one, one.expiring) for one in look.partitions if one.expiring is not None]
    if not some:
        return
    risk = sum(found.at_risk for _, found in some)
    first_look, first = min(some, key=lambda each: each[1].expires)
    when = f"in {age_text(first.expires - now)}" if first.expires > now else "now"
    topic, places = first_look.partition.topic, [one for one, _ in some]
    text = f"{counted(risk, 'unread record')} of {places_text(places)} will be deleted before being read, the first {when}"
    longer = command("topics", "alter", topic, "--config", _longer(first, look.settings.get(topic, {})))
    yield finding_about(look, Severity.CRITICAL, "expiring_unread", places, text, commands=[longer], at_risk=risk, by=first.by)


def _longer(risk: Headroom, settings: Mapping[str, Setting]) -> str:
    """Return the setting that keeps records longer: twice the retention time, or no size limit."""
    if risk.by == "size":
        return "retention.bytes=-1"
    found = settings.get(RETENTION)
    value = int(found.value) if found is not None and found.value and found.value.isdigit() else MILLISECONDS["d"]
    return f"{RETENTION}={2 * value}"


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


def _past_end(look: GroupLook) -> Iterator[Finding]:
    some = [one for one in look.partitions if one.past_end]
    if some:
        name = look.group.group_id
        text = f"has committed past the end of {places_text(some)}: the topic was recreated or lost data; new records may be skipped"
        reset = command("offsets", "reset", name, *topic_options(one.partition for one in some), "--to-earliest")
        yield finding_about(look, Severity.WARNING, "past_the_end", some, text, commands=[command("groups", "lag", name), reset])


def _gone(look: GroupLook) -> Iterator[Finding]:
    some = [one for one in look.partitions if one.gone]
    if some:
        text = f"has committed offsets of {places_text(some)}, which no longer exist"
        forget = command("offsets", "delete", look.group.group_id, *topic_options(one.partition for one in some))
        yield finding_about(look, Severity.NOTE, "topic_gone", some, text, commands=[forget])

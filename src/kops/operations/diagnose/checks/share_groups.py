"""Share groups: how far each is, and whether anything processes its records."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kops.core.errors import KopsError, OperationFailed
from kops.core.findings import Finding, Severity, command, counted, partitions_text
from kops.core.groups.lag import age_text
from kops.core.groups.look import BEHIND_MS
from kops.core.models import Bounds, Group, ShareOffset, TopicPartition
from kops.operations.diagnose.check import GROUP, Check
from kops.operations.diagnose.incident import Incident
from kops.operations.diagnose.looks import ages


@dataclass(frozen=True)
class _ShareLook:
    """A share group.

    :param unread: offsets left to process, where there are any
    :param waiting: how long the first of them has been waiting, in milliseconds; None if unknown
    :param moved: whether its start offsets changed between the looks; None if there was only one look
    """

    group: Group
    unread: Mapping[TopicPartition, int]
    waiting: int | None = None
    moved: bool | None = None
    seconds: float = 0.0


def _look(incident: Incident) -> Mapping[str, _ShareLook]:
    names, groups = incident.scope.share_groups, incident.services.kafka.groups
    if not names:
        return {}
    first = groups.share_offsets(names)
    described = groups.describe_or_errors(names)
    found: dict[str, _ShareLook] = {}
    for name in names:
        answer, group = first.get(name), described.get(name)
        problem = answer if isinstance(answer, KopsError) else group if isinstance(group, KopsError) else None
        if problem is not None:
            incident.gaps.note(f"group {name}", problem)
        elif isinstance(answer, dict) and isinstance(group, Group):
            found[name] = _measured(incident, group, answer)
            if (unknown := _not_started(incident, answer)) and not incident.scope.whole:
                incident.gaps.note(f"lag of group {name}", OperationFailed(unknown))
    return _moved(incident, found, first)


def _not_started(incident: Incident, offsets: Mapping[TopicPartition, ShareOffset]) -> str:
    """Return why the lag of a share group is not known; empty if it is, as where there are no records to be behind."""
    bounds = incident.services.kafka.offsets.bounds_or_errors([place for place, one in offsets.items() if one.start is None])
    unknown = [place for place, one in bounds.items() if isinstance(one, KopsError) or one.log_start_offset < one.log_end_offset]
    if unknown:
        return f"no start offset yet for {partitions_text(unknown)}"
    return "" if offsets else "no start offset yet: nothing shows what it reads"


def _measured(incident: Incident, group: Group, offsets: Mapping[TopicPartition, ShareOffset]) -> _ShareLook:
    started = {place: one.start for place, one in offsets.items() if one.start is not None}
    ends = incident.services.kafka.offsets.bounds_or_errors(started)
    unread: dict[TopicPartition, int] = {}
    for place, start in started.items():
        end, lag = ends.get(place), offsets[place].lag
        count = lag if lag is not None else max(0, end.log_end_offset - start) if isinstance(end, Bounds) else 0
        if count:
            unread[place] = count
    places = [(place, started[place]) for place in unread]
    waits = [lag.milliseconds for lag in ages(incident.services, places, incident.gaps).values() if lag.milliseconds is not None]
    return _ShareLook(group, unread, max(waits, default=None))


def _moved(
    incident: Incident, looks: dict[str, _ShareLook], first: Mapping[str, Mapping[TopicPartition, ShareOffset] | KopsError]
) -> dict[str, _ShareLook]:
    """Look a second time at the groups that have members and are behind."""
    some = [name for name, look in looks.items() if look.group.state != "EMPTY" and (look.waiting or 0) >= BEHIND_MS]
    if not some or incident.options.sample_seconds <= 0:
        return looks
    started = time.monotonic()
    len(incident.groups)  # which may take as long as a sample
    time.sleep(max(0.0, incident.options.sample_seconds - (time.monotonic() - started)))
    seconds = round(time.monotonic() - started, 1)
    again = incident.services.kafka.groups.share_offsets(some)
    for name in some:
        look = looks[name]
        looks[name] = _ShareLook(look.group, look.unread, look.waiting, again.get(name) != first.get(name), seconds)
    return looks


def _find(seen: Mapping[str, _ShareLook], _incident: Incident) -> Iterable[Finding]:
    for name, look in seen.items():
        if (look.waiting or 0) < BEHIND_MS:
            continue
        count, waiting = sum(look.unread.values()), look.waiting or 0
        what = (
            f"{counted(count, 'record')} of {partitions_text(look.unread)} unprocessed, the first has been waiting for {age_text(waiting)}"
        )
        facts = {"partitions": [str(place) for place in look.unread], "lag": count, "time_lag_ms": waiting}
        commands = (command("groups", "describe", name),)
        if look.group.state == "EMPTY":
            yield Finding(Severity.WARNING, "no_members", f"group {name}", f"no members: {what}", commands, facts)
        elif look.moved is None:
            yield Finding(Severity.WARNING, "behind", f"group {name}", f"is behind: {what}", commands, facts)
        elif look.moved:
            yield Finding(Severity.NOTE, "behind", f"group {name}", f"is behind and processes records: {what}", commands, facts)
        else:
            text = f"finished no record in {look.seconds:g} s: {what}; records that take longer than that look the same"
            again = (command("diagnose", name, "--sample", "60s"), *commands)
            yield Finding(Severity.WARNING, "not_progressing", f"group {name}", text, again, facts)


CHECK = Check(
    "share group offsets",
    GROUP,
    ("no_members", "behind", "not_progressing"),
    "Kafka 4.1; DESCRIBE on the groups and their topics",
    _look,
    _find,
)

"""Committed offsets that lie past the end of the log: records that a group had read are gone, or the topic is another one. Pure.

A log ends before a committed offset only if the topic was recreated, or if a replica became the leader that did not have all records: after
an unclean election, or with a disk that lost data. Leader epochs tell these apart: within a topic they only grow, and the end of the epoch
in which the group committed shows up to where the log of that time is still there (``OffsetsForLeaderEpoch``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kops.core.diagnosis.history import wait_empty
from kops.core.diagnosis.parts import finding_about, places_text, topic_options
from kops.core.findings import Finding, Severity, command, counted
from kops.core.groups.look import EpochEnd, GroupLook, PartitionLook
from kops.core.models import Setting, value_of
from kops.core.topics.settings import UNCLEAN


def loss_findings(look: GroupLook, settings: Mapping[str, Mapping[str, Setting]]) -> Iterator[Finding]:
    """Yield what became of partitions in which a group has committed past the end.

    :param settings: of their topics
    """
    some = [one for one in look.partitions if one.past_end]
    kinds: dict[bool, list[PartitionLook]] = {}
    for one in some:
        kinds.setdefault(_is_other_topic(look, one), []).append(one)
    if recreated := kinds.get(True):
        yield _recreated(look, recreated)
    for topic in dict.fromkeys(one.partition.topic for one in kinds.get(False, ())):
        yield _lost(look, [one for one in kinds[False] if one.partition.topic == topic], settings.get(topic, {}))


def _is_other_topic(look: GroupLook, one: PartitionLook) -> bool:
    """Whether the topic is known to have been recreated since the commit."""
    events = look.history.commits.get(one.partition, ())
    then = next((event.topic_id for event in reversed(events) if event.topic_id is not None), None)
    now = look.topic_ids.get(one.partition.topic)
    if then is not None and now is not None:
        return then != now
    return one.epoch_end is not None and one.epoch_end.unknown


def _recreated(look: GroupLook, some: list[PartitionLook]) -> Finding:
    name = look.group.group_id
    text = f"has committed past the end of {places_text(some)}: the topic was recreated, so that these offsets mean nothing in it"
    reset = command("offsets", "reset", name, *topic_options(one.partition for one in some), "--to-earliest")
    return finding_about(look, Severity.CRITICAL, "past_the_end", some, text, commands=[reset, command("groups", "lag", name)])


def _lost(look: GroupLook, some: list[PartitionLook], settings: Mapping[str, Setting]) -> Finding:
    name, parts, seeks, places, lost = look.group.group_id, [], [], [], 0
    for one in some:
        if one.committed is None or one.bounds is None:
            continue
        committed, end, found = one.committed, one.bounds.log_end_offset, one.epoch_end
        known = found is not None and not found.unknown
        kept = min(committed.offset, found.end_offset) if found is not None and known else end  # a new leader's end may still grow
        elected = _elected(committed.leader_epoch, found) if found is not None and known else ""
        gone = f"{kept} to {committed.offset - 1} are gone"
        parts.append(f"{one.partition} ends at {end}, and {committed.offset} was committed{elected}: {gone}")
        seeks.append(f"{one.partition}={kept}")
        places.append({"partition": str(one.partition), "committed": committed.offset, "log_end": end, "kept_until": kept})
        lost += committed.offset - kept
    unclean = value_of(settings, UNCLEAN) == "true"
    known = all(one.epoch_end is not None for one in some)
    text = f"data was lost{'' if known else ', or the topic was recreated'}: {'; '.join(parts)}, {counted(lost, 'offset')}"
    text += f"; {UNCLEAN}=true lets a replica lead that lacks records" if unclean else ""
    text += (
        f"; where {name} reads on is its owner's decision, otherwise auto.offset.reset decides: the command resumes where the log was cut"
    )
    commands = [
        command("offsets", "seek", name, *seeks, *wait_empty(look, look.at, look.at)),
        command("topics", "describe", some[0].partition.topic),
    ]
    return finding_about(look, Severity.CRITICAL, "data_lost", some, text, commands=commands, lost=lost, places=places, unclean=unclean)


def _elected(committed: int | None, found: EpochEnd) -> str:
    leader = "" if found.leader is None else f", led by broker {found.leader}"
    if committed is None or found.current_epoch is None or found.current_epoch <= committed:
        return f" ({leader.removeprefix(', ')})" if leader else ""
    return f" in leader epoch {committed} (now {found.current_epoch}{leader})"

"""Guards of a change of state: conditions that must hold from planning it to making it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kops.core.errors import KopsError, NotFound, StateMoved
from kops.core.findings import counted
from kops.core.models import TopicPartition
from kops.core.offsets.moves import ABSENT
from kops.core.plan import Plan
from kops.operations.offsets.items import offset_of
from kops.operations.protocol.mutation import compare_guard
from kops.operations.services import Services
from kops.operations.state.arguments import StateArguments
from kops.operations.state.input_offsets import refuse_alive
from kops.operations.state.internal_topics import topic_ids


def guarded(services: Services, plan: Plan[StateArguments], watched: Iterable[str] | None = None) -> Plan[StateArguments]:
    """Return a plan whose guard has the current group, its offsets, the changelogs, and the topics that are changed.

    The bounds of the input are not part of it: producers continue, and what was computed is in the stage.

    :param watched: topics whose committed offsets count; those of the plan's guard when None
    :raises StateMoved: when a changelog that is to be appended to is gone
    """
    arguments = plan.arguments
    topics = sorted(plan.guard["topics"] if watched is None else watched)
    ids = topic_ids(services, arguments.topics) if arguments.topics else {}
    replaced = [name for name in sorted(arguments.topics_to_change) if ids[name] is not None]
    committed = services.kafka.groups.committed([arguments.application], stable=True)[arguments.application]
    try:
        ends = log_ends(services, arguments.changelogs - arguments.topics_to_change)
    except NotFound as missing:
        raise StateMoved(missing.message, hint="a changelog was deleted since the plan was made; plan again") from missing
    now = {
        "group": arguments.application,
        "state": _state(services, arguments.application),
        "topics": topics,
        "committed": {str(partition): found.offset for partition, found in sorted(committed.items()) if partition.topic in topics},
        "changelog_ends": _json(ends),
        "topic_ids": ids,
        "replaced_ends": _json(log_ends(services, replaced)) if replaced else {},
    }
    return replace(plan, guard=now)


def refuse_moved(services: Services, plan: Plan[StateArguments]) -> None:
    """Refuse when the application, its changelogs or the topics to be changed are no longer as in the plan."""
    what = "changelogs or topics" if plan.arguments.topics else "changelogs"
    compare_guard(plan, guarded(services, plan).guard, f"the application {plan.arguments.application} or one of its {what}")


def refuse_running(services: Services, plan: Plan[StateArguments]) -> None:
    if plan.guard["state"] != ABSENT:
        application = plan.arguments.application
        refuse_alive(services.kafka.groups.describe([application])[application])


def refuse_moved_on(plan: Plan[StateArguments], now: Plan[StateArguments]) -> None:
    """Refuse to finish a change when the group has an offset that the plan neither found nor commits.

    :param now: the same plan, guarded now
    """
    arguments = plan.arguments
    before, here = plan.guard["committed"], now.guard["committed"]
    wanted = {str(at): offset_of(found) for at, found in arguments.commit.items()}
    recreated = {change.name for change in arguments.topics}
    for target in sorted({*before, *here}):
        offset = here.get(target)
        # The coordinator forgets what was committed for a deleted topic.
        forgotten = offset is None and target.rpartition(":")[0] in recreated
        if not forgotten and offset not in (before.get(target), wanted.get(target, before.get(target))):
            raise StateMoved(f"{arguments.application} has moved on in {target} since", hint="plan again from what is there now")


def log_ends(services: Services, topics: Iterable[str]) -> dict[TopicPartition, int]:
    """Return the log end offsets of topics: where the next record goes, open transactions or not."""
    partitions = [partition for found in services.kafka.offsets.partitions_of(sorted(topics)).values() for partition in found]
    return {partition: bound.log_end_offset for partition, bound in sorted(services.kafka.offsets.bounds(partitions).items())}


def changes_meanwhile(services: Services, plan: Plan[StateArguments]) -> list[str]:
    """Return changes that the application, or another tool, made while a plan was carried out, one sentence each.

    Changelog partitions that the plan wrote itself are read back elsewhere.
    """
    arguments, guard = plan.arguments, plan.guard
    application, found_then = arguments.application, guard["committed"]
    events = []
    group = services.kafka.groups.describe_or_errors([application])[application]
    if not isinstance(group, KopsError) and group.members:
        events.append(f"{counted(len(group.members), 'instance')} of {application} joined")
    elif not isinstance(group, KopsError) and guard["state"] == ABSENT and not arguments.commit:
        events.append(f"the group {application} came into being")
    committed = services.kafka.groups.committed([application])[application]
    for partition, found in sorted(committed.items()):
        known = (found_then.get(str(partition)), offset_of(arguments.commit.get(partition)))
        if partition.topic in guard["topics"] and found.offset not in known:
            events.append(f"{application} committed {found.offset} for {partition}")
    untouched = {store.changelog for store in arguments.stores.values() if not store.contents}
    known_ends = {target: end for target, end in guard["changelog_ends"].items() if target.rpartition(":")[0] in untouched}
    if known_ends:
        ends = _json(log_ends(services, {target.rpartition(":")[0] for target in known_ends}))
        events += [
            f"{target} got {counted(ends[target] - end, 'record')}" for target, end in known_ends.items() if ends.get(target, end) > end
        ]
    return events


def records_of(services: Services, topics: Iterable[str]) -> dict[str, str]:
    """Return in a few words how many records existing topics hold, as offsets from log start to log end."""
    there = services.kafka.topics.existing(topics)
    counts = dict.fromkeys(there, 0)
    places = [place for topic in there.values() for place in topic.places]
    for partition, bound in services.kafka.offsets.bounds(places).items():
        counts[partition.topic] += bound.offsets
    return {name: f"it holds {counted(count, 'record')} now" for name, count in counts.items()}


def _json(ends: Mapping[TopicPartition, int]) -> dict[str, int]:
    return {str(partition): end for partition, end in ends.items()}


def _state(services: Services, application: str) -> str:
    try:
        return services.kafka.groups.describe([application])[application].state
    except NotFound:
        return ABSENT

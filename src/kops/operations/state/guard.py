"""What must not have moved between planning a rebuild and writing it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kops.core.errors import KopsError, NotFound
from kops.core.findings import counted
from kops.core.models import TopicPartition
from kops.core.plan import Plan
from kops.operations.services import Services


def guard_of(services: Services, application: str, changelogs: Iterable[str], watched: Iterable[str]) -> dict[str, Any]:
    """Return the state of the group, its committed offsets, and the ends of the changelogs.

    The bounds of the input are not in it: producers go on, and what was computed lies in the stage.

    :param watched: topics whose committed offsets count
    """
    topics = sorted(watched)
    committed = services.kafka.groups.committed([application], stable=True)[application]
    return {
        "group": application,
        "state": _state(services, application),
        "topics": topics,
        "committed": {str(partition): found.offset for partition, found in sorted(committed.items()) if partition.topic in topics},
        "changelog_ends": {str(partition): end for partition, end in log_ends(services, changelogs).items()},
    }


def log_ends(services: Services, topics: Iterable[str]) -> dict[TopicPartition, int]:
    """Return the log end offsets of topics: where the next record goes, open transactions or not."""
    partitions = [partition for found in services.kafka.offsets.partitions_of(sorted(topics)).values() for partition in found]
    return {partition: bound.log_end_offset for partition, bound in sorted(services.kafka.offsets.bounds(partitions).items())}


def meanwhile(services: Services, plan: Plan) -> list[str]:
    """Return what the application, or somebody in its place, did while a plan was carried out: a sentence each.

    What was written to changelog partitions that the plan wrote too is read back elsewhere.
    """
    application, guard, commit = plan.arguments["application"], plan.guard, plan.arguments["commit"]
    said = []
    group = services.kafka.groups.describe_or_errors([application])[application]
    if not isinstance(group, KopsError) and group.members:
        said.append(f"{counted(len(group.members), 'instance')} of {application} joined")
    elif not isinstance(group, KopsError) and guard["state"] == "ABSENT" and not commit:
        said.append(f"the group {application} came into being")
    committed = services.kafka.groups.committed([application])[application]
    for partition, found in sorted(committed.items()):
        target, written = str(partition), commit.get(str(partition)) or {}
        if partition.topic in guard["topics"] and found.offset not in (guard["committed"].get(target), written.get("offset")):
            said.append(f"{application} committed {found.offset} for {target}")
    stores = plan.arguments["stores"].values()
    alone = {store["changelog"] for store in stores if not store["contents"]}
    known = {target: end for target, end in guard["changelog_ends"].items() if target.rpartition(":")[0] in alone}
    if known:
        there = {target.rpartition(":")[0] for target in known}
        ends = {str(partition): end for partition, end in log_ends(services, there).items()}
        said += [f"{target} got {counted(ends[target] - end, 'record')}" for target, end in known.items() if ends.get(target, end) > end]
    return said


def records_of(services: Services, topics: Iterable[str]) -> dict[str, str]:
    """Return how many records topics hold that are there, in a few words: offsets from log start to log end."""
    there = services.kafka.topics.existing(topics)
    counts = dict.fromkeys(there, 0)
    places = [TopicPartition(topic.name, part.partition) for topic in there.values() for part in topic.partitions]
    for partition, bound in services.kafka.offsets.bounds(places).items():
        counts[partition.topic] += bound.log_end_offset - bound.log_start_offset
    return {name: f"it holds {counted(count, 'record')} now" for name, count in counts.items()}


def _state(services: Services, application: str) -> str:
    try:
        return services.kafka.groups.describe([application])[application].state
    except NotFound:
        return "ABSENT"

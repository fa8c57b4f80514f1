"""Applications as rows and objects of the JSON contract."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kops.core.findings import ranges_text
from kops.core.streams.models import Instance, Part, Task
from kops.core.streams.subtopologies import StoreLook, task_count
from kops.core.streams.topics import CHANGELOG, store_of
from kops.operations.streams.find import FoundApplication
from kops.operations.streams.inspection import Inspection


def found_row(found: FoundApplication) -> dict[str, Any]:
    application = found.application
    stores = [store for topic in found.topics if (store := store_of(topic, application.application))]
    return {
        "application": application.application,
        "protocol": application.protocol,
        "state": application.state,
        "instances": len(application.instances),
        "members": len(application.members),
        "stores": stores,
        "internal_topics": list(found.topics),
        "known_by": found.known_by,
    }


def look_json(look: Inspection) -> dict[str, Any]:
    application = look.application
    return {
        "application": application.application,
        "protocol": application.protocol,
        "state": application.state,
        "topology_from": "description" if look.topology else "group" if application.complete else "members" if application.parts else None,
        "input_topics": list(look.input_topics),
        "output_topics": None if look.output_topics is None else list(look.output_topics),
        "subtopologies": [_part_json(look, part) for part in application.parts],
        "stores": [_store_json(store) for store in look.stores],
        "internal_topics": [
            {
                "topic": topic,
                "kind": "changelog" if topic.endswith(CHANGELOG) else "repartition",
                "partitions": look.partitions[topic],
                "by_name_only": topic in look.by_name,
            }
            for topic in look.internal
        ],
        "instances": [_instance_json(instance) for instance in application.instances],
        "notes": [*look.notes, *look_notes(look)],
    }


def look_notes(look: Inspection) -> list[str]:
    application, notes = look.application, []
    notes += [f"{doubt.topic} may be of {doubt.other}, whose group is gone: it {doubt.reason}" for doubt in look.doubts]
    if look.others:
        notes.append(f"named as internal topics of {application.application}, and not in its topology: {', '.join(look.others)}")
    if look.topology is None:
        unplaced = [store.store for store in look.stores if store.subtopology is None]
        more = f", and which sub-topology has {', '.join(unplaced)}" if unplaced else ""
        notes.append(f"output topics and stores without a changelog are only known with --topology FILE{more}")
    if look.topology is not None and look.topology.chooses_topics:
        notes.append(f"where {', '.join(look.topology.chooses_topics)} writes is chosen by record, and only the application knows")
    if application.members and application.state != "STABLE":
        notes.append(f"a rebalance is in progress ({application.state}): who has what is about to change")
    unassigned = [str(task) for part in application.parts for task in unassigned_tasks(look, part)]
    if application.members and unassigned:
        notes.append(f"no instance has the tasks {', '.join(unassigned)}")
    return notes


def unassigned_tasks(look: Inspection, part: Part) -> list[Task]:
    """Return the tasks of a sub-topology that no instance processes; none when no instance runs, or its topics are unknown."""
    count = task_count(part, look.partitions)
    if not count or not look.application.members:
        return []
    taken = {task for instance in look.application.instances for task in instance.active}
    return [task for number in range(count) if (task := Task(part.subtopology, number)) not in taken]


def part_table(look: Inspection) -> list[dict[str, Any]]:
    return [
        {
            "part": part.subtopology,
            "reads": [*part.source_topics, *(f"/{pattern}/" for pattern in part.patterns), *_short(look, part.repartition_topics)],
            "writes": [*part.sink_topics, *_short(look, part.repartition_sinks)],
            "stores": [store.store for store in look.stores if store.subtopology == part.subtopology],
            "tasks": "global" if part.is_global else task_count(part, look.partitions),
        }
        for part in look.application.parts
    ]


def _short(look: Inspection, topics: Iterable[str]) -> list[str]:
    """Return the names of internal topics without the application's prefix, which is shown above."""
    prefix = look.application.application
    return [topic.removeprefix(prefix) for topic in topics]


def instance_table(look: Inspection) -> list[dict[str, Any]]:
    return [
        {
            "instance": instance.label,
            "members": len(instance.members),
            "active": tasks_text(instance.active),
            "standby": tasks_text((*instance.standby, *instance.warmup)),
        }
        for instance in look.application.instances
    ]


def store_table(look: Inspection) -> list[dict[str, Any]]:
    return [{**_store_json(store), "part": store.subtopology or "/".join(store.candidates) or None} for store in look.stores]


def tasks_text(tasks: Sequence[Task]) -> str | None:
    """Return tasks in short form: ``0_0-2,5 1_3``."""
    by_part: dict[str, list[int]] = {}
    for task in tasks:
        by_part.setdefault(task.subtopology, []).append(task.partition)
    return " ".join(f"{part}_{ranges_text(numbers)}" for part, numbers in by_part.items()) or None


def _part_json(look: Inspection, part: Part) -> dict[str, Any]:
    return {
        "subtopology": part.subtopology,
        "global": part.is_global,
        "source_topics": list(part.source_topics),
        "source_patterns": list(part.patterns),
        "repartition_topics": list(part.repartition_topics),
        "output_topics": list(part.sink_topics),
        "repartition_sinks": list(part.repartition_sinks),
        "stores": [store.store for store in look.stores if store.subtopology == part.subtopology],
        "tasks": task_count(part, look.partitions),
        "unassigned_tasks": [str(task) for task in unassigned_tasks(look, part)],
    }


def _store_json(store: StoreLook) -> dict[str, Any]:
    return {
        "store": store.store,
        "subtopology": store.subtopology,
        "changelog": store.changelog,
        "partitions": store.partitions,
        "global": store.is_global,
    }


def _instance_json(instance: Instance) -> dict[str, Any]:
    return {
        "application_server": instance.application_server,
        "process_id": instance.process_id or None,
        "active": [str(task) for task in instance.active],
        "standby": [str(task) for task in instance.standby],
        "warmup": [str(task) for task in instance.warmup],
        "members": [
            {
                "member_id": member.member_id,
                "client_id": member.client_id,
                "host": member.host,
                "active": [str(task) for task in member.active],
                "standby": [str(task) for task in member.standby],
                "warmup": [str(task) for task in member.warmup],
                "partitions": [{"topic": one.topic, "partition": one.partition} for one in member.partitions],
            }
            for member in instance.members
        ],
    }

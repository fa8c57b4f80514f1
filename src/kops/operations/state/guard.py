"""What must not have moved between planning a rebuild and writing it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kops.core.errors import NotFound
from kops.core.models import TopicPartition
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


def _state(services: Services, application: str) -> str:
    try:
        return services.kafka.groups.describe([application])[application].state
    except NotFound:
        return "ABSENT"

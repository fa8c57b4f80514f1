"""What findings about groups share. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kops.core.findings import Finding, Severity, counted, partitions_text, ranges_text
from kops.core.groups.lag import age_text
from kops.core.groups.look import GroupLook, PartitionLook
from kops.core.models import TopicPartition, numbers_by_topic


def finding_about(
    look: GroupLook,
    severity: Severity,
    check: str,
    some: Sequence[PartitionLook],
    text: str,
    *,
    commands: Sequence[str],
    **facts: Any,
) -> Finding:
    """Return a finding about a group, with the partitions among its facts."""
    places = [str(one.partition) for one in some]
    return Finding(severity, check, f"group {look.group.group_id}", text, tuple(commands), {"partitions": places, **facts})


def places_text(some: Sequence[PartitionLook]) -> str:
    """Format partitions for people: ``orders:0-3``."""
    return partitions_text(one.partition for one in some)


def longest_wait(some: Sequence[PartitionLook]) -> int:
    """Return how long the oldest unread record has been waiting, in milliseconds; 0 if unknown."""
    return max((one.waiting.milliseconds or 0 for one in some), default=0)


def topic_options(partitions: Iterable[TopicPartition]) -> list[str]:
    """Return ``--topic orders:0,3`` for partitions, one option per topic."""
    return [word for topic, some in numbers_by_topic(partitions).items() for word in ("--topic", f"{topic}:{ranges_text(some)}")]


def unread_text(some: Sequence[PartitionLook]) -> str:
    return f"{counted(sum(one.unread for one in some), 'record')} unread, the first has been waiting for {age_text(longest_wait(some))}"

"""What is lost when the oldest records of partitions go: how many, and which groups have not read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kops.core.errors import KopsError, Unreachable
from kops.core.models import Bounds, Committed, TopicPartition
from kops.operations.services import Services


@dataclass(frozen=True)
class Needs:
    """Who still needs records.

    :param records: by topic and group, how many of them the group has yet to read
    :param unseen: why not every group could be asked; empty when all were
    """

    records: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unseen: str = ""


def needs_below(services: Services, cuts: Mapping[TopicPartition, tuple[Bounds, int]]) -> Needs:
    """Return which groups have not read the records below some offsets.

    A group that has no committed offset on a partition needs nothing there; what may not be seen is said, not raised.

    :param cuts: of each partition its bounds, and the offset below which the records go
    """
    cutting = {partition: cut for partition, cut in cuts.items() if cut[1] > cut[0].log_start_offset}
    if not cutting:
        return Needs()
    groups = services.kafka.groups
    try:
        listed = [group.group_id for group in groups.listed() if group.type != "share"]
        answers = groups.committed_or_errors(listed)
    except Unreachable:
        raise
    except KopsError as error:
        return Needs(unseen=error.message)
    records: dict[str, dict[str, int]] = {}
    unseen = ""
    for group_id, found in answers.items():
        if isinstance(found, KopsError):
            unseen = unseen or found.message
            continue
        for topic, count in _needed(found, cutting).items():
            records.setdefault(topic, {})[group_id] = count
    return Needs(records, unseen)


def _needed(committed: Mapping[TopicPartition, Committed], cutting: Mapping[TopicPartition, tuple[Bounds, int]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for partition, where in committed.items():
        if partition not in cutting:
            continue
        bounds, cut = cutting[partition]
        left = cut - max(where.offset, bounds.log_start_offset)
        if left > 0:
            counts[partition.topic] = counts.get(partition.topic, 0) + left
    return counts


def need_warnings(needs: Needs, shown: int = 5) -> list[str]:
    """Return a sentence for each group that has not read all of what goes, those that lose most first."""
    texts = []
    for topic, by_group in needs.records.items():
        ordered = sorted(by_group.items(), key=lambda one: (-one[1], one[0]))
        texts += [f"group {group_id} has yet to read {count:,} of what goes from {topic}" for group_id, count in ordered[:shown]]
        if len(ordered) > shown:
            rest = sum(count for _, count in ordered[shown:])
            texts.append(f"{len(ordered) - shown} more groups have yet to read {rest:,} of what goes from {topic}")
    if needs.unseen:
        texts.append(f"not every group could be asked whether it still needs what goes: {needs.unseen}")
    return texts

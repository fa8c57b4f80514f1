"""Which partitions get most of what is written: of the topics on which groups are behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kops.core.groups.look import GroupLook, Skew, skew_of
from kops.core.models import TopicPartition
from kops.core.times import to_milliseconds
from kops.operations.cluster.observe import Gaps
from kops.operations.services import Services

NEW_MS = 600_000
"""Records that are younger, by their timestamps, are new."""


def with_skews(services: Services, looks: Sequence[GroupLook], gaps: Gaps) -> list[GroupLook]:
    """Return groups with the hot partitions of the topics on which they are behind: one request for all of them."""
    behind = {one.partition.topic for look in looks if look.group.state != "EMPTY" for one in look.partitions if one.behind}
    ends = {one.partition: one.bounds for look in looks for one in look.partitions if one.partition.topic in behind and one.bounds}
    if not ends:
        return list(looks)
    since = to_milliseconds(services.now()) - NEW_MS
    young = gaps.ask("new records", lambda: services.kafka.offsets.at_time(ends, since))
    if young is None:
        return list(looks)
    new: dict[str, dict[TopicPartition, int]] = {}
    for partition, bounds in ends.items():
        first = young.get(partition)
        count = 0 if first is None else max(0, bounds.log_end_offset - max(first, bounds.log_start_offset))
        new.setdefault(partition.topic, {})[partition] = count
    skews: dict[str, Skew] = {topic: found for topic, counts in new.items() if (found := skew_of(counts, NEW_MS)) is not None}
    return [replace(look, skews=tuple(skews[topic] for topic in sorted(_topics(look) & skews.keys()))) for look in looks]


def _topics(look: GroupLook) -> set[str]:
    return {one.partition.topic for one in look.partitions if one.behind}

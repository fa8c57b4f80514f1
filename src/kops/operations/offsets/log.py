"""Whether the log still has the offsets that a plan would commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kops.core.errors import KopsError, NotFound, StateMoved
from kops.core.models import Bounds, TopicPartition
from kops.core.offsets.moves import GroupMoves, TopicMoves
from kops.operations.services import Services


def refuse_columns_outside(services: Services, groups: Sequence[GroupMoves]) -> None:
    """Refuse a plan with an offset that the log does not have any more.

    :raises StateMoved: naming the first
    """
    columns = {(topic.topic, id(topic.partitions), id(topic.after.offsets)): topic for group in groups for topic in group.topics}
    places = {TopicPartition(topic.topic, partition) for topic in columns.values() for partition in topic.partitions}
    bounds = services.kafka.offsets.bounds_or_errors(places)
    suspect = {key for key, topic in columns.items() if not _fits(topic, bounds)}
    for group in groups:
        for topic in group.topics:
            if (topic.topic, id(topic.partitions), id(topic.after.offsets)) in suspect:
                for partition, _, after in topic.pairs():
                    refuse_outside(TopicPartition(topic.topic, partition), after, bounds)


def _fits(topic: TopicMoves, bounds: Mapping[TopicPartition, Bounds | KopsError]) -> bool:
    """Tell whether the log has every offset, those that are not written too."""
    for partition, offset in zip(topic.partitions, topic.after.offsets, strict=True):
        found = bounds[TopicPartition(topic.topic, partition)]
        if isinstance(found, KopsError) or offset is None or not found.log_start_offset <= offset <= found.log_end_offset:
            return False
    return True


def refuse_outside(partition: TopicPartition, offset: int | None, bounds: Mapping[TopicPartition, Bounds | KopsError]) -> None:
    """Refuse one offset that the log does not have any more.

    :raises StateMoved: when it is so, or the partition is gone
    """
    found = bounds[partition]
    if offset is None:
        return
    if isinstance(found, NotFound):
        raise StateMoved(f"{partition}: {found.message}", hint="run the command again to plan from what is there now")
    if isinstance(found, KopsError):
        raise found
    if not found.log_start_offset <= offset <= found.log_end_offset:
        has = f"{found.log_start_offset} to {found.log_end_offset}"
        raise StateMoved(f"{partition} has no offset {offset} any more, it has {has}", hint="run the command again")

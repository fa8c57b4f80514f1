"""Committed offsets as the items, arguments and results of a plan. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kops.core.errors import VerificationFailed
from kops.core.findings import names_text
from kops.core.models import CommittedOffset, TopicPartition, numbers_by_topic
from kops.core.plan import Item, ItemResult, Status
from kops.core.selection import Selection

_NAMED = 8
_TOPICS = 3


def move_item(partition: TopicPartition, before: CommittedOffset | None, after: CommittedOffset | None, reason: str) -> Item:
    if offset_of(before) == offset_of(after):
        return Item(str(partition), "none", offset_of(before), offset_of(after), reason or "already there")
    action = "delete" if after is None else "commit" if before is None else "move"
    return Item(str(partition), action, offset_of(before), offset_of(after), reason)


def verified(
    result: ItemResult, write: Mapping[TopicPartition, CommittedOffset | None], found: Mapping[TopicPartition, CommittedOffset]
) -> ItemResult:
    """Return a result after reading back: failed if offset or metadata differ from what was written."""
    if result.status is not Status.DONE:
        return result
    partition = partition_of(result.target)
    wanted, actual = write[partition], found.get(partition)
    error = not_as_written(result.target, wanted, actual)
    if error is None:
        return ItemResult(result.target, Status.DONE, value=offset_of(actual))
    return ItemResult(result.target, Status.FAILED, error=error.as_json(), value=offset_of(actual))


def not_as_written(target: str, wanted: CommittedOffset | None, actual: CommittedOffset | None) -> VerificationFailed | None:
    """Return an error if the offset or metadata read back differ; metadata that could not be read counts as equal."""
    same = offset_of(wanted) == offset_of(actual)
    if same and (wanted is None or actual is None or actual.metadata is None or (wanted.metadata or "") == actual.metadata):
        return None
    what = f"offset {offset_of(actual)}" if not same else f"metadata {actual.metadata!r}" if actual else ""
    return VerificationFailed(
        f"{target} was committed as {offset_of(wanted)}, and read back as {what}",
        hint="something commits for this group while it has no members: look for other tools, or consumers without a group",
    )


def offset_of(committed: CommittedOffset | None) -> int | None:
    return None if committed is None else committed.offset


def committed_json(committed: CommittedOffset | None) -> dict[str, Any] | None:
    if committed is None:
        return None
    return {"offset": committed.offset, "metadata": committed.metadata, "leader_epoch": committed.leader_epoch}


def committed_of_json(body: Mapping[str, Any]) -> dict[TopicPartition, CommittedOffset | None]:
    return {partition_of(target): None if value is None else CommittedOffset(**value) for target, value in body.items()}


def partition_of(target: str) -> TopicPartition:
    topic, _, number = target.rpartition(":")
    return TopicPartition(topic, int(number))


def places(partitions: Iterable[TopicPartition]) -> str:
    """Summarize partitions for a plan's summary: ``orders:0,1, payments (120 partitions)``."""
    named = [
        str(Selection(topic, tuple(numbers))) if len(numbers) <= _NAMED else f"{topic} ({len(numbers)} partitions)"
        for topic, numbers in numbers_by_topic(partitions).items()
    ]
    return names_text(named, _TOPICS, of="topics")

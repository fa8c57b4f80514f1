"""Shows and exports committed offsets."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Any

from kops.core.errors import KopsError, without_errors
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.offsets.apache_csv import OffsetRow
from kops.core.offsets.arithmetic import is_streams_metadata
from kops.core.times import time_text
from kops.operations.groups.matching import find_group, matching_groups
from kops.operations.offsets.rules import included, narrowing
from kops.operations.services import Services


def show(services: Services, group_id: str, topics: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the committed offsets of a group as rows, with their metadata.

    :param topics: only these: ``orders``, ``orders:0,1``, ``orders-*``
    :raises NotFound: when there is no such group
    """
    narrow = narrowing(topics)
    find_group(services, group_id)
    committed = services.kafka.groups.committed([group_id])[group_id]
    return [_shown(partition, found) for partition, found in committed.items() if included(partition, narrow)]


def export(
    services: Services, patterns: Sequence[str], problems: dict[str, KopsError], *, regex: bool = False, with_group: bool = False
) -> list[OffsetRow]:
    """Return committed offsets as rows of Apache's CSV; with the group if there are several, as Apache's tool does.

    :param problems: receives why the offsets of a group are not known, by its id
    """
    names = matching_groups(services, patterns, regex=regex, problems=problems)
    committed = without_errors(services.kafka.groups.committed_or_errors(names), problems)
    grouped = with_group or len(names) > 1 or bool(problems)
    return [OffsetRow(name if grouped else None, p, found.offset) for name, offsets in committed.items() for p, found in offsets.items()]


def export_table(rows: Iterable[OffsetRow]) -> list[dict[str, Any]]:
    """Return exported offsets as JSON rows, which ``--from-file`` also reads."""
    return [
        {
            **({"group": row.group} if row.group is not None else {}),
            "topic": row.partition.topic,
            "partition": row.partition.partition,
            "offset": row.offset,
        }
        for row in rows
    ]


def _shown(partition: TopicPartition, committed: CommittedOffset) -> dict[str, Any]:
    stream_time = None
    if is_streams_metadata(committed.metadata):
        milliseconds = int.from_bytes(base64.b64decode(committed.metadata or "")[1:9], "big", signed=True)
        stream_time = time_text(milliseconds) if milliseconds >= 0 else None
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "offset": committed.offset,
        "leader_epoch": committed.leader_epoch,
        "metadata": committed.metadata,
        "stream_time": stream_time,
    }

"""The past of groups, for a diagnosis: read from ``__consumer_offsets`` as far back as it is asked for, and no more than is quick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kops.core.errors import AuthorizationFailed, KopsError, NotFound
from kops.core.groups.history import GroupHistory, deletions
from kops.core.groups.look import GroupLook, PartitionLook
from kops.core.models import Bounds, TopicPartition
from kops.core.times import to_milliseconds
from kops.operations.cluster.observe import Gaps
from kops.operations.diagnose.scope import Scope
from kops.operations.services import Services

COMMIT_HISTORY = "commit history"
MOST_COMMITS = 300_000
"""Records of ``__consumer_offsets`` that are read, the newest: two seconds."""


def with_history(services: Services, looks: Sequence[GroupLook], scope: Scope, gaps: Gaps, *, since: int | None) -> list[GroupLook]:
    """Return groups with their past, and with the partitions whose commits were deleted.

    :param since: milliseconds since the epoch, from which on to look; None does not look
    """
    at = to_milliseconds(services.now())
    looks = [replace(look, at=at) for look in looks]
    if since is None or not looks:
        return looks
    from kops.formats.groups.consumer_offsets import TOPIC
    from kops.operations.groups.log import read_group_log

    names = [look.group.group_id for look in looks]
    try:
        found = read_group_log(services, names, since=since, most=MOST_COMMITS)
    except (NotFound, AuthorizationFailed):
        gaps.note(COMMIT_HISTORY, AuthorizationFailed(f"lacks READ on topic {TOPIC}, or it does not exist yet"))
        return looks
    except KopsError as problem:
        gaps.note(COMMIT_HISTORY, problem)
        return looks
    if found.left_out:
        text = f"only the newest {MOST_COMMITS:,} commits were read, {found.left_out:,} were left out; a shorter --history reads all"
        gaps.errors[COMMIT_HISTORY] = KopsError(text)
    histories = {name: _narrowed(history, name, scope) for name, history in found.histories.items()}
    lost = {name: {one.partition for one in deletions(history)} for name, history in histories.items()}
    topics = sorted({partition.topic for some in lost.values() for partition in some})
    existing = (gaps.ask("topics", lambda: services.kafka.topics.existing(topics)) if topics else None) or {}
    ids = {name: topic.topic_id for name, topic in existing.items() if topic.topic_id}
    bounds = services.kafka.offsets.bounds_or_errors({one for some in lost.values() for one in some if one.topic in existing})
    return [_with(look, histories[look.group.group_id], ids, bounds) for look in looks]


def _narrowed(history: GroupHistory, name: str, scope: Scope) -> GroupHistory:
    return replace(history, commits={partition: events for partition, events in history.commits.items() if scope.includes(name, partition)})


def _with(look: GroupLook, history: GroupHistory, ids: Mapping[str, str], bounds: Mapping[TopicPartition, Bounds | KopsError]) -> GroupLook:
    known = {one.partition for one in look.partitions}
    added = [
        PartitionLook(one.partition, None, found)
        for one in deletions(history)
        if one.partition not in known and isinstance(found := bounds.get(one.partition), Bounds)
    ]
    return replace(look, partitions=(*look.partitions, *added), history=history, topic_ids=ids)

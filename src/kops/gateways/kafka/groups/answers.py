"""Converts the clients' answers about groups to kops' own types. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from kops.core.errors import KopsError
from kops.core.models import Broker, Group, GroupOffsets, Member, TopicPartition
from kops.formats.groups.offset_fetch import TopicCommits
from kops.gateways.kafka.translate import translate

if TYPE_CHECKING:
    from kops.core.streams.models import StreamsMember

_TOPIC, _PARTITION, _OFFSET = attrgetter("topic"), attrgetter("partition"), attrgetter("offset")
_ERROR, _EPOCH, _METADATA = attrgetter("error"), attrgetter("leader_epoch"), attrgetter("metadata")

_CONSUMER_PROTOCOLS = ("", "consumer")

M = TypeVar("M", bound="Member | StreamsMember")


def kafka_words(state: str) -> str:
    """Return a group's state in upper case: both ``PreparingRebalance`` and confluent-kafka's own name become PREPARING_REBALANCE."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", state).upper()
    return words.replace("REBALANCING", "REBALANCE") if words else "UNKNOWN"


def listed_group(answer: Mapping[str, Any]) -> Group:
    """Return a group from kafka-python's ListGroups: brokers before 4.0 report no type, those before 2.6 no state."""
    protocol_type = answer["protocol_type"]
    named = (answer.get("group_type") or "classic").lower()
    is_other = named == "classic" and protocol_type not in _CONSUMER_PROTOCOLS
    return Group(answer["group_id"], kafka_words(answer.get("group_state") or ""), protocol_type if is_other else named)


def group_of(answer: Any) -> Group:
    members = [
        Member(
            member.member_id,
            member.client_id,
            member.host.removeprefix("/"),
            tuple(sorted(TopicPartition(_topic(one), one.partition) for one in member.assignment.topic_partitions))
            if member.assignment
            else (),
            member.group_instance_id,
        )
        for member in answer.members
    ]
    node = answer.coordinator
    return Group(
        answer.group_id,
        kafka_words(answer.state.name),
        answer.type.name.lower(),
        answer.partition_assignor,
        Broker(node.id, node.host, node.port, node.rack) if node is not None else None,
        in_order(members),
    )


def _topic(one: Any) -> str:
    """Return a topic of a member's assignment, which a client wrote and no broker has checked: bytes that are not UTF-8 are escaped."""
    try:
        return str(one.topic)
    except UnicodeDecodeError as wrong:
        return wrong.object.decode("utf-8", "backslashreplace")


def in_order(members: Iterable[M]) -> tuple[M, ...]:
    return tuple(sorted(members, key=lambda member: (member.client_id, member.member_id)))


def gathered(commits: Iterable[TopicCommits]) -> GroupOffsets:
    found = GroupOffsets()
    for one in commits:
        if one.partitions:
            found.offsets[one.topic] = dict(zip(one.partitions, one.offsets, strict=True))
        if one.epochs:
            found.epochs[one.topic] = dict(one.epochs)
        if one.metadata:
            found.metadata[one.topic] = dict(one.metadata)
    return found


def offsets_of(answers: Sequence[Any], doing: str) -> GroupOffsets | KopsError:
    """Convert an answer to columns; the work per partition is done in C."""
    if any(map(_ERROR, answers)):
        failed = next(answer for answer in answers if answer.error is not None)
        return translate(failed.error, f"{doing} ({failed.topic}:{failed.partition})")
    found = GroupOffsets()
    for topic, some in groupby(answers, _TOPIC):
        commits = list(some)
        offsets = list(map(_OFFSET, commits))
        if min(offsets) < 0:  # requested by name, and without a commit
            commits, offsets = [commit for commit in commits if commit.offset >= 0], [offset for offset in offsets if offset >= 0]
        if not commits:
            continue
        partitions = list(map(_PARTITION, commits))
        found.offsets.setdefault(topic, {}).update(zip(partitions, offsets, strict=True))
        epochs = list(map(_EPOCH, commits))
        if epochs.count(None) < len(epochs):
            known = {partition: epoch for partition, epoch in zip(partitions, epochs, strict=True) if epoch is not None}
            found.epochs.setdefault(topic, {}).update(known)
        if unread := _unread(commits):
            found.metadata.setdefault(topic, {}).update(dict.fromkeys(unread))
    return found


def _unread(answers: Sequence[Any]) -> list[int]:
    try:
        if not any(map(_METADATA, answers)):
            return []
    except UnicodeDecodeError:
        pass
    return [answer.partition for answer in answers if _has_metadata(answer)]


def _has_metadata(answer: Any) -> bool:
    """Whether there is metadata; it cannot be trusted: confluent-kafka reads past its end, into whatever follows in memory, until a NUL."""
    try:
        return bool(answer.metadata)
    except UnicodeDecodeError:
        return True

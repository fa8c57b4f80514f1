"""The requests of a transaction (KIP-98, KIP-447), in versions before KIP-890, which every broker since 0.11 supports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kops.formats.batches.header import Producer
from kops.gateways.wire.kafka_python import request_class

_VERSIONS = {"min_version": 0, "max_version": 3}


@dataclass(frozen=True)
class Position:
    """The progress of a replay.

    :param offset: the next one of the source
    :param note: stored with it
    """

    offset: int
    note: str


@dataclass(frozen=True)
class Names:
    """The names by which brokers know a writer.

    :param group: its committed offset is the position, which shows how far records were written
    :param topic: of the partition, ``anchor``, under which the position is committed: any topic in the cluster
    :param transactional_id: None for a writer without transactions
    :param progress_topic: where transactions store the position too, with the group's name as key; None: nowhere
    """

    group: str
    topic: str
    anchor: int = 0
    transactional_id: str | None = None
    progress_topic: str | None = None


def committed_position(names: Names) -> Any:
    request = request_class("OffsetFetchRequest")
    topic = request.OffsetFetchRequestTopic(name=names.topic, partition_indexes=[names.anchor])
    # require_stable (KIP-447) comes with version 7; version 8 asks for several groups, in another layout
    return request(group_id=names.group, topics=[topic], require_stable=True, min_version=1, max_version=7)


def add_partition(names: Names, who: Producer, topic: str, partition: int) -> Any:
    request = request_class("AddPartitionsToTxnRequest")
    wanted = request.AddPartitionsToTxnTopic(name=topic, partitions=[partition])
    return request(
        v3_and_below_transactional_id=names.transactional_id,
        v3_and_below_producer_id=who.producer_id,
        v3_and_below_producer_epoch=who.epoch,
        v3_and_below_topics=[wanted],
        **_VERSIONS,
    )


def add_offsets(names: Names, who: Producer) -> Any:
    request = request_class("AddOffsetsToTxnRequest")
    return request(**_identity(names, who), group_id=names.group, **_VERSIONS)


def commit_in_transaction(names: Names, who: Producer, position: Position) -> Any:
    request = request_class("TxnOffsetCommitRequest")
    topics = _topics(request, "TxnOffsetCommitRequest", names, position)
    # as of a consumer that assigns partitions itself: the coordinator accepts its commits while the group has no members
    no_member = {"generation_id": -1, "member_id": "", "group_instance_id": None}
    return request(**_identity(names, who), **no_member, group_id=names.group, topics=topics, **_VERSIONS)


def commit_alone(names: Names, position: Position) -> Any:
    request = request_class("OffsetCommitRequest")
    topics = _topics(request, "OffsetCommitRequest", names, position)
    no_member = {"generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None}
    return request(group_id=names.group, **no_member, topics=topics, min_version=2, max_version=8)


def end_transaction(names: Names, who: Producer, *, committed: bool) -> Any:
    request = request_class("EndTxnRequest")
    return request(**_identity(names, who), committed=committed, **_VERSIONS)


def _identity(names: Names, who: Producer) -> dict[str, Any]:
    return {"transactional_id": names.transactional_id, "producer_id": who.producer_id, "producer_epoch": who.epoch}


def _topics(request: Any, prefix: str, names: Names, position: Position) -> list[Any]:
    topic = getattr(request, f"{prefix}Topic")
    partition = getattr(topic, f"{prefix}Partition")
    where = {"partition_index": names.anchor, "committed_offset": position.offset, "committed_leader_epoch": -1}
    return [topic(name=names.topic, partitions=[partition(**where, committed_metadata=position.note)])]

"""What the clients answer about groups -> kops' own types. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kops.core.models import Broker, Group, Member, TopicPartition

_CONSUMER_PROTOCOLS = ("", "consumer")


def kafka_words(state: str) -> str:
    """Return a group's state in upper case: ``PreparingRebalance`` and confluent-kafka's own word both PREPARING_REBALANCE."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", state).upper()
    return words.replace("REBALANCING", "REBALANCE") if words else "UNKNOWN"


def listed_group(answer: Mapping[str, Any]) -> Group:
    """Return a group from kafka-python's ListGroups: brokers before 4.0 tell no type, those before 2.6 no state."""
    protocol_type = answer["protocol_type"]
    named = (answer.get("group_type") or "classic").lower()
    is_other = named == "classic" and protocol_type not in _CONSUMER_PROTOCOLS
    return Group(answer["group_id"], kafka_words(answer.get("group_state") or ""), protocol_type if is_other else named)


def group_of(answer: Any) -> Group:
    """Return a group from confluent-kafka's ConsumerGroupDescription."""
    members = [
        Member(
            member.member_id,
            member.client_id,
            member.host.removeprefix("/"),
            tuple(sorted(TopicPartition(one.topic, one.partition) for one in member.assignment.topic_partitions))
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
        tuple(sorted(members, key=lambda member: (member.client_id, member.member_id))),
    )

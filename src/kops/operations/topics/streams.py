"""Which topics a Kafka Streams application depends on, and by what that is known."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kops.core.errors import KopsError, Unreachable
from kops.core.models import Committed, Group, TopicPartition
from kops.core.offsets.arithmetic import is_streams_metadata
from kops.core.topics.names import STREAMS_SUFFIXES, streams_application
from kops.operations.groups.matching import is_live_streams
from kops.operations.services import Services
from kops.operations.topics.readers import Readers


def streams_uses(services: Services, topics: Collection[str], readers: Readers) -> dict[str, list[str]]:
    """Return for each topic in what ways Kafka Streams uses it, as far as that shows: half sentences after the topic's name.

    An application's group is known by its members' assignor or type, by internal topics that begin with its name, or by
    what it stores with its offsets.
    """
    owners = {streams_application(name, readers.group_ids) for name in services.kafka.topics.names()}
    uses: dict[str, list[str]] = {topic: [] for topic in topics}
    readers_by_topic = {topic: {*readers.committed.get(topic, ()), *readers.active.get(topic, ())} for topic in topics}
    applications = _applications(services, {group for groups in readers_by_topic.values() for group in groups}, owners)
    for topic in topics:
        if topic.endswith(STREAMS_SUFFIXES):
            owner = streams_application(topic, readers.group_ids)
            what = f"the Kafka Streams application {owner}" if owner else "a Kafka Streams application, by its name"
            uses[topic].append(f"is an internal topic of {what}")
        uses[topic] += [
            f"is read by the Kafka Streams application {group}" for group in sorted(readers_by_topic[topic]) if group in applications
        ]
    return uses


def _applications(services: Services, group_ids: Collection[str], owners: Collection[str | None]) -> set[str]:
    found = {group_id for group_id in group_ids if group_id in owners}
    unsure = sorted(set(group_ids) - found)
    if not unsure:
        return found
    groups = services.kafka.groups
    try:
        described = groups.describe_or_errors(unsure)
        committed = groups.committed_or_errors(unsure)
    except Unreachable:
        raise
    except KopsError:
        return found  # readers_of has said already that not every group could be asked
    return found | {name for name in unsure if _is_streams(described[name]) or _stores_time(committed[name])}


def _is_streams(group: Group | KopsError) -> bool:
    return isinstance(group, Group) and (group.type == "streams" or is_live_streams(group))


def _stores_time(offsets: Mapping[TopicPartition, Committed] | KopsError) -> bool:
    return not isinstance(offsets, KopsError) and any(is_streams_metadata(committed.metadata) for committed in offsets.values())

"""Coordinators that take over groups, and report as DEAD for a moment those that they do not know yet."""

from __future__ import annotations

from collections.abc import Collection

from kops.core.errors import AuthorizationFailed, KopsError, TimedOut
from kops.core.models import TopicPartition
from kops.formats.groups.consumer_offsets import TOPIC, partition_of_group
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.offsets import Offsets


def unsure(client: Client, group_ids: Collection[str]) -> dict[str, KopsError]:
    """Wait until coordinators know the groups that others have left to them; return those of which that is not known, and why.

    A coordinator knows what is below the high watermark of its partition. Its leader answers ListOffsets once that has passed all that
    earlier leaders have written (KIP-207). Empty where ``__consumer_offsets`` does not exist, or may not be described.
    """
    topic = client.describe_topics([TOPIC])[TOPIC]
    if isinstance(topic, KopsError):
        return {}
    places = {name: TopicPartition(TOPIC, partition_of_group(name, len(topic.partitions))) for name in group_ids}
    ends = Offsets(client).bounds_or_errors(places.values())
    late = {name: ends[place] for name, place in places.items()}
    return {
        name: TimedOut(f"whether there is a group {name} is not known: {why.message}", hint="run the command again in a moment", group=name)
        for name, why in late.items()
        if isinstance(why, KopsError) and not isinstance(why, AuthorizationFailed)
    }

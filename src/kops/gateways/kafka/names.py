"""Names of topics and groups for completion: one quick request each, by the client that loads fastest."""

from __future__ import annotations

from kops.gateways.kafka.client import Client


def topic_names(client: Client, seconds: float) -> list[str]:
    """Return the names of all topics.

    :raises KafkaException: when the brokers do not answer in time
    """
    return sorted(client.admin.list_topics(timeout=seconds).topics)


def group_names(client: Client, prefix: str, seconds: float) -> list[str]:
    """Return the ids of groups that begin with a prefix.

    Share, streams and Connect groups are listed only by an old request that also describes every group, so it is sent only if no other
    group has this prefix.

    :raises KafkaException: when the brokers do not answer in time
    """
    found = client.admin.list_consumer_groups(request_timeout=seconds).result(seconds)
    names = sorted(group.group_id for group in found.valid if group.group_id.startswith(prefix))
    if names:
        return names
    return sorted(group.id for group in client.list_groups(timeout=seconds) if group.id.startswith(prefix))

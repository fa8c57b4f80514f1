"""What is unsafe about a topic that somebody wants to create."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kops.core.durations import duration_text
from kops.core.topic_settings import MIN_IN_SYNC, POLICY, RETENTION, UNCLEAN

SHOWN_NAMES = 5
SHORT_RETENTION_MS = 3_600_000
"""Below an hour, a consumer that is restarted by a person loses records."""


@dataclass(frozen=True)
class Effective:
    """A topic as it would be.

    :param replication_factor: None when only the brokers know
    :param settings: all that matter, the brokers' defaults included
    :param given: the settings that are set on the topic itself
    """

    name: str
    replication_factor: int | None
    settings: Mapping[str, str]
    given: Mapping[str, str]


def warnings_for(topics: Sequence[Effective], broker_count: int) -> list[str]:
    """Return what the approver should know, a sentence each; once for all topics that it is true of."""
    names: dict[str, list[str]] = {}
    for topic in topics:
        for text in (*_replication(topic, broker_count), *_cleanup(topic), *_rest(topic)):
            names.setdefault(text, []).append(topic.name)
    return [f"{_some(concerned)}: {text}" for text, concerned in names.items()]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more


def _replication(topic: Effective, broker_count: int) -> list[str]:
    factor, minimum = topic.replication_factor, topic.settings.get(MIN_IN_SYNC)
    if factor is None:
        return []
    texts = []
    if factor == 1 and broker_count > 1:
        texts.append(f"replication factor 1 on a cluster of {broker_count} brokers: records are lost with the disk of one of them")
    if minimum is None or not minimum.isdigit():
        return texts
    if int(minimum) > factor:
        texts.append(f"min.insync.replicas {minimum} is above the replication factor {factor}: producers with acks=all can write nothing")
    elif int(minimum) == factor > 1:
        texts.append(
            f"min.insync.replicas {minimum} equals the replication factor: producers with acks=all stop as soon as one broker is down"
        )
    return texts


def _cleanup(topic: Effective) -> list[str]:
    policy = topic.settings.get(POLICY)
    if policy is None:
        return []
    policies, retention = set(policy.split(",")) - {""}, topic.settings.get(RETENTION, "")
    texts = []
    if not policies:
        texts.append("an empty cleanup.policy keeps every record for ever")
    if "compact" in policies:
        texts.append("compaction needs a key on every record, and none is in sight yet: producers that send no key are rejected")
    if policies == {"compact"} and RETENTION in topic.given:
        texts.append("retention.ms has no effect on a topic that is only compacted; cleanup.policy=compact,delete expires records too")
    if "delete" in policies and retention.isdigit():
        if policies == {"compact", "delete"}:
            texts.append(f"a key that is not written again within {duration_text(int(retention))} disappears, its latest value too")
        if int(retention) < SHORT_RETENTION_MS:
            texts.append(f"records are deleted after {duration_text(int(retention))}: a consumer that is down for longer misses them")
    return texts


def _rest(topic: Effective) -> list[str]:
    texts = []
    if topic.settings.get(UNCLEAN) == "true":
        texts.append("unclean.leader.election.enable=true: records that were acknowledged can be lost when brokers fail")
    if "." in topic.name and "_" in topic.name:
        texts.append("the name has both '.' and '_', which are the same in Kafka's metric names: best use only one of them")
    if topic.name.startswith("__"):
        texts.append("names that begin with __ are those of Kafka's own topics")
    return texts

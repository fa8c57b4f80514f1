"""Complete descriptions of topics: partitions, settings, size on disk, compaction, readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kops.core.models import Setting, Topic, TopicPartition, value_of
from kops.core.streams.topics import owner_of
from kops.core.topics.settings import POLICY
from kops.operations.offsets.tiers import COLUMNS, tier_columns
from kops.operations.services import Services
from kops.operations.topics.impact import Readers, readers_of
from kops.operations.topics.listing import known_settings, list_row
from kops.operations.topics.sizes import replica_sizes, size_of

COMPACTION = (
    POLICY,
    "delete.retention.ms",
    "max.compaction.lag.ms",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "segment.bytes",
    "segment.ms",
)
"""The settings that decide when older records of a key are removed; segment size and age count, as the active one is never compacted."""


def describe_bodies(
    services: Services, found: Iterable[Topic], *, all_settings: bool = False, brief: bool = False
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return complete descriptions of topics, and what could not be read. The settings of a topic are None if they may not be seen.

    :param all_settings: include Kafka's defaults
    :param brief: without sizes and readers, which need requests to every broker and about every group
    """
    topics = list(found)
    settings, hidden = known_settings(services, topics)
    there = [topic for topic in topics if topic.name in settings]
    if brief:
        return [_body(topic, settings[topic.name], all_settings) for topic in there], hidden
    sizes, problems = replica_sizes(services, there)
    readers = readers_of(services, [topic.name for topic in there]) if there else Readers({}, {})
    tiers, unknown = tier_columns(services, (place for topic in there for place in topic.places), settings)
    bodies = [
        _tiered(_body(topic, settings[topic.name], all_settings), tiers)
        | size_of(topic, sizes, whole=not problems)
        | _readers(topic.name, readers)
        for topic in there
    ]
    return bodies, [*hidden, *problems, *unknown, *([f"not every group could be asked: {readers.unseen}"] if readers.unseen else [])]


def _tiered(body: dict[str, Any], tiers: Mapping[TopicPartition, Mapping[str, Any]]) -> dict[str, Any]:
    none = dict.fromkeys(COLUMNS.values())
    rows = [row | tiers.get(TopicPartition(body["name"], row["partition"]), none) for row in body["partitions"]]
    return body | {"partitions": rows}


def _readers(name: str, readers: Readers) -> dict[str, Any]:
    committed, active = set(readers.committed.get(name, ())), set(readers.active.get(name, ()))
    return {
        "streams_application": owner_of(name, readers.group_ids),
        "readers": [{"group": group, "committed": group in committed, "active": group in active} for group in sorted(committed | active)],
    }


def _body(topic: Topic, settings: dict[str, Setting] | None, all_settings: bool) -> dict[str, Any]:
    shown = [setting for _, setting in sorted((settings or {}).items()) if all_settings or setting.source != "default"]
    row = list_row(topic)
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "internal": topic.internal,
        "replication_factor": topic.replication_factor,
        "under_replicated": row["under_replicated"],
        "offline": row["offline"],
        "partitions": [
            {
                "partition": partition.partition,
                "leader": partition.leader,
                "replicas": list(partition.replicas),
                "in_sync_replicas": list(partition.in_sync_replicas),
            }
            for partition in topic.partitions
        ],
        "settings": None if settings is None else [_setting(setting) for setting in shown],
        "compaction": None if settings is None else _compaction(settings),
    }


def _compaction(settings: Mapping[str, Setting]) -> list[dict[str, Any]]:
    """Return the settings that govern compaction, including defaults; empty for a topic that is not compacted."""
    if "compact" not in value_of(settings, POLICY).split(","):
        return []
    return [_setting(settings[name]) for name in COMPACTION if name in settings]


def _setting(setting: Setting) -> dict[str, Any]:
    return {"name": setting.name, "value": setting.value, "source": setting.source, "sensitive": setting.sensitive}

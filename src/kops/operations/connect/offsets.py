"""``kops connect offsets show``: offsets of sources, and of sinks with the ends of their partitions (KIP-875)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kops.core.connect.models import Connector
from kops.core.errors import KopsError, answers_of
from kops.core.models import Bounds, TopicPartition
from kops.operations.services import Services

Row = dict[str, Any]
TOPIC, PARTITION, OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"
"""The keys of a sink's partitions and offsets."""


def offset_rows(services: Services, connectors: Sequence[Connector], problems: dict[str, KopsError]) -> list[Row]:
    """Return the offsets of connectors, one row each.

    The format of a source's partitions and offsets depends on its plugin. For sinks the lag is added
    if brokers are configured.

    :param problems: receives why the offsets of a connector are not known, by its name
    """
    answers = answers_of((connector.name for connector in connectors), services.connect.offsets, problems)
    found = [(connector, answers[connector.name]) for connector in connectors if connector.name in answers]
    sinks = {
        place
        for connector, offsets in found
        if connector.type == "sink"
        for one in offsets
        if (place := partition_of(one["partition"])) is not None
    }
    ends = services.kafka.offsets.bounds_or_errors(sinks) if sinks and services.connection.bootstrap_servers else {}
    return [
        _row(connector, one, ends) for connector, offsets in found for one in sorted(offsets, key=lambda each: _order(each["partition"]))
    ]


def _order(partition: Mapping[str, Any]) -> tuple[str, int, str]:
    place = partition_of(partition)
    return ("", 0, name_of(partition)) if place is None else (place.topic, place.partition, "")


def _row(connector: Connector, one: Mapping[str, Any], ends: Mapping[TopicPartition, Bounds | KopsError]) -> Row:
    partition, offset = one["partition"], one.get("offset")
    row: Row = {"connector": connector.name, "type": connector.type, "partition": partition, "offset": offset}
    place, reached = partition_of(partition), position_of(offset)
    end = ends.get(place) if connector.type == "sink" and place is not None else None
    row["log_end_offset"] = end.log_end_offset if isinstance(end, Bounds) else None
    row["lag"] = end.log_end_offset - reached if isinstance(end, Bounds) and reached is not None else None
    return row


def partition_of(partition: Mapping[str, Any]) -> TopicPartition | None:
    """Return a sink's partition; None if it does not have the keys of one."""
    topic, number = partition.get(TOPIC), partition.get(PARTITION)
    return TopicPartition(topic, number) if isinstance(topic, str) and isinstance(number, int) else None


def position_of(offset: Any) -> int | None:
    """Return a sink's offset; None if there is none or it does not have the key of one."""
    number = offset.get(OFFSET) if isinstance(offset, Mapping) else None
    return number if isinstance(number, int) else None


def name_of(partition: Mapping[str, Any]) -> str:
    """Format a partition: ``orders:0`` of a sink, compact JSON of a source."""
    place = partition_of(partition)
    if place is not None and set(partition) == {TOPIC, PARTITION}:
        return str(place)
    return json.dumps(partition, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def shown_offset(offset: Any) -> Any:
    """Format an offset for people: a number for a sink, compact JSON for a source."""
    if isinstance(offset, Mapping):
        return offset[OFFSET] if set(offset) == {OFFSET} else json.dumps(offset, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return offset

"""The topic whose records are archived or sent again: on this cluster, or on that of another context."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kops.config.connection import Connection
from kops.core.errors import NotFound, Refused, UsageProblem
from kops.core.models import Bounds, TopicPartition
from kops.core.records.models import OffsetRange
from kops.core.records.ranges import Span, parse_span, resolve_span
from kops.core.selection import parse_selection, partitions_selected
from kops.gateways.kafka import Kafka
from kops.operations.services import Services


@dataclass(frozen=True)
class Source:
    """Where records come from."""

    connection: Connection
    kafka: Kafka


@dataclass(frozen=True)
class Range:
    """The part of a topic that is read.

    :param partitions: total number of partitions of the topic
    """

    topic: str
    ranges: Mapping[int, OffsetRange]
    partitions: int
    notes: tuple[str, ...] = ()

    @property
    def offsets(self) -> int:
        return sum(found.end - found.start for found in self.ranges.values())


def source_of(services: Services, context: str | None) -> Source:
    """Return the source of a context.

    :raises ConfigError: when there is no such context
    """
    if context is None:
        return Source(services.connection, services.kafka)
    from kops.config.load import resolve

    environ = {name: value for name, value in os.environ.items() if not name.startswith("KOPS_")}
    connection = resolve(services.directories, environ, context=context)
    return Source(connection, Kafka(connection))


def settings_of(connection: Connection, what: str) -> dict[str, str]:
    """Return a connection in librdkafka's terms, secrets included, after checking that tasks can open it.

    :raises Refused: when they cannot
    """
    from kops.config.librdkafka import librdkafka_settings
    from kops.gateways.wire.connections import not_honoured

    settings: dict[str, Any] = librdkafka_settings(connection)
    names = not_honoured(settings)
    if names:
        raise Refused(
            f"the tasks of a replay cannot keep to {', '.join(names)}, which {connection.label} sets for the {what}",
            hint="leave it out in a separate context; they know PLAINTEXT, TLS, mTLS with PEM files, SASL PLAIN and SCRAM",
            properties=names,
        )
    return settings


def range_of(
    services: Services, source: Source, text: str, span: str | None = None, *, from_group: str | None = None, until_group: str | None = None
) -> Range:
    """Decide which offsets are read: at most up to where everything is committed now.

    :param text: topic, with or without partitions
    :param span: ``FROM..TO``; ``from_group`` and ``until_group``: the committed offsets of a group in place of either
    :raises NotFound: when there is no such topic or partition, or a group has no offsets there
    """
    selection = parse_selection(text)
    if from_group and until_group is None and span and not span.startswith(".."):
        raise UsageProblem("--from-group says where it begins, and --range too", hint="leave FROM out: --range ..TO")
    existing = source.kafka.offsets.partitions_of([selection.topic])
    partitions = partitions_selected([selection], existing)
    bounds = source.kafka.offsets.bounds(partitions)
    stable = source.kafka.offsets.bounds(partitions, isolation="read_committed")
    wanted = parse_span(span, services.now()) if span is not None else Span()
    at_times = {time: source.kafka.offsets.at_time(partitions, time) for time in set(wanted.times)}
    ranges, notes = resolve_span(wanted, bounds, at_times)
    starts, ends = (_committed(source, name, partitions) for name in (from_group, until_group))
    found = {}
    for place, given in ranges.items():
        start, end = starts.get(place, given.start), min(ends.get(place, given.end), stable[place].log_end_offset)
        if start < bounds[place].log_start_offset:
            notes.append(f"{place} begins at offset {bounds[place].log_start_offset}: what was before is gone")
        start = max(start, bounds[place].log_start_offset)
        found[place.partition] = OffsetRange(start, max(start, end))
        if stable[place].log_end_offset < min(ends.get(place, given.end), bounds[place].log_end_offset):
            notes.append(f"{place} has an open transaction at offset {stable[place].log_end_offset}: nothing from there on is sent")
    return Range(selection.topic, found, len(existing[selection.topic]), tuple(notes))


def _committed(source: Source, group: str | None, partitions: tuple[TopicPartition, ...]) -> dict[TopicPartition, int]:
    if group is None:
        return {}
    found = source.kafka.groups.committed([group])[group]
    offsets = {place: committed.offset for place in partitions if (committed := found.get(place)) is not None}
    if not offsets:
        topic = partitions[0].topic
        raise NotFound(f"group {group} has no committed offsets of {topic}", hint="`kops offsets show GROUP` shows what it has")
    return offsets


def has_older(source: Source, found: Range, milliseconds: int) -> bool:
    """Whether the range of a partition begins with records before a time."""
    places = [TopicPartition(found.topic, number) for number, some in found.ranges.items() if not some.empty]
    first = source.kafka.offsets.at_time(places, milliseconds) if places else {}
    return any((at := first[place]) is None or at > found.ranges[place.partition].start for place in places)


def refuse_lost_records(source: Source, topic: str, starts: Mapping[int, int]) -> None:
    """Refuse when records that are still to be sent are no longer in the log."""
    bounds: Mapping[TopicPartition, Bounds] = source.kafka.offsets.bounds(TopicPartition(topic, number) for number in starts)
    for place, bound in bounds.items():
        if bound.log_start_offset > starts[place.partition]:
            raise Refused(
                f"{place} no longer has offset {starts[place.partition]}: it begins at {bound.log_start_offset}",
                hint="plan the replay again from what is there",
            )

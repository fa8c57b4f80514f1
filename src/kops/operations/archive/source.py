"""The topic whose records are archived or sent again: on this cluster, or on that of another context."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kops.config.connection import Connection
from kops.core.errors import NotFound, Refused, UsageProblem
from kops.core.findings import counted
from kops.core.models import Bounds, TopicPartition
from kops.core.records.models import OffsetRange
from kops.core.records.ranges import Span, parse_span, range_text, resolve_span
from kops.core.selection import parse_selection, partitions_selected
from kops.core.times import ANY_TIME, Times
from kops.gateways.kafka import Kafka
from kops.operations.clock import clock_notes
from kops.operations.engine.spark import is_local
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.operations.engine.spark import Engine
    from kops.spark.replay.tasks import TimeWindow


@dataclass(frozen=True)
class RecordSource:
    """Where records come from."""

    connection: Connection
    kafka: Kafka


@dataclass(frozen=True)
class Range:
    """The part of a topic that is read.

    :param partitions: total number of partitions of the topic
    :param times: the timestamps of the records that are meant; the ranges are where they can be
    """

    topic: str
    ranges: Mapping[int, OffsetRange]
    partitions: int
    notes: tuple[str, ...] = ()
    times: Times = ANY_TIME

    @property
    def offsets(self) -> int:
        return sum(found.end - found.start for found in self.ranges.values())


def source_of(services: Services, context: str | None) -> RecordSource:
    """Return the source of a context.

    :raises ConfigError: when there is no such context
    """
    if context is None:
        return RecordSource(services.connection, services.kafka)
    from kops.config.load import resolve

    environ = {name: value for name, value in os.environ.items() if not name.startswith("KOPS_")}
    connection = resolve(services.directories, environ, context=context)
    return RecordSource(connection, Kafka(connection))


def settings_of(connection: Connection, what: str, master: str | None = None) -> dict[str, str]:
    """Return a connection in librdkafka's terms, secrets included, after checking that tasks can open it.

    :param master: Spark's, where the tasks run; None: on this machine
    :raises Refused: when they cannot
    """
    from kops.config.librdkafka import librdkafka_settings
    from kops.gateways.wire.connections import not_honoured

    settings: dict[str, Any] = librdkafka_settings(connection)
    names = not_honoured(settings)
    if master is not None and not is_local(master) and connection.oauth.token_command:
        names = [*names, "oauth_token_command"]
    if names:
        raise Refused(
            f"the tasks of a replay cannot keep to {', '.join(names)}, which {connection.label} sets for the {what}",
            hint="leave it out in a separate context; they know PLAINTEXT, TLS, mTLS with PEM files, PLAIN, SCRAM and OAUTHBEARER,"
            " from oauth_token_command on this machine only",
            properties=names,
        )
    return settings


def range_of(
    services: Services,
    source: RecordSource,
    text: str,
    span: str | None = None,
    *,
    from_group: str | None = None,
    until_group: str | None = None,
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
    since = wanted.times.first
    ranges, notes = resolve_span(wanted, bounds, {} if since is None else source.kafka.offsets.at_time(partitions, since))
    notes += clock_notes(services, source.kafka) if wanted.is_relative else []
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
    return Range(selection.topic, found, len(existing[selection.topic]), tuple(notes), wanted.times)


def where_times_are(engine: Engine, settings: Mapping[str, str], found: Range) -> tuple[Range, dict[int, TimeWindow]]:
    """Narrow a range of time to the offsets between the first and the last record of that time, and say how many there are.

    Reads all of the range: any record that follows may be of that time.

    :param settings: of the source, as ``settings_of`` returns them
    """
    tasks = engine.tasks  # must have started before anything else imports pyspark
    from kops.spark.replay.jobs import PartitionRange
    from kops.spark.replay.tasks import times_found

    engine.services.progress.step(f"looking through {found.topic} for records of that time")
    parts = [PartitionRange(number, some.start, some.end) for number, some in sorted(found.ranges.items()) if not some.empty]
    windows = times_found(tasks, found.topic, settings, parts, found.times)
    ranges = {number: OffsetRange(window.start, window.end) for number, window in windows.items()}
    inside, looked = (sum(getattr(window, name) for window in windows.values()) for name in ("inside", "looked"))
    said = (
        f"{counted(inside, 'record')} {'is' if inside == 1 else 'are'} {range_text(found.times)}: {counted(looked, 'offset')}"
        f" {'was' if looked == 1 else 'were'} checked, as timestamps can be out of order"
    )
    return replace(found, ranges={**found.ranges, **ranges}, notes=(*found.notes, said)), windows


def _committed(source: RecordSource, group: str | None, partitions: tuple[TopicPartition, ...]) -> dict[TopicPartition, int]:
    if group is None:
        return {}
    found = source.kafka.groups.committed([group])[group]
    offsets = {place: committed.offset for place in partitions if (committed := found.get(place)) is not None}
    if not offsets:
        topic = partitions[0].topic
        raise NotFound(f"group {group} shows no committed offsets of {topic}", hint="`kops offsets show GROUP` shows what it has")
    return offsets


def has_older(source: RecordSource, found: Range, milliseconds: int) -> bool:
    """Whether the range of a partition begins with records before a time."""
    places = [TopicPartition(found.topic, number) for number, some in found.ranges.items() if not some.empty]
    first = source.kafka.offsets.at_time(places, milliseconds) if places else {}
    return any((at := first[place]) is None or at > found.ranges[place.partition].start for place in places)


def refuse_lost_records(source: RecordSource, topic: str, starts: Mapping[int, int]) -> None:
    """Refuse when records that are still to be sent are no longer in the log."""
    bounds: Mapping[TopicPartition, Bounds] = source.kafka.offsets.bounds(TopicPartition(topic, number) for number in starts)
    for place, bound in bounds.items():
        if bound.log_start_offset > starts[place.partition]:
            raise Refused(
                f"{place} no longer has offset {starts[place.partition]}: it begins at {bound.log_start_offset}",
                hint="plan the replay again from what is there",
            )

"""Dead letters: the dead-letter topic of a connector, its records with their errors in words, and their number per cause."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kops.core.errors import NotFound
from kops.core.records.models import Record, timestamp_text
from kops.formats.dead_letters import STAGES, DeadLetter, dead_letter
from kops.operations.records.consume import Stream
from kops.operations.records.formats import FormatOfEach
from kops.operations.records.rows import row_or_bytes
from kops.operations.services import Services

TOPIC_SETTING = "errors.deadletterqueue.topic.name"
HEADERS_SETTING = "errors.deadletterqueue.context.headers.enable"
TOLERANCE_SETTING = "errors.tolerance"
NO_HEADERS = "no error headers"


def topic_of(services: Services, connector: str) -> tuple[str, list[str]]:
    """Return the dead-letter topic of a connector, and notes about its settings.

    :raises NotFound: when the connector does not exist or has no dead-letter topic
    """
    from kops.gateways.connect.client import Connect

    found = Connect(services.connection).connector(connector)
    topic = found.config.get(TOPIC_SETTING)
    if not topic:
        kind = "a source, and only sinks have one" if found.type == "source" else f"{TOPIC_SETTING} is not set"
        hint = "name the topic itself: kops records dead-letters TOPIC"
        raise NotFound(f"connector {connector} has no dead-letter topic: {kind}", hint=hint)
    notes = []
    if found.config.get(HEADERS_SETTING, "false").lower() != "true":
        notes.append(f"{connector} writes no error headers: {HEADERS_SETTING}=true would say why each record is here")
    if found.config.get(TOLERANCE_SETTING, "none").lower() != "all":
        notes.append(f"{connector} sends nothing here: its tasks fail instead, for {TOLERANCE_SETTING} is not all")
    return topic, notes


def row(record: Record, key: FormatOfEach, value: FormatOfEach, stream: Stream) -> dict[str, Any]:
    """Return a dead letter as a row; what cannot be decoded is shown as bytes, since that may be why it is a dead letter."""
    return {**row_or_bytes(record, key(record.key), value(record.value), stream.notes), **described(dead_letter(record.headers))}


def described(found: DeadLetter | None) -> dict[str, Any]:
    """Return what is known about the error of a dead letter, as columns."""
    if found is None:
        return {"written_by": None, "error": None, "cause": None, "origin": None, "sentence": NO_HEADERS}
    error = {
        "connector": found.connector,
        "task": found.task,
        "group": found.group,
        "stage": found.stage,
        "stage_text": STAGES.get(found.stage or ""),
        "class": found.class_name,
        "exception": found.exception,
        "message": found.message,
        "stack_trace": found.stack_trace,
        "delivery_count": found.delivery_count,
    }
    origin = {
        "topic": found.topic,
        "partition": found.partition,
        "offset": found.offset,
        "timestamp": timestamp_text(found.timestamp_ms),
        "timestamp_ms": found.timestamp_ms,
    }
    return {"written_by": found.written_by, "error": error, "cause": found.cause, "origin": origin, "sentence": found.sentence}


@dataclass
class Cause:
    """The dead letters with the same cause, connector or group, task and stage."""

    first: Record
    last: Record
    count: int = 0
    example: str = ""
    topics: set[str] = field(default_factory=set)


def counted(batches: Iterable[list[Record]], stream: Stream) -> list[dict[str, Any]]:
    """Count dead letters per cause and task, the most frequent first."""
    found: dict[tuple[Any, ...], Cause] = {}
    for batch in batches:
        stream.given += len(batch)
        for record in batch:
            letter = dead_letter(record.headers)
            one = found.setdefault(_group(letter), Cause(record, record))
            one.last = record
            one.count += 1
            one.example = one.example or (letter.cause if letter else NO_HEADERS)
            if letter is not None and letter.topic is not None:
                one.topics.add(letter.topic)
    ordered = sorted(found.items(), key=lambda item: (-item[1].count, str(item[0])))
    return [_count_row(group, cause) for group, cause in ordered]


def _group(letter: DeadLetter | None) -> tuple[Any, ...]:
    if letter is None:
        return (NO_HEADERS, None, None, None, None, None)
    return (letter.kind_of_cause, letter.written_by, letter.connector, letter.task, letter.group, letter.stage)


def _count_row(group: tuple[Any, ...], cause: Cause) -> dict[str, Any]:
    kind, written_by, connector, task, group_id, stage = group
    first, last = cause.first, cause.last
    return {
        "count": cause.count,
        "cause": kind,
        "example": cause.example,
        "written_by": written_by,
        "connector": connector,
        "task": task,
        "group": group_id,
        "stage": stage,
        "stage_text": STAGES.get(stage or ""),
        "origin_topics": sorted(cause.topics),
        "first_partition": first.partition,
        "first_offset": first.offset,
        "first_timestamp": timestamp_text(first.timestamp),
        "last_partition": last.partition,
        "last_offset": last.offset,
        "last_timestamp": timestamp_text(last.timestamp),
    }

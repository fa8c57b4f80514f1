"""Reads the headers that dead-letter queues add to a record: where it came from, who could not process it, and why. Pure.

Knows the headers of Kafka Connect (``DeadLetterQueueReporter``), Kafka Streams (KIP-1034, ``ExceptionHandlerUtils``), share groups
(KIP-1191) and Spring (``DeadLetterPublishingRecoverer``, which writes numbers as big-endian bytes). If a header is repeated, for example
because a record was sent again and failed again, the last one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from kops.core.connect.models import root_cause

CONNECT, STREAMS, SHARE_GROUP, SPRING = "connect", "kafka-streams", "share-group", "spring"
PREFIXES: Mapping[str, str] = MappingProxyType(
    {"__connect.errors.": CONNECT, "__streams.errors.": STREAMS, "__dlq.errors.": SHARE_GROUP, "kafka_dlt-": SPRING}
)
"""Who writes the headers, by the prefix of their names."""
STAGES: Mapping[str, str] = MappingProxyType(
    {
        "KEY_CONVERTER": "could not convert the key",
        "VALUE_CONVERTER": "could not convert the value",
        "HEADER_CONVERTER": "could not convert the headers",
        "TRANSFORMATION": "could not transform the record",
        "TASK_PUT": "could not write the record",
        "TASK_POLL": "could not read the record from the source",
        "KAFKA_PRODUCE": "could not produce the record",
        "KAFKA_CONSUME": "could not consume the record",
    }
)
"""Connect's stages (``org.apache.kafka.connect.runtime.errors.Stage``) in words."""
_ORIGIN = {"topic": "topic", "partition": "partition", "offset": "offset"}
_NAMES: Mapping[str, Mapping[str, str]] = {
    CONNECT: {
        **_ORIGIN,
        "connector.name": "connector",
        "task.id": "task",
        "stage": "stage",
        "class.name": "class_name",
        "exception.class.name": "exception",
        "exception.message": "message",
        "exception.stacktrace": "stack_trace",
    },
    STREAMS: {
        **_ORIGIN,
        "exception": "exception",
        "message": "message",
        "stacktrace": "stack_trace",
    },
    SHARE_GROUP: {
        **_ORIGIN,
        "group": "group",
        "delivery.count": "delivery_count",
        "message": "message",
    },
    SPRING: {
        "original-topic": "topic",
        "original-partition": "partition",
        "original-offset": "offset",
        "original-timestamp": "timestamp_ms",
        "original-consumer-group": "group",
        "exception-fqcn": "exception",
        "exception-cause-fqcn": "cause_class",
        "exception-message": "message",
        "exception-stacktrace": "stack_trace",
    },
}
_NUMBERS = ("partition", "offset", "task", "delivery_count", "timestamp_ms")
_BINARY = (4, 8)
_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|\b\d+(?:\.\d+)?\b|\b[0-9a-fA-F]{8,}\b")
_PACKAGE = re.compile(r"\b(?:[a-z_$][\w$]*\.)+(?=[A-Z])")


@dataclass(frozen=True)
class DeadLetter:
    """Where a dead letter came from, and why it is one; None for what its writer does not state.

    :param written_by: connect, kafka-streams, share-group or spring
    :param topic: with ``partition`` and ``offset`` its origin
    :param timestamp_ms: of the original record
    :param stage: where Connect failed (``STAGES``)
    :param class_name: of the converter, transformation or task that failed
    :param exception: class of the exception
    :param cause_class: class of its cause
    """

    written_by: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None
    connector: str | None = None
    task: int | None = None
    group: str | None = None
    stage: str | None = None
    class_name: str | None = None
    exception: str | None = None
    cause_class: str | None = None
    message: str | None = None
    stack_trace: str | None = None
    delivery_count: int | None = None

    @property
    def cause(self) -> str:
        """The reason in one line: the last cause in the stack trace, otherwise the exception and its message."""
        if self.stack_trace and self.stack_trace.strip():
            return _PACKAGE.sub("", root_cause(self.stack_trace))
        parts = [_PACKAGE.sub("", part) for part in (self.cause_class or self.exception, self.message) if part]
        return " ".join(": ".join(parts).split()) or "no reason given"

    @property
    def kind_of_cause(self) -> str:
        """The cause without what differs between records: numbers, and text in quotes."""
        return _VARYING.sub("…", self.cause)

    @property
    def origin(self) -> str | None:
        """Where it came from, such as ``orders:0 at offset 17``."""
        if self.topic is None:
            return None
        at = "" if self.offset is None else f" at offset {self.offset}"
        return self.topic + ("" if self.partition is None else f":{self.partition}") + at

    @property
    def sentence(self) -> str:
        where = f" of {self.origin}" if self.origin else ""
        if self.written_by == CONNECT:
            who = f"task {self.task} of {self.connector}" if self.connector is not None else "a connector"
            what = STAGES.get(self.stage or "", "could not take the record")
            return f"{who} {what}{where}: {self.cause}"
        if self.written_by == SHARE_GROUP:
            times = f" after {self.delivery_count} deliveries" if self.delivery_count is not None else ""
            return f"share group {self.group} gave up the record{where}{times}: {self.cause}"
        who = "Kafka Streams" if self.written_by == STREAMS else f"group {self.group}" if self.group else "a Spring listener"
        return f"{who} could not process the record{where}: {self.cause}"


def dead_letter(headers: Iterable[tuple[str, bytes | None]]) -> DeadLetter | None:
    """Return what the headers of a record state; None when no dead-letter queue wrote them.

    If several did, the one that wrote last counts.
    """
    found: dict[str, dict[str, Any]] = {}
    latest = ""
    for name, data in headers:
        for prefix, writer in PREFIXES.items():
            attribute = _NAMES[writer].get(name.removeprefix(prefix)) if name.startswith(prefix) else None
            if attribute is not None:
                found.setdefault(writer, {})[attribute] = None if data is None else _value(writer, attribute, data)
                latest = writer
    return DeadLetter(latest, **found[latest]) if latest else None


def _value(writer: str, attribute: str, data: bytes) -> Any:
    if attribute not in _NUMBERS:
        return data.decode("utf-8", "replace")
    try:
        return int(data)
    except ValueError:
        return int.from_bytes(data, "big", signed=True) if writer == SPRING and len(data) in _BINARY else None

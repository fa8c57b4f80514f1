"""Reads the headers that dead-letter queues add to a record: where it came from, who could not process it, and why. Pure.

``FAMILIES`` lists who writes which headers. If a header is repeated, because a record was sent again and failed again, the newest counts:
the last one, except with SmallRye, which puts its headers before those that the record had.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from kops.core.connect.models import root_cause
from kops.core.findings import counted

CONNECT, STREAMS, SHARE_GROUP, SPRING = "connect", "kafka-streams", "share-group", "spring"
BINDER, SMALLRYE, SILVERBACK, WATERMILL = "spring-cloud-stream", "smallrye", "silverback", "watermill"
APPLICATION = "application"
"""Whoever writes the binder's names of the origin, which many applications copy, and not its names of exceptions."""
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


@dataclass(frozen=True)
class Family:
    """The headers that one kind of dead-letter queue writes.

    :param who: could not process the record, for people; a group or connector that is known is named instead
    :param headers: attributes of a dead letter by the name of the header; None for a header that is not shown
    :param prefixes: what the names of its headers begin with, where no other headers do
    :param binary: numbers may be Java's int or long in big-endian bytes rather than text
    :param first: attributes of which the first occurrence is the newest
    """

    written_by: str
    who: str
    headers: Mapping[str, str | None]
    prefixes: tuple[str, ...] = ()
    binary: bool = False
    first: frozenset[str] = field(default_factory=frozenset)


def _named(prefix: str, names: Mapping[str, str | None]) -> dict[str, str | None]:
    return {f"{prefix}{name}": attribute for name, attribute in names.items()}


_SPRINGS: Mapping[str, str | None] = {
    "original-topic": "topic",
    "original-partition": "partition",
    "original-offset": "offset",
    "original-timestamp": "timestamp_ms",
    "original-timestamp-type": None,
    "exception-fqcn": "exception",
    "exception-cause-fqcn": "cause_class",
    "exception-message": "message",
    "exception-stacktrace": "stack_trace",
}
_SMALLRYES: Mapping[str, str | None] = {
    **_ORIGIN,
    "exception-class-name": "exception",
    "reason": "message",
    "cause-class-name": "cause_class",
    "cause": "cause_message",
}
_REASONS = ("exception", "message", "cause_class", "cause_message")
FAMILIES = (
    # org.apache.kafka.connect.runtime.errors.DeadLetterQueueReporter
    Family(
        CONNECT,
        "a connector",
        _named(
            "__connect.errors.",
            {
                **_ORIGIN,
                "connector.name": "connector",
                "task.id": "task",
                "stage": "stage",
                "class.name": "class_name",
                "exception.class.name": "exception",
                "exception.message": "message",
                "exception.stacktrace": "stack_trace",
            },
        ),
        ("__connect.errors.",),
    ),
    # KIP-1034: org.apache.kafka.streams.errors.internals.ExceptionHandlerUtils
    Family(
        STREAMS,
        "Kafka Streams",
        _named("__streams.errors.", {**_ORIGIN, "exception": "exception", "message": "message", "stacktrace": "stack_trace"}),
        ("__streams.errors.",),
    ),
    # KIP-1191
    Family(
        SHARE_GROUP,
        "a share group",
        _named("__dlq.errors.", {**_ORIGIN, "group": "group", "delivery.count": "delivery_count", "message": "message"}),
        ("__dlq.errors.",),
    ),
    # org.springframework.kafka.listener.DeadLetterPublishingRecoverer, and with the names of
    # org.springframework.kafka.retrytopic.DeadLetterPublishingRecovererFactory for @RetryableTopic, which shares the group's
    Family(
        SPRING,
        "a Spring listener",
        {
            **_named("kafka_dlt-", {**_SPRINGS, "original-consumer-group": "group"}),
            **_named("kafka_", _SPRINGS),
            "retry_topic-attempts": None,  # of the next attempt, not of those that were made
        },
        ("kafka_dlt-", "kafka_original-", "kafka_exception-", "kafka_key-exception-", "retry_topic-"),
        binary=True,
    ),
    # org.springframework.cloud.stream.binder.kafka.KafkaMessageChannelBinder
    Family(
        BINDER,
        "a Spring Cloud Stream binding",
        _named("x-", {name: attribute for name, attribute in _SPRINGS.items() if name != "exception-cause-fqcn"}),
        binary=True,
    ),
    # io.smallrye.reactive.messaging.kafka.fault.KafkaDeadLetterQueue, as in Quarkus
    Family(SMALLRYE, "a SmallRye channel", _named("dead-letter-", _SMALLRYES), first=frozenset((*_ORIGIN, *_REASONS))),
    # KafkaDelayedRetryTopic of the same package: the origin is where the record was before the first retry, the reason that of the last
    Family(
        SMALLRYE,
        "a SmallRye channel",
        _named(
            "delayed-retry-",
            {**_SMALLRYES, "original-timestamp": "timestamp_ms", "count": None, "first-processing-timestamp": None},
        ),
        first=frozenset(_REASONS),
    ),
    # Silverback.Messaging.Messages.KafkaMessageHeaders, MoveMessageErrorPolicy
    Family(
        SILVERBACK,
        "a Silverback consumer",
        {
            **_named("x-source-", {**_ORIGIN, "consumer-group-id": "group", "timestamp": None}),
            "x-failure-reason": "message",
            "x-failed-attempts": "delivery_count",
        },
    ),
    # github.com/ThreeDotsLabs/watermill/message/router/middleware, PoisonQueue
    Family(
        WATERMILL,
        "a Watermill handler",
        {"topic_poisoned": "topic", "reason_poisoned": "message", "handler_poisoned": None, "subscriber_poisoned": None},
    ),
)
PREFIXES = tuple(prefix for family in FAMILIES for prefix in family.prefixes)
NAMES = tuple(sorted(name for family in FAMILIES for name in family.headers if not name.startswith(PREFIXES)))
"""With ``PREFIXES``, all error headers: what is sent back to where it came from must not keep them."""
_KNOWN = {name: (at, attribute) for at, family in enumerate(FAMILIES) for name, attribute in family.headers.items() if attribute}
_TOO_LARGE = {"partition": 2**31, "task": 2**31, "delivery_count": 2**31, "offset": 2**63, "timestamp_ms": 2**63}
_TEXT = re.compile(rb"-?\d{1,19}")
_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|\b\d+(?:\.\d+)?\b|\b[0-9a-fA-F]{8,}\b")
_PACKAGE = re.compile(r"\b(?:[a-z_$][\w$]*\.)+(?=[A-Z])")


@dataclass(frozen=True)
class DeadLetter:
    """Where a dead letter came from, and why it is one; None for what its writer does not state.

    :param written_by: of ``FAMILIES``, or ``APPLICATION``
    :param topic: with ``partition`` and ``offset`` its origin
    :param timestamp_ms: of the original record
    :param stage: where Connect failed (``STAGES``)
    :param class_name: of the converter, transformation or task that failed
    :param exception: class of the exception
    :param cause_class: class of its cause; ``cause_message``: the message of that
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
    cause_message: str | None = None
    message: str | None = None
    stack_trace: str | None = None
    delivery_count: int | None = None

    @property
    def cause(self) -> str:
        """The reason in one line: the last cause in the stack trace, otherwise the exception and its message."""
        if self.stack_trace and self.stack_trace.strip():
            return _PACKAGE.sub("", root_cause(self.stack_trace))
        said = (self.cause_class, self.cause_message) if self.cause_message else (self.cause_class or self.exception, self.message)
        parts = [_PACKAGE.sub("", part) for part in said if part]
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
            times = f" after {counted(self.delivery_count, 'delivery')}" if self.delivery_count is not None else ""
            return f"share group {self.group} gave up the record{where}{times}: {self.cause}"
        who = f"group {self.group}" if self.group else _WHO[self.written_by]
        return f"{who} could not process the record{where}: {self.cause}"


_WHO = {APPLICATION: "an application", **{family.written_by: family.who for family in FAMILIES}}


def dead_letter(headers: Iterable[tuple[str, bytes | None]]) -> DeadLetter | None:
    """Return the error in the headers of a record; None if no dead-letter queue wrote them.

    If several did, the one whose headers come last counts. Names that other programs may use too count only where they name a topic.
    """
    found: dict[int, dict[str, Any]] = {}
    for name, data in headers:
        if name in _KNOWN:
            at, attribute = _KNOWN[name]
            values = found.pop(at, {})
            if attribute not in values or attribute not in FAMILIES[at].first:
                values[attribute] = None if data is None else _value(FAMILIES[at], attribute, data)
            found[at] = values
    certain = [at for at, values in found.items() if values.get("topic") or FAMILIES[at].prefixes]
    if not certain:
        return None
    written_by, values = FAMILIES[certain[-1]].written_by, found[certain[-1]]
    copied = written_by == BINDER and not values.get("exception")
    return DeadLetter(APPLICATION if copied else written_by, **values)


def _value(family: Family, attribute: str, data: bytes) -> Any:
    if attribute not in _TOO_LARGE:
        return data.decode("utf-8", "replace")
    if _TEXT.fullmatch(data):
        number = int(data)
    elif family.binary and len(data) == (4 if _TOO_LARGE[attribute] == 2**31 else 8):
        number = int.from_bytes(data, "big", signed=True)
    else:
        return None
    return number if abs(number) < _TOO_LARGE[attribute] else None

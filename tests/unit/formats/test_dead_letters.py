"""Headers of dead letters, as the classes that write them have them (their names and encodings were read from the classes)."""

import struct

import pytest

from kops.formats.dead_letters import PREFIXES, DeadLetter, dead_letter

TRACE = """org.apache.kafka.connect.errors.DataException: Converting byte[] to Kafka Connect data failed due to serialization error:
\tat org.apache.kafka.connect.json.JsonConverter.toConnectData(JsonConverter.java:325)
Caused by: org.apache.kafka.common.errors.SerializationException: com.fasterxml.jackson.core.JsonParseException: Unrecognized token 'x17'
\tat org.apache.kafka.connect.json.JsonDeserializer.deserialize(JsonDeserializer.java:71)
"""


def connect(**changes):
    headers = {
        "topic": "prices",
        "partition": "2",
        "offset": "17",
        "connector.name": "sink",
        "task.id": "1",
        "stage": "VALUE_CONVERTER",
        "class.name": "org.apache.kafka.connect.json.JsonConverter",
        "exception.class.name": "org.apache.kafka.connect.errors.DataException",
        "exception.message": "Converting byte[] to Kafka Connect data failed",
        "exception.stacktrace": TRACE,
    } | changes
    return [(f"__connect.errors.{name}", None if value is None else value.encode()) for name, value in headers.items()]


def spring():
    return [
        ("kafka_dlt-original-topic", b"orders"),
        ("kafka_dlt-original-partition", struct.pack(">i", 3)),
        ("kafka_dlt-original-offset", struct.pack(">q", 77)),
        ("kafka_dlt-original-timestamp", struct.pack(">q", 1_700_000_000_000)),
        ("kafka_dlt-original-timestamp-type", b"CreateTime"),
        ("kafka_dlt-original-consumer-group", b"billing"),
        ("kafka_dlt-exception-fqcn", b"org.springframework.kafka.listener.ListenerExecutionFailedException"),
        ("kafka_dlt-exception-cause-fqcn", b"java.lang.NullPointerException"),
        ("kafka_dlt-exception-message", b"customerId is null"),
    ]


def streams():
    names = {"exception": b"java.lang.IllegalStateException", "message": b"boom 17", "topic": b"in", "partition": b"2", "offset": b"9"}
    return [(f"__streams.errors.{name}", value) for name, value in names.items()]


def share_group():
    names = {"topic": b"jobs", "partition": b"1", "offset": b"5", "group": b"workers", "delivery.count": b"5"}
    return [(f"__dlq.errors.{name}", value) for name, value in (names | {"message": b"Offset rejected by client."}).items()]


@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        (
            connect(),
            "task 1 of sink could not convert the value of prices:2 at offset 17:"
            " SerializationException: JsonParseException: Unrecognized token 'x17'",
        ),
        (
            connect(**{"stage": "TASK_PUT", "exception.stacktrace": None}),
            "task 1 of sink could not write the record of prices:2 at offset 17:"
            " DataException: Converting byte[] to Kafka Connect data failed",
        ),
        (spring(), "group billing could not process the record of orders:3 at offset 77: NullPointerException: customerId is null"),
        (streams(), "Kafka Streams could not process the record of in:2 at offset 9: IllegalStateException: boom 17"),
        (share_group(), "share group workers gave up the record of jobs:1 at offset 5 after 5 deliveries: Offset rejected by client."),
    ],
)
def test_what_happened_in_words(headers, sentence):
    assert dead_letter([("trace-id", b"1"), *headers]).sentence == sentence
    assert all(name.startswith(tuple(PREFIXES)) for name, _ in headers), "a redrive drops them by their prefixes"


def test_the_parts():
    found = dead_letter(connect())
    assert (found.topic, found.partition, found.offset, found.connector, found.task) == ("prices", 2, 17, "sink", 1)
    assert found.kind_of_cause == "SerializationException: JsonParseException: Unrecognized token …"
    assert dead_letter(spring()).timestamp_ms == 1_700_000_000_000
    assert dead_letter(share_group()).delivery_count == 5


def test_the_last_one_counts():
    again = [*connect(), *connect(offset="99", **{"task.id": "0"})]
    assert (dead_letter(again).offset, dead_letter(again).task) == (99, 0)
    assert dead_letter([*connect(), *streams()]).written_by == "kafka-streams"


def test_what_is_none_or_odd():
    assert dead_letter([("a", b"b"), ("__connect.errors.unknown", b"x")]) is None
    odd = dead_letter([("__connect.errors.task.id", b"many"), ("__connect.errors.exception.message", b"\xff")])
    assert odd == DeadLetter("connect", message="\ufffd")
    assert odd.sentence == "a connector could not take the record: \ufffd"

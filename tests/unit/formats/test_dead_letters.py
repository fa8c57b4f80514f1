"""Headers of dead letters, as the classes that write them have them (their names and encodings were read from the classes)."""

import struct

import pytest

from kops.formats.dead_letters import FAMILIES, NAMES, PREFIXES, DeadLetter, dead_letter
from support.dead_letters.recorded import RECORDED

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


def share_group(deliveries=b"5"):
    names = {"topic": b"jobs", "partition": b"1", "offset": b"5", "group": b"workers", "delivery.count": deliveries}
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
        (share_group(b"1"), "share group workers gave up the record of jobs:1 at offset 5 after 1 delivery: Offset rejected by client."),
    ],
)
def test_what_happened_in_words(headers, sentence):
    assert dead_letter([("trace-id", b"1"), *headers]).sentence == sentence
    assert all(name.startswith(PREFIXES) for name, _ in headers), "a redrive drops them by their prefixes"


@pytest.mark.parametrize(
    ("family", "who"),
    [
        ("kafka-streams", "Kafka Streams"),
        ("spring", "group billing"),
        ("spring-retried", "group billing"),
        ("spring-cloud-stream", "a Spring Cloud Stream binding"),
        ("smallrye", "a SmallRye channel"),
        ("smallrye-again", "a SmallRye channel"),
        ("smallrye-retried", "a SmallRye channel"),
    ],
)
def test_what_libraries_wrote(family, who):
    headers = RECORDED[family]
    found = dead_letter(headers)
    assert found.sentence == f"{who} could not process the record of orders:3 at offset 77: IllegalStateException: customer 17 is unknown"
    assert family.startswith(found.written_by)
    if family.startswith("spring"):
        assert found.timestamp_ms == 1_700_000_000_000
    left = [name for name, _ in headers if not name.startswith(PREFIXES) and name not in NAMES]
    assert left == ["trace-id"], "a redrive sends back what the record had"


def test_what_other_languages_write():
    """Of Silverback (``KafkaMovedMessageEnricher``) and Watermill (``poisonQueue``), by their sources: text throughout."""
    silverback = {"x-source-topic": b"orders", "x-source-partition": b"3", "x-source-offset": b"77", "x-failed-attempts": b"4"}
    found = dead_letter(
        [*silverback.items(), ("x-source-consumer-group-id", b"billing"), ("x-failure-reason", b"InvalidOperation in Shop")]
    )
    assert found.sentence == "group billing could not process the record of orders:3 at offset 77: InvalidOperation in Shop"
    assert (found.written_by, found.delivery_count) == ("silverback", 4)
    watermill = dead_letter([("reason_poisoned", b"connection refused"), ("topic_poisoned", b"orders"), ("handler_poisoned", b"bill")])
    assert watermill.sentence == "a Watermill handler could not process the record of orders: connection refused"


def test_names_that_others_use_too_are_not_taken_for_a_librarys():
    assert dead_letter([("x-original-timestamp", b"12"), ("x-exception-message", b"no"), ("dead-letter-reason", b"x")]) is None
    copied = dead_letter([("x-original-topic", b"orders"), ("x-original-partition", b"3"), ("x-original-offset", b"77"), ("x-error", b"e")])
    assert (copied.written_by, copied.origin) == ("application", "orders:3 at offset 77")
    assert copied.sentence == "an application could not process the record of orders:3 at offset 77: no reason given"
    assert not {"x-original-url", "x-original-host", "dead-letter-box"} & set(NAMES)
    assert all(family.prefixes or set(family.headers) <= set(NAMES) for family in FAMILIES)


@pytest.mark.parametrize("data", [b"1_0", b" 7", b"7\n", b"+7", b"99999999999", b"", b"1e3", "\u0663".encode()])
def test_numbers_that_are_none(data):
    assert dead_letter([("__connect.errors.topic", b"t"), ("__connect.errors.partition", data)]).partition is None


@pytest.mark.parametrize("prefix", ["kafka_dlt-original-", "kafka_original-", "x-original-"])
@pytest.mark.parametrize(("name", "data"), [("partition", b"xx"), ("partition", b"four4"), ("offset", b"\0\0\0\1"), ("timestamp", b"now")])
def test_bytes_that_are_neither_digits_nor_as_long_as_javas_number_are_none(prefix, name, data):
    letter = dead_letter([(f"{prefix}topic", b"t"), (prefix + name, data)])
    assert (letter.partition, letter.offset, letter.timestamp_ms) == (None, None, None)


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

"""Dead letters of a real sink: one worker's converter and one transformation that cannot take some records."""

import json

import pytest
from confluent_kafka import Producer

from support.connect import FILE_SINK
from support.patience import HANG_SECONDS

pytestmark = pytest.mark.broker
BAD = 4


def test_dead_letters_of_sink_are_explained_and_counted(kops, connectors, broker, topic, unique, tmp_path, until):
    name, dead, sink, plain = topic("prices", partitions=1), topic("dead", partitions=1), unique("sink"), unique("plain")
    written = tmp_path / "out.txt"
    producer = Producer(broker.client)
    values = [b'{"item": "a"}', *[b"x%d no json" % number for number in range(BAD)], b'"text"', b'{"item": "b"}']
    for value in values:
        producer.produce(name, value, b"k")
    assert producer.flush(HANG_SECONDS) == 0
    common = {"connector.class": FILE_SINK, "file": str(written), "topics": name, "tasks.max": "1"}
    dlq = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": dead, "errors.deadletterqueue.topic.replication.factor": "1"}
    json_values = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}
    part = {
        "transforms": "item",
        "transforms.item.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
        "transforms.item.field": "item",
    }
    connectors(sink, common | dlq | json_values | part | {"errors.deadletterqueue.context.headers.enable": "true"})
    until("the good rows to pass", lambda: written.exists() and written.read_text().splitlines() == ["a", "b"])

    shown = kops.other("records", "dead-letters", "--connector", sink, "-o", "json").ok()
    rows = [json.loads(line) for line in shown.out.splitlines()]
    assert [row["error"]["stage"] for row in rows] == ["VALUE_CONVERTER"] * BAD + ["TRANSFORMATION"]
    assert [row["origin"]["offset"] for row in rows] == [1, 2, 3, 4, 5]
    assert {(row["error"]["connector"], row["error"]["task"], row["origin"]["topic"]) for row in rows} == {(sink, 0, name)}
    assert rows[0]["sentence"].startswith(f"task 0 of {sink} could not convert the value of {name}:0 at offset 1: ")
    assert "JsonParseException: Unrecognized token 'x0'" in rows[0]["cause"]
    assert rows[BAD]["sentence"].startswith(f"task 0 of {sink} could not transform the record of {name}:0 at offset 5: DataException: ")
    assert rows[0]["value"] == "x0 no json"
    counts = kops.other("records", "dead-letters", dead, "--count", "-o", "json").ok().json
    assert [(row["count"], row["stage"], row["first_offset"], row["last_offset"]) for row in counts] == [
        (BAD, "VALUE_CONVERTER", 0, BAD - 1),
        (1, "TRANSFORMATION", BAD, BAD),
    ]
    table = kops.other("records", "dead-letters", "--connector", sink, "--count").ok().out.splitlines()
    assert table[1].split()[:3] == [str(BAD), sink, "0"]

    connectors(plain, common)
    none = kops.other("records", "dead-letters", "--connector", plain)
    assert (none.code, "errors.deadletterqueue.topic.name is not set" in none.err) == (1, True)

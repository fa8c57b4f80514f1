"""Records of Avro and JSON whose schemas a real registry keeps."""

import io
import json

import fastavro
import pytest
from confluent_kafka import Producer

from support.patience import HANG_SECONDS

pytestmark = pytest.mark.broker

ADDRESS = {"type": "record", "name": "shop.Address", "fields": [{"name": "city", "type": "string"}]}
JSON_SCHEMA = '{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}'
ORDER = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": "double"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "to", "type": ["null", "shop.Address"], "default": None},
    ],
}


@pytest.fixture
def context(broker, registry, run_kops):
    """A context with the registry."""
    run_kops("context", "add", "here", "--bootstrap-servers", broker.bootstrap_servers, "--registry-url", registry.url).ok()
    return lambda *arguments: run_kops("records", *arguments, "-c", "here")


def framed(number, data):
    return b"\0" + number.to_bytes(4, "big") + data


def avro(schema, value):
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, value)
    return stream.getvalue()


def produce(broker, topic, *records):
    producer = Producer(broker.client)
    for key, value in records:
        producer.produce(topic, value, key, 0)
    assert producer.flush(HANG_SECONDS) == 0


def test_avro_with_a_reference_and_json_are_decoded(context, registry, broker, topic, unique, tmp_path):
    address, order = unique("address"), unique("order")
    registry.register(address, json.dumps(ADDRESS))
    references = [{"name": "shop.Address", "subject": address, "version": 1}]
    number = registry.register(order, json.dumps(ORDER), references=references)
    unkeyed = unique("key")
    key = registry.register(unkeyed, JSON_SCHEMA, "JSON")
    named = {}
    fastavro.parse_schema(ADDRESS, named_schemas=named)
    schema = fastavro.parse_schema(ORDER, named_schemas=named)
    values = [{"id": n, "price": n * 1.5, "at": 1_700_000_000_000 + n, "to": {"city": "Bern"} if n else None} for n in range(3)]
    name = topic()
    produce(
        broker,
        name,
        *((framed(key, b'{"k": %d}' % n), framed(number, avro(schema, value))) for n, value in enumerate(values)),
        (None, None),
    )
    found = context("consume", name, "start..", "--key", "json-schema", "--value", "avro", "-o", "json").ok()
    rows = [json.loads(line) for line in found.out.splitlines()]
    assert [row["value"] for row in rows] == [
        {"id": 0, "price": 0.0, "at": "2023-11-14T22:13:20.000Z", "to": None},
        {"id": 1, "price": 1.5, "at": "2023-11-14T22:13:20.001Z", "to": {"city": "Bern"}},
        {"id": 2, "price": 3.0, "at": "2023-11-14T22:13:20.002Z", "to": {"city": "Bern"}},
        None,
    ]
    assert [row["key"] for row in rows] == [{"k": 0}, {"k": 1}, {"k": 2}, None]
    assert (rows[0]["key_encoding"], rows[0]["value_encoding"]) == ("json-schema", "avro")
    chosen = context(
        "consume", name, "--value", "avro", "--filter", "value.to.city=Bern", "--filter", "value.price>2", "--format", "%o %s\n"
    )
    assert chosen.ok().out == '2 {"id":2,"price":3.0,"at":"2023-11-14T22:13:20.002Z","to":{"city":"Bern"}}\n'
    wrong = context("consume", name, "start..", "--value", "json-schema")
    assert (wrong.code, f"the value of {name}:0 at offset 0 is not json-schema: schema {number} is AVRO" in wrong.err) == (1, True)
    copy = context("consume", name, "start..", "--key", "json-schema", "--value", "avro", "-o", "json", "-q").ok().out
    (tmp_path / "copy").write_text(copy, encoding="utf-8")
    assert f"no subject {name}-key" in context("produce", name, "--input", "json", "--file", tmp_path / "copy").err
    context("produce", name, "--input", "json", "--file", tmp_path / "copy", "--value-schema", order, "--key-schema", f"{unkeyed}:1").ok()
    again = [
        json.loads(line)
        for line in context("consume", name, "4..", "--key", "json-schema", "--value", "avro", "-o", "json").ok().out.splitlines()
    ]
    assert [(row["key"], row["value"]) for row in again] == [(row["key"], row["value"]) for row in rows]


def test_an_unknown_id_names_the_record_and_may_be_passed_over(context, broker, topic):
    name = topic()
    produce(broker, name, (b"a", framed(999_999, b"\x02")), (b"b", b"plain"))
    wrong = context("consume", name, "start..", "--value", "avro")
    assert wrong.code == 1
    assert f"the value of {name}:0 at offset 0 is not avro: the registry at" in wrong.err
    assert "has no schema 999999" in wrong.err
    skipped = context("consume", name, "start..", "--value", "avro", "--on-error", "skip").ok()
    assert "undecodable and left out: 2" in skipped.err


def test_registry_formats_without_a_registry_are_refused(broker, run_kops, topic):
    name = topic()
    wrong = run_kops("records", "consume", name, "--value", "avro", "-B", broker.bootstrap_servers)
    assert (wrong.code, "there is no schema registry" in wrong.err) == (2, True)


def test_an_unreachable_registry_is_exit_3(broker, run_kops, topic):
    run_kops("context", "add", "gone", "--bootstrap-servers", broker.bootstrap_servers, "--registry-url", "http://127.0.0.1:9").ok()
    name = topic()
    produce(broker, name, (b"a", framed(1, b"\x02")))
    wrong = run_kops("records", "consume", name, "start..", "--value", "avro", "-c", "gone")
    assert (wrong.code, "no schema registry answers at http://127.0.0.1:9" in wrong.err) == (3, True)

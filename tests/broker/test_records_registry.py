"""Records of Avro and JSON whose schemas a real registry keeps."""

import io
import json

import fastavro
import pytest
from confluent_kafka import Producer

from support.faulty_connect import HANG_UP, Answer, faulty_worker
from support.patience import HANG_SECONDS
from support.topics import commit

__all__ = ["faulty_worker"]
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


def test_peek_shows_what_the_registry_knows(context, registry, broker, topic, unique, run_kops):
    schema = {
        "type": "record",
        "name": "A",
        "fields": [{"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}}],
    }
    number = registry.register(unique("amounts"), json.dumps(schema))
    name, group, data = topic(partitions=1), unique("group"), (123456789).to_bytes(5, "big")
    produce(broker, name, (b"first", framed(number, b"\x0a" + data)), (b"k", framed(number, b"\x0a" + data)), (b"z", b"\0\0\0\0\1\xff"))
    commit(broker, name, group)
    found = context("peek", group, "-o", "json").ok().json
    assert [row["value"] for row in found if row["key"] == "k"] == [{"d": "1234567.89"}]
    assert [row["value_encoding"] for row in found if row["key"] == "k"] == ["avro"]
    assert [row["value_encoding"] for row in found if row["key"] == "z"] in (["base64"], ["text"])
    plain = run_kops("records", "peek", group, "-B", broker.bootstrap_servers, "-o", "json").ok().json
    assert {row["value_encoding"] for row in plain} == {"base64"}
    found = context(
        "consume", name, "start..", "--value", "avro", "--on-error", "skip", "--filter", "value.d=1234567.89", "-o", "json"
    ).ok()
    assert len(found.out.splitlines()) == 2


def test_consume_says_how_to_decode_what_the_registry_knows(context, registry, broker, topic, unique, run_kops):
    """Its rows stay bytes, which ``records produce --input json`` sends on unchanged."""
    number, name = registry.register(unique("longs"), '"long"'), topic(partitions=1)
    produce(broker, name, (b"k", framed(number, b"\x06")))
    note = "note: values begin with the id of a schema of the registry: --value avro decodes them, for filters too\n"
    for more in ((), ("-o", "json"), ("--filter", "value=3")):
        assert note in context("consume", name, "start..", *more).ok().err
    assert "note" not in context("consume", name, "start..", "--value", "avro").ok().err
    assert "note" not in run_kops("records", "consume", name, "start..", "-B", broker.bootstrap_servers).ok().err
    produce(broker, name, (framed(number, b"\x06"), framed(2**31 - 1, b"\x06")))
    found = context("consume", name, "1..").ok().err
    assert ("--key avro" in found, "--value" in found) == (True, False)


AT_FAULT = {
    "moved": Answer(302, None, {"Location": "http://127.0.0.1:9/login"}),
    "proxy": Answer(404, b"<html>no such page</html>"),
    "wrong path": Answer(404, {"error_code": 404, "message": "HTTP 404 Not Found"}),
    "throttled": Answer(429, {"error_code": 429, "message": "too many requests"}),
    "broken": Answer(500, {"error_code": 50001, "message": "store is down"}),
    "starting": Answer(503, b""),
    "page": Answer(200, b"<html>log in</html>"),
    "other JSON": Answer(200, {"schema": {"type": "int"}}),
    "nested": Answer(200, b"[" * 100_000),
    "hangs up": Answer(body=HANG_UP),
}
"""What a registry answers, or a proxy in its place, that is not about a record."""


@pytest.mark.parametrize("fault", AT_FAULT)
def test_a_registry_at_fault_is_never_a_records_fault(fault, broker, topic, unique, faulty_worker, run_kops):
    """Five good records must not be passed over, and the group must not move past them."""
    name, group = topic(), unique("group")
    produce(broker, name, *((None, framed(1, b"\x02")) for _ in range(5)))
    url = faulty_worker(AT_FAULT[fault]).url
    run_kops("context", "add", "here", "--bootstrap-servers", broker.bootstrap_servers, "--registry-url", url).ok()
    for more in ((), ("--group", group)):
        span = () if more else ("start..",)
        found = run_kops("records", "consume", name, *span, "--value", "avro", "--on-error", "skip", "-c", "here", "--limit", "5", *more)
        assert (found.code in (1, 3, 4), found.out) == (True, ""), found.err
        assert "registry" in found.err
        assert "undecodable" not in found.err
        assert "--on-error" not in found.err
    committed = run_kops("offsets", "show", group, "-c", "here", "-o", "json")
    assert committed.code == 1 or all(row["committed"] in (None, 0) for row in committed.json)


def test_a_registry_that_recovers_is_asked_again(broker, topic, faulty_worker, run_kops):
    name = topic()
    produce(broker, name, (None, framed(1, b"\x02")))
    url = faulty_worker(AT_FAULT["throttled"], AT_FAULT["starting"], Answer(200, {"schema": '"int"'})).url
    run_kops("context", "add", "here", "--bootstrap-servers", broker.bootstrap_servers, "--registry-url", url).ok()
    found = run_kops("records", "consume", name, "start..", "--value", "avro", "-c", "here", "--format", "%s\n")
    assert found.ok().out == "1\n"

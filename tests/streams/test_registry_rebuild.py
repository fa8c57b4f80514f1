"""`kops state` of topics whose schemas a real registry keeps, beside what a real Kafka Streams application with an Avro serde writes.

The serde is hand-written on Avro's own Java library (Confluent's is not on Maven Central). The topic has two versions of the schema, values
that are null, and records that no filter passes. The same prices in Protobuf and in JSON have to come to the same sums.
"""

import io
import json
import random
import subprocess

import fastavro
import pytest
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from kops.gateways.machine.jars import pyspark_jars
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams import JAVA_SOURCES, _decoded, compacted_view, encoded, java_command

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

START = 1_700_000_000_000
COMMITTED = 320
FIRST = {
    "type": "record",
    "name": "shop.Price",
    "fields": [{"name": "id", "type": "int"}, {"name": "item", "type": ["null", "string"]}, {"name": "price", "type": ["null", "double"]}],
}
SECOND = {
    **FIRST,
    "fields": [
        *FIRST["fields"],
        {"name": "quantity", "type": "int", "default": 3},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
        {"name": "tags", "type": {"type": "map", "values": ["null", "string"]}, "default": {}},
    ],
}
JSON_SCHEMA = '{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}'
PROTO = """syntax = "proto3"; package shop;
message Price { int32 id = 1; optional string item = 2; optional double price = 3; optional int32 quantity = 4; repeated string tags = 5; }
"""


def prices():
    """Yield key, value (None: a tombstone) and time; those with a quantity are of the second schema."""
    chance = random.Random(7)
    for at in range(400):
        value = {"id": at, "item": chance.choice(["laptop", "phone", "käse", None]), "price": chance.choice([None, at * 0.25, 1e9 + at])}
        if chance.random() < 0.5:
            value |= {"quantity": chance.randrange(5), "at": START + at, "tags": {"a": None, "b": "x"}}
        yield str(chance.randrange(60)).encode(), None if chance.random() < 0.05 else value, START + chance.randrange(10_000)


def framed(number, data):
    return b"\0" + number.to_bytes(4, "big") + data


def in_avro(ids, value):
    newer, stream = "quantity" in value, io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(SECOND if newer else FIRST), value)
    return framed(ids[newer], stream.getvalue())


def price_class():
    """Return the class of PROTO's message, made without kops."""
    file = FileDescriptorProto(name="price.proto", package="shop", syntax="proto2")
    message = file.message_type.add(name="Price")
    for number, (name, kind) in enumerate((("id", 5), ("item", 9), ("price", 1), ("quantity", 5)), 1):
        message.field.add(name=name, number=number, type=kind, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Price"))


def oracle(registry_url, application, topic, records, *more):
    """Return what the application writes to its changelogs, as views by store."""
    command = java_command("AvroTotals", sources=JAVA_SOURCES.parent / "avro", jars=[*pyspark_jars().glob("avro-1*.jar")])
    request = json.dumps({"records": [encoded(each) for each in records]})
    done = subprocess.run(
        [*command, registry_url, application, topic, *more],
        input=request,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    topics = json.loads(done.stdout.splitlines()[-1])["topics"]
    views = {}
    for name, written in topics.items():
        store = name.removeprefix(f"{application}-").removesuffix("-changelog")
        views[store] = compacted_view([_decoded({**record, "headers": []}) for record in written], partitions=False)
    return views


def json_rows(outcome):
    """Return the rows of a list, or of one object per line."""
    return outcome.json if outcome.out.startswith("[") else [json.loads(line) for line in outcome.out.splitlines()]


def store(topic, value, aggregate=None):
    source = {"topic": topic, "key": "string", "value": value}
    if aggregate == {"last": "value"}:
        return {"from": source, "aggregate": aggregate}
    total = {"sum": "value.price * coalesce(value.quantity, 1)", "as": "double"}
    where = "value.item is not null and value.price is not null"
    return {"from": source, "where": where, "key_by": "value.item", "aggregate": aggregate or total}


@pytest.mark.parametrize("wanted", [("totals", "table", "protobuf", "json"), pytest.param((), marks=pytest.mark.long)], ids=["some", "all"])
def test_what_an_application_with_a_registry_writes_comes_back(cluster, registry, run_kops, prefix, tmp_path, wanted):
    avro, protobuf, plain = (f"{prefix}-{name}" for name in ("avro", "protobuf", "json"))
    ids = [registry.register(f"{avro}-value", json.dumps(schema)) for schema in (FIRST, SECOND)]
    proto_id, json_id = registry.register(f"{protobuf}-value", PROTO, "PROTOBUF"), registry.register(f"{plain}-value", JSON_SCHEMA, "JSON")
    message = price_class()

    def in_protobuf(value):
        fields = {name: part for name, part in value.items() if name in ("id", "item", "price", "quantity") and part is not None}
        return framed(proto_id, b"\0" + message(**fields).SerializeToString())

    def in_json(value):
        return framed(json_id, json.dumps(value).encode())

    writers = {avro: lambda value: in_avro(ids, value), protobuf: in_protobuf, plain: in_json}
    topics = {topic: [Record(key, value and write(value), at, (), 0) for key, value, at in prices()] for topic, write in writers.items()}
    stores = {
        "totals": store(avro, "avro"),
        "counts": store(avro, "avro", {"count": True}),
        "table": store(avro, "avro", {"last": "value"}),
        "read": store(avro, {"format": "avro", "reader": f"{avro}-value"}),
        "protobuf": store(protobuf, "protobuf"),
        "json": store(plain, {"format": "json-schema", "schema": "item string, price double, quantity int"}),
    }
    stores = {name: stores[name] for name in wanted or stores}
    cluster.create_all(dict.fromkeys([*topics, *(f"{prefix}-{name}-repartition" for name in stores)], 1))
    cluster.create_all({f"{prefix}-{name}-changelog": 1 for name in stores}, {"cleanup.policy": "compact"})
    cluster.produce_all(topics)
    cluster.commit(prefix, {(topic, 0): COMMITTED for topic in topics})
    expected = oracle(registry.url, prefix, avro, topics[avro][:COMMITTED])
    if "read" in stores:
        expected["read"] = oracle(registry.url, prefix, avro, topics[avro][:COMMITTED], f"{avro}-value")["totals"]
        assert expected["read"] != expected["totals"]  # the reader's schema has a default for the quantity
    expected |= dict.fromkeys(("protobuf", "json"), expected["totals"])
    file = tmp_path / "state.yaml"
    file.write_text(json.dumps({"application": prefix, "stores": stores}), encoding="utf-8")
    run_kops("context", "add", "here", "--bootstrap-servers", cluster.servers, "--registry-url", registry.url).ok()
    rebuilt = run_kops("state", "rebuild", file, "--yes", "-c", "here")
    assert rebuilt.code == 0, rebuilt.err
    for name in stores:
        assert compacted_view(cluster.read(f"{prefix}-{name}-changelog"), partitions=False) == expected[name], name
    assert "avro is kept as it was read" in rebuilt.err
    formats = ("--key", "string", "--value", "avro", "-c", "here", "-o", "json")
    shown = run_kops("state", "query", file, "--store", "table", "--all", "-c", "here", "-o", "json").ok().json
    inspected = run_kops("changelog", "inspect", f"{prefix}-table-changelog", "--limit", "1", *formats).ok()
    got = run_kops("changelog", "get", f"{prefix}-table-changelog", shown[0]["key"], *formats).ok()
    rows = [*shown, *json_rows(inspected), *json_rows(got)]
    assert all({"id", "item", "price"} <= set(row["value"]) for row in rows), rows[-2:]
    cluster.produce(avro, [Record(b"1", framed(2**31 - 5, b"\2"), START, (), 0)])
    refused = run_kops("state", "verify", file, "--store", "table", "--at", "end", "-c", "here")
    assert (refused.code, f"the value of {avro}:0 at offset 400 has the schema id {2**31 - 5}" in refused.err) == (5, True), refused.err

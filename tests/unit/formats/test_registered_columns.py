"""Avro and Protobuf as columns; the bytes are fastavro's and Google's own writers'."""

import datetime
import decimal
import io
import json

import fastavro
import pyarrow
import pytest
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from kops.core.errors import ConfigError
from kops.core.records.column_types import Disagreement, ListOf, MapOf, Struct, ddl, merged
from kops.core.schemas.models import RegisteredSchema
from kops.core.statefile import Form, parse_state_file
from kops.formats.avro_types import NotHeldError
from kops.formats.registered_columns import WRONG, column_of
from kops.spark.reading.registered import _decoded, arrow_type

LINE = {"type": "record", "name": "Line", "fields": [{"name": "p", "type": "float"}]}
EVERY = {
    "type": "record",
    "name": "shop.Every",
    "fields": [
        {"name": "i", "type": "int"},
        {"name": "number", "type": ["int", "double"]},
        {"name": "mixed", "type": ["null", "string", "long"]},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "OLD"]}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "time", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "raw", "type": {"type": "fixed", "name": "Raw", "size": 2}},
        {"name": "tags", "type": {"type": "map", "values": ["null", "long"]}},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
        {"name": "next", "type": ["null", "shop.Every"], "default": None},
        {"name": "nothing", "type": "null"},
    ],
}
VALUE = {
    "i": 7,
    "number": 2,
    "mixed": 5,
    "kind": "OLD",
    "at": datetime.datetime(2026, 11, 20, 14, 5, 0, 1, tzinfo=datetime.timezone.utc),
    "local": datetime.datetime(2026, 11, 20, 14, 5),
    "day": datetime.date(2026, 11, 20),
    "time": datetime.time(1, 2, 3),
    "amount": decimal.Decimal("12.30"),
    "raw": b"\xff\x00",
    "tags": {"a": 1, "b": None},
    "lines": [{"p": 0.5}],
    "next": None,
    "nothing": None,
}


def avro(schema, value, number=1):
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return b"\0" + number.to_bytes(4, "big") + stream.getvalue()


def form(*schemas, name="avro", kind="AVRO", **more):
    texts = [each if isinstance(each, str) else json.dumps(each) for each in schemas]
    return Form(name, registered=tuple(RegisteredSchema(at, kind, text) for at, text in enumerate(texts, 1)), **more)


def read(found, *values):
    """Return rows and what is wrong, through Arrow as Spark's tasks do it."""
    kind, decode = column_of(found)
    count = len(values)
    places = [pyarrow.array(["orders"] * count), pyarrow.array([3] * count), pyarrow.array(range(count))]
    batch = pyarrow.RecordBatch.from_arrays([pyarrow.array(list(values), pyarrow.binary()), *places], ["v", "topic", "partition", "offset"])
    out = _decoded(batch, {"v": (kind, decode)})
    return out.column("v_read").to_pylist(), out.column("v_wrong").to_pylist()


def test_every_type_of_avro():
    kind, _ = column_of(form(EVERY))
    assert ddl(kind) == (
        "struct<`i`: int, `number`: double, `mixed`: string, `kind`: string, `at`: timestamp, `local`: timestamp_ntz, `day`: date,"
        " `time`: string, `amount`: decimal(9,2), `raw`: binary, `tags`: map<string, bigint>, `lines`: array<struct<`p`: float>>,"
        " `next`: string, `nothing`: string>"
    )
    rows, wrong = read(form(EVERY), avro(EVERY, VALUE), None, b"", b"plain", avro(EVERY, {**VALUE, "next": VALUE}), avro(EVERY, VALUE, 2))
    assert wrong == [False, False, True, True, False, True]
    row = rows[0]
    assert (row["i"], row["number"], row["mixed"], row["kind"]) == (7, 2.0, "5", "OLD")
    assert (row["amount"], row["raw"]) == (VALUE["amount"], b"\xff\x00")
    assert (row["at"], row["local"], row["day"], row["time"]) == (VALUE["at"], VALUE["local"], VALUE["day"], "01:02:03")
    assert (row["tags"], row["lines"], row["next"]) == ([("a", 1), ("b", None)], [{"p": 0.5}], None)
    assert json.loads(rows[4]["next"])["i"] == 7


def logical(name, kind, **more):
    return {"type": "record", "name": "L", "fields": [{"name": "inner", "type": {"type": kind, "logicalType": name, **more}}]}


def underlying(value, kind):
    """Return a record of one field as any producer may write it, whatever the logical type says."""
    return avro({"type": "record", "name": "L", "fields": [{"name": "inner", "type": kind}]}, {"inner": value})


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        (logical("decimal", "bytes", precision=4, scale=2), 123456789, "1234567.89 does not fit into decimal(4,2)"),
        (logical("decimal", "bytes", precision=60, scale=30), 10**50, "100000000000000000000.0000000000"),
        (logical("date", "int"), 2932897, "+10000-01-01 is beyond the years 1 to 9999"),
        (logical("timestamp-millis", "long"), 253402300800000, "+10000-01-01T00:00:00.000Z is beyond"),
        (logical("local-timestamp-micros", "long"), -62135596800000001, "0000-12-31T23:59:59.999999 is beyond"),
    ],
)
def test_what_a_column_cannot_hold_is_named_and_not_rounded(schema, value, reason):
    kind = schema["fields"][0]["type"]["type"]
    data = value.to_bytes(30, "big", signed=True) if kind == "bytes" else value
    with pytest.raises(NotHeldError) as caught:
        read(form(schema), None, underlying(data, kind))
    assert f"the v of orders:3 at offset 1 has no place in a column: inner: {reason}" in str(caught.value)


def test_invalid_logical_types_are_what_they_are_stored_as():
    for schema, kind, value, shown in (
        (logical("decimal", "bytes", precision=2, scale=5), "bytes", b"\x01", b"\x01"),
        (logical("uuid", "string"), "string", "no uuid", "no uuid"),
        (logical("time-millis", "int"), "int", 86_400_000, "86400000"),
        (logical("date", "long"), "long", 10**9, 10**9),
    ):
        assert read(form(schema), underlying(value, kind)) == ([{"inner": shown}], [False])


def test_defaults_of_a_readers_schema_are_of_its_types():
    written = {"type": "record", "name": "A", "fields": [{"name": "x", "type": "int"}]}
    at = {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 1500}
    amount = {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, "default": "\u00ff"}
    wanted = {"type": "record", "name": "A", "fields": [written["fields"][0], at, amount]}
    found = form(written, read_as=RegisteredSchema(9, "AVRO", json.dumps(wanted)))
    moment = datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=datetime.timezone.utc)
    assert read(found, avro(written, {"x": 1}))[0] == [{"x": 1, "at": moment, "amount": decimal.Decimal("-0.01")}]


def test_schemas_together():
    old = {"type": "record", "name": "A", "fields": [{"name": "x", "type": "int"}, {"name": "gone", "type": "string"}]}
    new = {"type": "record", "name": "A", "fields": [{"name": "x", "type": "long"}, {"name": "y", "type": "double", "default": 1.5}]}
    records = avro(old, {"x": 1, "gone": "g"}, 1), avro(new, {"x": 2**40, "y": 2.0}, 2)
    assert read(form(old, new), *records)[0] == [{"x": 1, "gone": "g", "y": None}, {"x": 2**40, "gone": None, "y": 2.0}]
    as_new = form(old, new, read_as=RegisteredSchema(2, "AVRO", json.dumps(new)))
    assert read(as_new, *records)[0] == [{"x": 1, "y": 1.5}, {"x": 2**40, "y": 2.0}]
    with pytest.raises(Disagreement, match="x is int in one schema and string in another"):
        column_of(form(old, {**old, "fields": [{"name": "x", "type": "string"}]}))


def test_types_that_go_together():
    assert merged(ListOf("int"), ListOf("bigint")) == ListOf("bigint")
    assert merged(MapOf("void"), MapOf("string")) == MapOf("string")
    assert merged("int", "float") == "double"
    assert arrow_type(Struct({"a": ListOf("int")})) == pyarrow.struct([("a", pyarrow.list_(pyarrow.int32()))])
    with pytest.raises(Disagreement, match=r"a\[\] is int in one schema and boolean"):
        merged(Struct({"a": ListOf("int")}), Struct({"a": ListOf("boolean")}))


PROTO = """syntax = "proto3"; import "google/protobuf/wrappers.proto"; import "google/protobuf/timestamp.proto";
message Order { int64 id = 1; uint64 big = 2; optional bool paid = 3; enum K { A = 0; B = 1; } K k = 4; map<string, double> tags = 5;
  repeated Order parts = 6; google.protobuf.Int32Value wrapped = 7; google.protobuf.Timestamp at = 8; bytes raw = 9; }
"""


def test_protobuf():
    file = FileDescriptorProto(name="o.proto")
    message = file.message_type.add(name="Order")
    for number, (name, kind) in enumerate((("id", 3), ("big", 4), ("paid", 8), ("k", 5)), 1):
        message.field.add(name=name, number=number, type=kind, label=1)
    message.field.add(name="raw", number=9, type=12, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    data = message_factory.GetMessageClass(pool.FindMessageTypeByName("Order"))(id=7, big=2**63, k=1, raw=b"\xff").SerializeToString()
    found = form(PROTO, name="protobuf", kind="PROTOBUF")
    assert ddl(column_of(found)[0]) == (
        "struct<`id`: bigint, `big`: decimal(20,0), `paid`: boolean, `k`: string, `tags`: map<string, double>, `parts`: array<string>,"
        " `wrapped`: int, `at`: string, `raw`: binary>"
    )
    unknown = b"\0\0\0\0\1\0" + b"\x20\x09"  # a number that the enum does not have
    rows, wrong = read(found, b"\0\0\0\0\1\0" + data, unknown, b"\0\0\0\0\1\0\x08", b"\0\0\0\0\2\0")
    assert wrong == [False, False, True, True]
    assert rows[0] | {"tags": None} == {
        **dict.fromkeys(("paid", "tags", "wrapped", "at")),
        "id": 7,
        "big": decimal.Decimal(2**63),
        "k": "B",
        "raw": b"\xff",
        "parts": [],
    }
    assert rows[1]["k"] == "9"
    assert column_of(found)[1](b"x") is WRONG


def test_several_messages_of_a_file():
    head = b"\0\0\0\0\1"
    both = "message A { int32 a = 1; } message B { int64 a = 1; string b = 2; message C {} }"
    together = form(f'syntax = "proto3"; {both}', name="protobuf", kind="PROTOBUF")
    assert ddl(column_of(together)[0]) == "struct<`a`: bigint, `b`: string>"
    rows, wrong = read(together, head + b"\0\x08\1", head + b"\2\2\x08\2\x12\1x", head + b"\4\2\0")
    assert (rows[:2], wrong) == ([{"a": 1, "b": None}, {"a": 2, "b": "x"}], [False, False, True])
    apart = form('syntax = "proto3"; message A { int32 a = 1; } message B { string a = 1; }', name="protobuf", kind="PROTOBUF")
    rows, wrong = read(apart, head + b"\0\x08\1", head + b"\2\2\x0a\1x")
    assert (rows[0], wrong) == ({"a": 1}, [False, True])


def parsed(source, **store):
    body = {"application": "a", "stores": {"s": {"from": {"topic": "t", "key": "string"} | source, **store}}}
    return parse_state_file("f", body).stores[0]


def test_state_files_with_a_registry():
    assert parsed({"value": {"format": "avro", "reader": "t-value:2"}}).source.value == Form("avro", reader="t-value:2")
    assert parsed({"value": "protobuf"}, aggregate={"last": "value"}).aggregate.form == Form("protobuf")
    assert parsed({"value": {"format": "json-schema", "schema": "a int"}}).source.value.schema == "a int"
    wrong = [
        ({"value": {"format": "avro", "schema": "a int"}}, {}, "does not go with the format avro"),
        ({"value": {"format": "json", "reader": "x"}}, {}, "does not go with the format json"),
        ({"value": "avro"}, {"aggregate": {"sum": "value.a", "as": "avro"}}, "a sum is a number|kops keeps as it was read"),
        ({"value": "avro"}, {"aggregate": {"max": "value"}}, "a max is not avro"),
        ({"value": "avro"}, {"key_by": "value.a", "key_as": "avro", "aggregate": {"count": True}}, "kops reads and does not write"),
    ]
    for source, store, message in wrong:
        with pytest.raises(ConfigError, match=message):
            parsed(source, **store)


def test_a_list_without_end_is_one_value_of_another_format():
    """A worker that decoded it would end, and be started again for ever."""
    node = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
    (_, decode) = column_of(Form("avro", registered=(RegisteredSchema(1, "AVRO", json.dumps(node)),)))
    assert decode(b"\0\0\0\0\1" + b"\2" * 50_000 + b"\0") is WRONG
    nulls = {"type": "array", "items": "null"}
    (_, decode) = column_of(Form("avro", registered=(RegisteredSchema(1, "AVRO", json.dumps(nulls)),)))
    assert decode(b"\0\0\0\0\1" + b"\x80\xda\xc4\x09" + b"\0") is WRONG

"""Confluent's wire format; the bytes are fastavro's own writer's."""

import datetime
import decimal
import io
import json
import re
import struct
import uuid

import fastavro
import pytest

from kops.core.errors import OperationFailed, UndecodableRecord, UsageProblem
from kops.core.schemas.models import RegisteredSchema
from kops.formats.avro import AvroSchema
from kops.formats.base import Place, decode_at
from kops.formats.confluent import Avro, JsonSchema, Protobuf, schema_id

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "item", "type": ["null", "string"]},
        {"name": "raw", "type": "bytes"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "OLD"]}},
        {"name": "tags", "type": {"type": "map", "values": "double"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "ref", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "lines", "type": {"type": "array", "items": "int"}},
        {"name": "next", "type": ["null", "Order"]},
    ],
}
VALUE = {
    "id": 7,
    "item": "ü",
    "raw": b"\xff",
    "kind": "OLD",
    "tags": {"a": 1.5, "n": float("nan")},
    "at": datetime.datetime(2026, 11, 20, 14, 5, 0, 123000, tzinfo=datetime.timezone.utc),
    "day": datetime.date(2026, 11, 20),
    "amount": decimal.Decimal("12.30"),
    "ref": uuid.UUID("123e4567-e89b-12d3-a456-426614174000"),
    "lines": [1, 2],
    "next": None,
}
SHOWN = {
    "id": 7,
    "item": "ü",
    "raw": {"data": "/w==", "encoding": "base64"},
    "kind": "OLD",
    "tags": {"a": 1.5, "n": "NaN"},
    "at": "2026-11-20T14:05:00.123Z",
    "day": "2026-11-20",
    "amount": "12.30",
    "ref": "123e4567-e89b-12d3-a456-426614174000",
    "lines": [1, 2],
    "next": None,
}


def written(schema, value, number=9):
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return b"\0" + number.to_bytes(4, "big") + stream.getvalue()


def registry(**schemas):
    asked = []

    def lookup(number):
        asked.append(number)
        if f"s{number}" not in schemas:
            raise UndecodableRecord(f"the registry has no schema {number}")
        return schemas[f"s{number}"]

    lookup.asked = asked
    return lookup


def test_avro_is_decoded_and_its_schema_asked_for_once():
    lookup = registry(s9=RegisteredSchema(9, "AVRO", json.dumps(ORDER)))
    form = Avro(lookup)
    for _ in range(3):
        decoded = form.decode(written(ORDER, VALUE))
    assert form.show(decoded) == SHOWN
    json.dumps(form.show(decoded), allow_nan=False)
    assert lookup.asked == [9]


def test_referenced_schemas():
    address = {"type": "record", "name": "shop.Address", "fields": [{"name": "city", "type": "string"}]}
    person = {"type": "record", "name": "shop.Person", "fields": [{"name": "home", "type": "shop.Address"}]}
    named = {}
    fastavro.parse_schema(address, named_schemas=named)
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(person, named_schemas=named), {"home": {"city": "Bern"}})
    form = Avro(registry(s1=RegisteredSchema(1, "AVRO", json.dumps(person), (("shop.Address", json.dumps(address)),))))
    assert form.decode(b"\0\0\0\0\1" + stream.getvalue()) == {"home": {"city": "Bern"}}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"\0\0\0", "a zero byte and four more"),
        (b"{}xxxx", "begins with 7b"),
        (b"\0\0\0\0\x11x", "the registry has no schema 17"),
        (b"\0\0\0\0\x09\x02", "schema 9: not of its Avro schema"),
        (b"\0\0\0\0\x08{}", "schema 8 is JSON, not avro: the format is json-schema"),
        (b"\0\0\0\0\x07{}", "schema 7 is PROTOBUF, not avro: the format is protobuf"),
    ],
)
def test_what_is_not_avro_names_the_record(data, message):
    lookup = registry(
        s9=RegisteredSchema(9, "AVRO", json.dumps(ORDER)), s8=RegisteredSchema(8, "JSON", "{}"), s7=RegisteredSchema(7, "PROTOBUF", "")
    )
    with pytest.raises(UndecodableRecord) as caught:
        decode_at(Avro(lookup), data, Place("orders", 3, 42, "value"))
    assert message in caught.value.message
    assert "the value of orders:3 at offset 42 is not avro" in caught.value.message


def test_bytes_that_are_left_over():
    with pytest.raises(UndecodableRecord, match="1 of 2 bytes are left over"):
        AvroSchema('"int"').decode(b"\x02\x00")


def test_a_schema_that_is_none():
    with pytest.raises(OperationFailed, match="no Avro schema"):
        AvroSchema('{"type": "nonsense"}')


def test_json_with_a_schema():
    form = JsonSchema(registry(s8=RegisteredSchema(8, "JSON", "{}"), s9=RegisteredSchema(9, "AVRO", '"int"')))
    assert form.decode(b'\0\0\0\0\x08{"a": 1}') == {"a": 1}
    with pytest.raises(UndecodableRecord, match="the format is avro"):
        form.decode(b"\0\0\0\0\x09\x02")


def test_where_nothing_is_written():
    for form in (Avro(registry()), JsonSchema(registry()), Protobuf(registry())):
        with pytest.raises(UsageProblem, match="is not written here"):
            form.encode({})
    with pytest.raises(UsageProblem, match="reads protobuf and does not write it"):
        Protobuf(registry(), lambda: RegisteredSchema(1, "PROTOBUF", 'syntax = "proto3"; message A {}')).encode({})
    with pytest.raises(UsageProblem, match="schema 1 is JSON, not avro"):
        Avro(registry(), lambda: RegisteredSchema(1, "JSON", "{}")).encode({})


def test_avro_takes_back_what_it_shows():
    schema = RegisteredSchema(9, "AVRO", json.dumps(ORDER))
    form = Avro(registry(s9=schema), lambda: schema)
    data = form.encode(SHOWN)
    assert data == written(ORDER, VALUE)
    assert form.encode(form.show(form.decode(data))) == data
    named = {**SHOWN, "item": {"string": "a"}, "next": {"shop.Order": SHOWN}}  # unions as Avro's own JSON has them
    assert form.show(form.decode(form.encode(named))) == {**SHOWN, "item": "a", "next": SHOWN}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": "x"}, 'id is "x", not a long'),
        ({"id": 2**63}, "not a long"),
        ({"extra": 1}, "extra is not in the schema"),
        ({"kind": "NONE"}, 'kind is "NONE", not one of NEW, OLD'),
        ({"next": {"id": 1}}, "next.item is missing"),
        ({"lines": [1, None]}, "lines[1] is null, not a int"),
        ({"at": "yesterday"}, "not a timestamp-millis"),
        ({"amount": "much"}, 'amount is "much", not a decimal'),
        ({"raw": 5}, "raw is 5, not bytes"),
    ],
)
def test_what_is_not_of_the_schema_is_named(change, message):
    schema = RegisteredSchema(9, "AVRO", json.dumps(ORDER))
    with pytest.raises(UsageProblem) as caught:
        Avro(registry(s9=schema), lambda: schema).encode({**SHOWN, **change})
    assert f"schema 9: not of its Avro schema: {message}" in caught.value.message or message in caught.value.message


CHECKED = {
    "type": "object",
    "properties": {
        "a": {"type": "integer", "minimum": 3, "exclusiveMaximum": 9, "multipleOf": 2},
        "b": {"$ref": "#/definitions/B"},
        "c": {"oneOf": [{"type": "null"}, {"type": "string", "pattern": "^x", "maxLength": 3}]},
        "d": {"type": "array", "items": {"$ref": "other.json#/$defs/D"}, "uniqueItems": True, "minItems": 1},
    },
    "required": ["a"],
    "patternProperties": {"^x-": {"const": True}},
    "additionalProperties": False,
    "definitions": {"B": {"enum": [1, "x", None]}},
}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"a": 4, "b": None, "c": "xy", "d": [1.5], "x-1": True}, None),
        ({"a": 4.0}, None),
        ({}, "$: 'a' is a required property"),
        (5, "$: 5 is not of type 'object'"),
        ({"a": 2}, "$.a: 2 is less than the minimum of 3"),
        ({"a": 9}, "$.a: 9 is greater than or equal to the maximum of 9"),
        ({"a": 5}, "$.a: 5 is not a multiple of 2"),
        ({"a": True}, "$.a: True is not of type 'integer'"),
        ({"a": 4, "b": 2}, "$.b: 2 is not one of [1, 'x', None]"),
        ({"a": 4, "c": "y"}, "$.c: 'y' is not valid under any of the given schemas ($.c: "),
        ({"a": 4, "d": []}, "$.d: [] should be non-empty"),
        ({"a": 4, "d": [1, 1]}, "$.d: [1, 1] has non-unique elements"),
        ({"a": 4, "d": ["z"]}, "$.d[0]: 'z' is not of type 'number'"),
        ({"a": 4, "e": 1}, "$: 'e' is not in the schema, which allows no others"),
        ({"a": 4, "x-1": 1}, "$['x-1']: True was expected"),
    ],
)
def test_json_is_checked_when_it_is_written(value, problem):
    others = (("other.json", json.dumps({"$defs": {"D": {"type": "number"}}})),)
    schema = RegisteredSchema(8, "JSON", json.dumps(CHECKED), others)
    form = JsonSchema(registry(s8=schema), lambda: schema)
    if problem is None:
        assert form.decode(form.encode(value)) == value
    else:
        with pytest.raises(UsageProblem) as caught:
            form.encode(value)
        assert f"schema 8: not of its JSON Schema: {problem}" in caught.value.message


def test_json_is_checked_with_all_its_digits():
    schema = {"properties": {"a": {"maximum": 12345678901234567.89, "multipleOf": 0.01}, "n": {"type": "integer"}, "s": {"maxLength": 3.0}}}
    text = json.dumps(schema).replace("1.2345678901234568e+16", "12345678901234567.89")
    registered = RegisteredSchema(8, "JSON", text)
    form = JsonSchema(registry(s8=registered), lambda: registered)
    for right in ('{"a":12345678901234567.89}', '{"a":-0.10,"n":3.0,"n":1e2}', '{"n":98765432109876543210,"s":"abc"}'):
        assert form.encode(form.parse(right))[5:].decode() == right
    for wrong, problem in (
        ('{"a":12345678901234567.90}', "12345678901234567.90 is greater than the maximum of 12345678901234567.89"),
        ('{"a":0.011}', "0.011 is not a multiple of 0.01"),
        ('{"a":-1e999999}', "-1e999999 cannot be checked to be a multiple of 0.01"),
        ('{"n":1.5}', "1.5 is not of type 'integer'"),
        ('{"s":"abcd"}', "'abcd' is too long"),
    ):
        with pytest.raises(UsageProblem, match=re.escape(problem)):
            form.encode(form.parse(wrong))


def test_ids_and_odd_values():
    assert schema_id(b"\0\0\0\1\0") == 256


def avro_record(kind, **more):
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": "f", "type": {"type": kind, **more}}]})


def zigzag(number):
    number = (number << 1) ^ (number >> 63)
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


def sized(data):
    return zigzag(len(data)) + data


BIG = -12345678901234567890123456789012345678901


@pytest.mark.parametrize(
    ("schema", "data", "value"),
    [
        (avro_record("bytes", logicalType="decimal", precision=4, scale=2), sized((123456789).to_bytes(5, "big")), "1234567.89"),
        (avro_record("fixed", name="F", size=5, logicalType="decimal", precision=4, scale=2), (123456789).to_bytes(5, "big"), "1234567.89"),
        (avro_record("bytes", logicalType="decimal", precision=30, scale=20), sized(b"\1"), "0.00000000000000000001"),
        (
            avro_record("bytes", logicalType="decimal", precision=41, scale=20),
            sized(BIG.to_bytes(17, "big", signed=True)),
            "-123456789012345678901.23456789012345678901",
        ),
        (avro_record("bytes", logicalType="decimal", precision=2, scale=5), sized(b"{"), {"data": "{", "encoding": "text"}),
        (avro_record("string", logicalType="uuid"), sized(b"not-a-uuid"), "not-a-uuid"),
        (avro_record("int", logicalType="time-millis"), zigzag(86_400_000), 86_400_000),
        (avro_record("int", logicalType="time-millis"), zigzag(86_399_999), "23:59:59.999000"),
        (avro_record("int", logicalType="date"), zigzag(2_932_897), "+10000-01-01"),
        (avro_record("int", logicalType="date"), zigzag(-1_000_000), "-0768-02-04"),
        (avro_record("long", logicalType="timestamp-millis"), zigzag(253_402_300_800_000), "+10000-01-01T00:00:00.000Z"),
        (avro_record("long", logicalType="timestamp-micros"), zigzag(-62_135_596_800_000_001), "0000-12-31T23:59:59.999999Z"),
        (avro_record("long", logicalType="timestamp-nanos"), zigzag(1_700_000_000_123_456_789), "2023-11-14T22:13:20.123456789Z"),
        (avro_record("float"), struct.pack("<f", 0.1), 0.1),
    ],
)
def test_logical_types_are_read_as_java_reads_them(schema, data, value):
    """The values are those of Java's Avro, which tests/differential asks for many more."""
    registered = RegisteredSchema(5, "AVRO", schema)
    form = Avro(registry(s5=registered), lambda: registered)
    found = form.decode(b"\0\0\0\0\5" + data)
    assert form.show(found) == {"f": value}
    if '"precision": 4,' in schema:
        with pytest.raises(UsageProblem, match=r'f is "1234567.89", not a decimal of 4 digits, 2 of them after the point'):
            form.encode(found)
    else:
        assert form.encode(found) == b"\0\0\0\0\5" + data


def test_with_defaults_of_the_wrong_type_records_are_read():
    fields = [{"name": "s", "type": ["null", "string"], "default": "VALUE1"}, {"name": "n", "type": "int", "default": "12"}]
    registered = RegisteredSchema(5, "AVRO", json.dumps({"type": "record", "name": "R", "fields": fields}))
    form = Avro(registry(s5=registered), lambda: registered)
    assert form.decode(b"\0\0\0\0\5" + zigzag(1) + sized(b"hi") + zigzag(7)) == {"s": "hi", "n": 7}
    with pytest.raises(UsageProblem, match="n is missing, and the default '12' is not of the type int"):
        form.encode({"s": "hi"})


def test_a_union_is_written_by_its_branch():
    at = {"type": "long", "logicalType": "timestamp-millis"}
    registered = RegisteredSchema(5, "AVRO", json.dumps({"type": "record", "name": "R", "fields": [{"name": "f", "type": ["int", at]}]}))
    form = Avro(registry(s5=registered), lambda: registered)
    assert form.encode({"f": "1970-01-01T00:00:00.005Z"}) == b"\0\0\0\0\5" + zigzag(1) + zigzag(5)
    assert form.encode({"f": 5})[5:] in (zigzag(0) + zigzag(5), zigzag(1) + zigzag(5))

"""Values that are deep, huge by their own word, or of no format: each is a value or an undecodable record, never the end of the process."""

import contextlib
import json
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from kops.core.bounded_json import MOST_DEPTH
from kops.core.errors import OperationFailed, UndecodableRecord
from kops.core.schemas.models import AVRO, JSON, PROTOBUF, RegisteredSchema
from kops.formats.avro import AvroSchema
from kops.formats.avro_guard import MOST_WEIGHTLESS
from kops.formats.confluent import BY_NAME
from kops.formats.json_schema import JsonChecker
from kops.formats.primitives import Json
from kops.formats.protobuf import ProtobufSchema

LIST = json.dumps({"type": "record", "name": "Node", "fields": [{"name": "id", "type": "int"}, {"name": "next", "type": ["null", "Node"]}]})
TREE = json.dumps(
    {
        "type": "record",
        "name": "Tree",
        "fields": [
            {"name": "of", "type": {"type": "map", "values": {"type": "array", "items": ["null", "Tree", "string", "bytes", "double"]}}},
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        ],
    }
)
NULLS = json.dumps({"type": "array", "items": "null"})
ENDLESS = json.dumps({"type": "record", "name": "A", "fields": [{"name": "a", "type": "A"}]})
EMPTY_RECORDS = json.dumps({"type": "array", "items": {"type": "record", "name": "E", "fields": []}})
SCALARS = json.dumps(
    {
        "type": "record",
        "name": "All",
        "fields": [
            {"name": "s", "type": "string"},
            {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "time", "type": {"type": "long", "logicalType": "time-micros"}},
            {"name": "u", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "f", "type": {"type": "fixed", "name": "F", "size": 3}},
            {"name": "a", "type": {"type": "array", "items": "long"}},
        ],
    }
)
PROTO = """syntax = "proto3";
import "google/protobuf/any.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
message Node {
  int32 id = 1; Node next = 2; repeated Node more = 3; map<string, Node> by = 4; google.protobuf.Any any = 5;
  google.protobuf.Struct struct = 6; google.protobuf.Timestamp at = 7; string text = 8; repeated int64 numbers = 9;
}
"""


def linked(length):
    """A list of ``length`` elements in Avro: 0 is the id, branch 1 another element, branch 0 the end."""
    return b"\0\2" * (length - 1) + b"\0\0"


def nested_messages(depth):
    data = b""
    for _ in range(depth):
        data = b"\x12" + varint(len(data)) + data
    return data


def nested_any(depth):
    """A message in an Any in a message, again and again; a parser starts to count from 0 in each."""
    data = b""
    for _ in range(depth):
        url = b"type.googleapis.com/google.protobuf.Any"
        data = b"\x0a" + varint(len(url)) + url + b"\x12" + varint(len(data)) + data
    return b"\x2a" + varint(len(data)) + data


def varint(number):
    found = b""
    while number > 0x7F:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def zigzag(number):
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def test_a_list_is_read_up_to_the_depth_that_can_be_shown():
    schema = AvroSchema(LIST)
    assert json.dumps(schema.decode(linked(MOST_DEPTH))).count('"id"') == MOST_DEPTH
    for length in (MOST_DEPTH + 2, 600, 50_000, 1_000_000):
        with pytest.raises(UndecodableRecord, match=f"nested deeper than {MOST_DEPTH} levels"):
            schema.decode(linked(length))


@pytest.mark.parametrize("wrapped", [lambda schema: schema, lambda schema: ["null", schema]])
def test_a_schema_that_says_it_was_parsed_is_parsed(wrapped):
    marks = {"__fastavro_parsed": True, "__named_schemas": {}}
    node = json.loads(LIST) | marks
    branch = b"" if wrapped(node) is node else b"\2"
    schema = AvroSchema(json.dumps(wrapped(node)))
    assert json.dumps(schema.decode(branch + linked(10))).count('"id"') == 10
    with pytest.raises(UndecodableRecord, match=f"nested deeper than {MOST_DEPTH} levels"):
        schema.decode(branch + linked(1_000_000))
    unresolved = json.loads(LIST.replace('"Node"]', '{"type": "Node"}]')) | marks
    with pytest.raises(OperationFailed, match="unknown type"):
        AvroSchema(json.dumps(wrapped(unresolved)))


def test_a_record_of_itself_alone_has_no_end():
    with pytest.raises(UndecodableRecord, match="nested deeper"):
        AvroSchema(ENDLESS).decode(b"")


@pytest.mark.parametrize("schema", [NULLS, EMPTY_RECORDS])
def test_items_without_bytes_are_bounded(schema):
    assert len(AvroSchema(schema).decode(zigzag(MOST_WEIGHTLESS) + b"\0")) == MOST_WEIGHTLESS
    for data in (zigzag(10_000_000) + b"\0", zigzag(1_300_000_000) + b"\0", (zigzag(MOST_WEIGHTLESS)) * 2 + b"\0"):
        with pytest.raises(UndecodableRecord, match="items that take no bytes"):
            AvroSchema(schema).decode(data)
    with pytest.raises(UndecodableRecord, match="items that take no bytes"):
        AvroSchema(schema).decode(zigzag(-10_000_000) + zigzag(0) + b"\0")


@pytest.mark.parametrize("form", [Json(), BY_NAME["json-schema"](lambda number: RegisteredSchema(number, JSON, "true"))])
def test_json_is_read_up_to_the_depth_that_can_be_shown(form):
    head = b"" if form.name == "json" else b"\0\0\0\0\1"
    deep = head + b"[" * MOST_DEPTH + b"]" * MOST_DEPTH
    assert form.show(form.decode(deep)) == json.loads(deep[len(head) :])
    flat = head + b"[" + b",".join([b'{"a":[1]}'] * 300) + b"]"
    assert len(form.decode(flat)) == 300
    for depth in (MOST_DEPTH + 1, 500, 700, 990, 100_000):
        for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
            with pytest.raises(UndecodableRecord):
                form.decode(head + opening * depth + b"1" + closing * depth)


def test_messages_in_messages():
    schema = ProtobufSchema(PROTO)
    for depth in (10, 95):
        schema.decode(b"\0" + nested_messages(depth))
    for data in (nested_messages(101), nested_messages(20_000), nested_any(2_000), b"\x12" + varint(2**40), b"\x42" + varint(2**31 - 1)):
        with pytest.raises(UndecodableRecord):
            schema.decode(b"\0" + data)
    too_late = b"\x3a" + varint(11) + b"\x08" + varint(2**63 - 1) + b"\0"
    with pytest.raises(UndecodableRecord):
        schema.decode(b"\0" + too_late)


def test_schemas_that_are_nested_without_end():
    deep = "{" + '"type":{"type":"array","items":' * 3_000 + '"int"' + "}" * 3_000 + "}"
    for parse in (AvroSchema, JsonChecker):
        with pytest.raises(OperationFailed):
            parse(deep)


avro_bytes = some.one_of(
    some.binary(max_size=300),
    some.lists(some.sampled_from([b"\0", b"\2", b"\4", b"\1", b"\xff", b"\x80", b"ab"]), max_size=300).map(b"".join),
    some.integers(-(2**62), 2**62).map(lambda number: zigzag(number) + b"\0"),
)


@pytest.mark.slow
@pytest.mark.parametrize("text", [LIST, TREE, NULLS, EMPTY_RECORDS, ENDLESS, SCALARS])
def test_any_bytes_as_avro(text):
    schema = AvroSchema(text)

    @settings(max_examples=150, deadline=None)
    @given(avro_bytes)
    def check(data):
        with contextlib.suppress(UndecodableRecord):
            json.dumps(schema.decode(data))

    check()


protobuf_bytes = some.one_of(
    some.binary(max_size=200),
    some.lists(
        some.tuples(some.integers(1, 9), some.sampled_from([0, 1, 2, 5]), some.binary(max_size=12)).map(
            lambda part: varint(part[0] << 3 | part[1]) + (varint(len(part[2])) if part[1] == 2 else b"") + part[2]
        ),
        max_size=12,
    ).map(b"".join),
)


@pytest.mark.slow
def test_any_bytes_as_protobuf():
    form = BY_NAME["protobuf"](lambda number: RegisteredSchema(number, PROTOBUF, PROTO))

    @settings(max_examples=300, deadline=None)
    @given(protobuf_bytes)
    def check(data):
        with contextlib.suppress(UndecodableRecord):
            json.dumps(form.show(form.decode(b"\0\0\0\0\1\0" + data)))

    check()


@given(some.binary(max_size=60))
def test_any_bytes_with_a_schema(data):
    texts = {AVRO: TREE, JSON: "true", PROTOBUF: PROTO}
    for form in (BY_NAME[name](lambda number, kind=kind: RegisteredSchema(number, kind, texts[kind])) for name, kind in KINDS):
        for each in (data, b"\0" + struct.pack(">i", 7) + data):
            with contextlib.suppress(UndecodableRecord):
                form.show(form.decode(each))


KINDS = (("avro", AVRO), ("json-schema", JSON), ("protobuf", PROTOBUF))


@pytest.mark.parametrize(
    ("pattern", "fits", "does_not"),
    [
        (r"^\p{L}+$", "Müller", "M1"),
        (r"^\d+$", "123", "\u0661\u0662"),  # ECMA's digits are those of ASCII
        (r"^a$", "a", "a\n"),
        (r"^\u00e9\/$", "é/", "e/"),
        (r"^(a+)+$", "a" * 40, "a" * 40 + "!"),
        (r"^(?=.*[A-Z]).{3,}$", "abC", "abc"),
        (r"^(?<first>a)b$", "ab", "b"),
    ],
)
def test_patterns_of_ecma(pattern, fits, does_not):
    schema = JsonChecker(json.dumps({"type": "string", "pattern": pattern}))
    assert schema.problems(fits) == []
    (problem,) = schema.problems(does_not)
    assert "does not match" in problem


@pytest.mark.parametrize("pattern", [pytest.param(r"^(?=(a+)+$)(a|a)+b$", marks=pytest.mark.slow), r"(?<=a+)b", "["])
def test_patterns_that_cannot_be_checked(pattern):
    schema = {"properties": {"x": {"pattern": pattern}}, "patternProperties": {pattern: True}}
    problems = JsonChecker(json.dumps(schema)).problems({"x": "a" * 60})
    assert problems
    assert all("cannot be checked against the pattern" in problem for problem in problems)

"""What is named where a registry only says that Protobuf or JSON Schema is incompatible."""

from kops.formats.protobuf import ProtobufSchema
from kops.formats.schema_differences import json_schema_differences, protobuf_differences

HEAD = 'syntax = "proto3"; package shop; '
OLD = HEAD + "message A { int32 a = 1; string b = 2; B c = 3; map<string, B> m = 4; message B { int32 x = 1; } } message Gone {}"


def differences(new):
    return protobuf_differences(ProtobufSchema(OLD), ProtobufSchema(HEAD + new))


def test_protobuf():
    same = (
        "message A { int64 a = 1; bytes b = 2; B c = 3; map<string, B> m = 4; message B { int32 x = 1; } int32 new = 9; } message Gone {}"
    )
    assert differences(same) == []
    other = "message A { string a = 1; C c = 3; int32 m = 4; message B { int32 y = 1; } message C {} }"
    assert differences(other) == [
        "shop.Gone: the message was removed",
        "shop.A.a: number 1 was int32, and is string",
        "shop.A.b: number 2 was removed; reserve numbers that are no longer used",
        "shop.A.c: number 3 was shop.A.B, and is shop.A.C",
        "shop.A.m: number 4 was map, and is int32",
        "shop.A.B.x: number 1 is now called y",
    ]


def test_json_schema():
    old = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "integer", "maximum": 5}}, "c": True},
        "required": ["c"],
        "additionalProperties": False,
    }
    new = {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "array", "items": {"type": "integer", "maximum": 3}}, "d": {}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert list(json_schema_differences(old, old)) == []
    assert list(json_schema_differences(old, new)) == [
        "a: is required now",
        "c: is no longer required",
        'a: the type was "string", and is "number"',
        "b[]: maximum was 5, and is 3",
        "c: the property was removed, and further properties are not allowed",
        "d: the property is new, and further properties are not allowed",
    ]
    assert list(json_schema_differences(True, {})) == ["the value: was true, and is {}"]

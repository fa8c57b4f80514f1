"""Which field keeps a reader from what was written; the cases and their outcome are those of Avro's specification."""

import json

import pytest

from kops.core.schemas.avro_compatibility import Names, incompatibilities


def record(*fields, name="shop.Order", **more):
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name, kind, **more):
    return {"name": name, "type": kind, **more}


def problems(reader, writer):
    return [str(each) for each in incompatibilities(Names(json.dumps(reader)), Names(json.dumps(writer)))]


LINE = {"type": "array", "items": record(field("price", "double"), name="shop.Line")}
TREE = record(field("next", ["null", "shop.Order"], default=None), field("id", "int"))


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        ("long", "int"),
        ("double", "long"),
        ("bytes", "string"),
        (["null", "long"], "int"),
        ("int", ["int"]),
        (["string", "null"], ["null", "string"]),
        (record(field("a", "int"), field("b", "int", default=1)), record(field("a", "int"), field("c", "string"))),
        (record(field("new", "int", aliases=["old"])), record(field("old", "int"))),
        (record(field("a", "int"), aliases=["Old"]), record(field("a", "int"), name="shop.Old")),
        ({"type": "enum", "name": "K", "symbols": ["A"], "default": "A"}, {"type": "enum", "name": "K", "symbols": ["A", "B"]}),
        (TREE, TREE),
        (record(field("k", {"type": "enum", "name": "K", "symbols": ["A"]}), field("l", "shop.K", default="A")),) * 2,
    ],
)
def test_what_can_be_read(reader, writer):
    assert problems(reader, writer) == []


@pytest.mark.parametrize(
    ("reader", "writer", "problem"),
    [
        ("int", "long", "long is written, and int is read"),
        (record(field("a", "int"), field("b", "int")), record(field("a", "int")), "b: is read, was not written, and has no default"),
        (
            record(field("to", record(field("city", "int"), name="A"))),
            record(field("to", record(field("city", "string"), name="A"))),
            "to.city: ",
        ),
        (
            record(field("lines", {**LINE, "items": {**LINE["items"], "name": "shop.Row"}})),
            record(field("lines", LINE)),
            "lines[]: shop.Line is",
        ),
        (
            record(field("m", {"type": "map", "values": "int"})),
            record(field("m", {"type": "map", "values": "string"})),
            "m{}: string is written",
        ),
        (record(field("a", "string")), record(field("a", ["null", "string"])), "a: null | string is written, and string is read"),
        (record(field("a", ["null", "int"])), record(field("a", "string")), "a: string is written, and none of null | int takes it"),
        (record(field("a", ["null", "int"])), record(field("a", ["null", "int", "string"])), "a: string is written, and none of"),
        (
            record(field("k", {"type": "enum", "name": "K", "symbols": ["A"]})),
            record(field("k", {"type": "enum", "name": "K", "symbols": ["A", "B", "C"]})),
            "k: the reader does not have the symbols B, C, and no default",
        ),
        ({"type": "fixed", "name": "F", "size": 4}, {"type": "fixed", "name": "F", "size": 8}, "8 bytes are written, and 4 are read"),
        (record(*TREE["fields"][:1], field("id", "string")), TREE, "id: int is written, and string is read"),
    ],
)
def test_what_cannot_is_named_by_its_field(reader, writer, problem):
    found = problems(reader, writer)
    assert len(found) == 1
    assert found[0].startswith(problem)

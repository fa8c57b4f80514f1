"""Random Protobuf schemas with records, read by kops from the text of the schema and by protobuf-java from its descriptor.

The bytes are written here, as careless and newer producers write them too: fields in any order, repeated, unknown, with numbers too long.
Times and durations that Protobuf's JSON cannot say are shown by their fields, as ``DynamicMessage`` has them; 64-bit numbers are numbers
and not texts, unlike in ``JsonFormat``. A map's entry that no writer makes, with several keys or values, or a key that is not UTF-8, is
left out by Google's library for Python, and so is one of proto2 whose enum value is unknown, as the specification has it. A text of proto2
that is not UTF-8 is shown as its bytes, where Java puts U+FFFD.
"""

import json
import struct

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from differential.test_avro_records import bytes_of, same_number
from kops.core.errors import KopsError
from kops.formats.base import shown
from kops.formats.protobuf import ProtobufSchema
from support.java_judge import COUNTS, portions, random_of

VARINTS = ("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool")
FIXED = {"fixed32": 4, "sfixed32": 4, "float": 4, "fixed64": 8, "sfixed64": 8, "double": 8}
SCALARS = (*VARINTS, *FIXED, "string", "bytes")
GOOGLE = ("Timestamp", "Duration", "Int64Value", "FloatValue", "StringValue", "BytesValue", "BoolValue")
MAP_KEYS = ("int32", "int64", "uint64", "sint32", "fixed64", "bool", "string")
EDGES = (0, 1, 127, 128, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1)
SECONDS = (0, 1_700_000_000, 253_402_300_799, 253_402_300_800, -62_135_596_800, -62_135_596_801, 315_576_000_001, -1, 2**63 - 1)


class Schema:
    """A random file: its text, its descriptor, and bytes of its first message."""

    def __init__(self, random):
        self.random = random
        self.proto3 = random.random() < 0.7
        self.file = FileDescriptorProto(name="schema.proto", syntax="proto3" if self.proto3 else "proto2")
        imports = ("timestamp", "duration", "wrappers")
        self.file.dependency.extend(f"google/protobuf/{each}.proto" for each in imports)
        self.lines = [f'syntax = "{self.file.syntax}";', *(f'import "google/protobuf/{each}.proto";' for each in imports)]
        self.names = [f"M{number}" for number in range(random.randint(1, 3))]
        kind = self.file.enum_type.add(name="Kind")
        for number, name in ((0, "NONE"), (1, "NEW"), (-1, "BELOW")):
            kind.value.add(name=name, number=number)
        self.lines.append("enum Kind { NONE = 0; NEW = 1; BELOW = -1; }")
        for name in self.names:
            self.message(name)
        self.text = "\n".join(self.lines)

    def message(self, name):
        made = self.file.message_type.add(name=name)
        self.lines.append(f"message {name} {{")
        for number in self.random.sample([1, 2, 3, 15, 16, 100, 5000, 2**29 - 1], self.random.randint(0, 6)):
            self.field(made, number)
        if self.random.random() < 0.3:
            made.oneof_decl.add(name="either")
            self.lines.append("oneof either {")
            for number in (20, 21):
                kind = self.random.choice(SCALARS)
                made.field.add(name=f"o{number}", number=number, type=type_of(kind), label=1, oneof_index=0)
                self.lines.append(f"{kind} o{number} = {number};")
            self.lines.append("}")
        self.lines.append("}")
        for field in made.field:
            if field.proto3_optional:
                field.oneof_index = len(made.oneof_decl)
                made.oneof_decl.add(name=f"_{field.name}")

    def field(self, made, number):
        name = f"f{number}"
        if self.random.random() < 0.15:
            self.map(made, name, number)
            return
        kind = self.random.choice([*SCALARS, *SCALARS, *GOOGLE, "Kind", *self.names])
        label = self.random.choice(["", "optional", "repeated"] if self.proto3 else ["optional", "required", "repeated"])
        field = made.field.add(name=name, number=number, label={"repeated": 3, "required": 2}.get(label, 1), **named_type(kind))
        if label == "optional" and self.proto3:
            field.proto3_optional = True
        self.lines.append(f"{label} {f'google.protobuf.{kind}' if kind in GOOGLE else kind} {name} = {number};")

    def map(self, made, name, number):
        key, value = self.random.choice(MAP_KEYS), self.random.choice([*SCALARS, "Kind", *self.names])
        entry = made.nested_type.add(name=f"{name.capitalize()}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=type_of(key), label=1)
        entry.field.add(name="value", number=2, label=1, **named_type(value))
        made.field.add(name=name, number=number, type=11, type_name=f".{made.name}.{entry.name}", label=3)
        self.lines.append(f"map<{key}, {value}> {name} = {number};")

    def data(self, message, depth=0):
        """Return the fields of a message in any order, some twice, some that it does not have."""
        parts = []
        for field in message.field:
            for _ in range(self.random.choice([0, 1, 1] if message.options.map_entry else [0, 1, 1, 1, 2])):
                parts.append(self.field_data(message, field, depth))
        if self.random.random() < 0.2 and not message.options.map_entry:
            parts.append(self.random.choice([tag(7, 0) + varint(9), tag(8, 2) + varint(3) + b"abc", tag(9, 5) + b"1234"]))
        self.random.shuffle(parts)
        return b"".join(parts)

    def field_data(self, message, field, depth):
        kind = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
        if kind == "message":
            return tag(field.number, 2) + sized(self.inner(message, field, depth))
        if field.label == 3 and kind not in ("string", "bytes") and self.random.random() < 0.5:
            return tag(field.number, 2) + sized(b"".join(self.scalar(kind)[1] for _ in range(self.random.randint(0, 3))))
        wire, data = self.scalar(kind)
        if message.options.map_entry and data.endswith(b"\xff") and kind == "string":
            data = sized(b"a")
        if message.options.map_entry and kind == "enum" and not self.proto3:
            data = varint(self.random.choice([0, 1, -1]))
        return tag(field.number, wire) + data

    def inner(self, message, field, depth):
        name = field.type_name.rpartition(".")[2]
        if name in ("Timestamp", "Duration"):
            nanos = self.random.choice([0, 1, 123_000_000, 999_999_999, 1_000_000_000, -1])
            return tag(1, 0) + varint(self.random.choice(SECONDS)) + tag(2, 0) + varint(nanos)
        if name in GOOGLE:
            kind = {"Int64Value": "int64", "FloatValue": "float", "StringValue": "string", "BytesValue": "bytes", "BoolValue": "bool"}[name]
            wire, data = self.scalar(kind)
            return self.random.choice([b"", tag(1, wire) + data])
        nested = {each.name: each for each in (*self.file.message_type, *message.nested_type)}[name]
        return self.data(nested, depth + 1) if depth < 4 else b""

    def scalar(self, kind):
        random = self.random
        if kind in FIXED:
            size = FIXED[kind]
            number = struct.pack("<f" if size == 4 else "<d", random.choice([0.1, -0.0, 1e-7, 3.4e38, 16777217.0, float("nan")]))
            return (5 if size == 4 else 1), random.choice([random.randbytes(size), number if kind in ("float", "double") else bytes(size)])
        if kind == "string":
            return 2, sized(random.choice(["", "a", "\u00e9\u4e2d\U0001f600"]).encode() if random.random() < 0.97 else b"\xff")
        if kind == "bytes":
            return 2, sized(random.choice([b"", b"abc", random.randbytes(5)]))
        if kind == "enum":
            return 0, varint(random.choice([0, 1, -1, 7, 2**31]))
        return 0, varint(random.choice([random.choice(EDGES), random.randint(0, 300), random.getrandbits(64)]))


def type_of(kind):
    return FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")


def named_type(kind):
    if kind in SCALARS:
        return {"type": type_of(kind)}
    return {"type": 14 if kind == "Kind" else 11, "type_name": f".google.protobuf.{kind}" if kind in GOOGLE else f".{kind}"}


def varint(number):
    number &= 2**64 - 1
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


def tag(number, wire):
    return varint(number << 3 | wire)


def sized(data):
    return varint(len(data)) + data


def case_of(random):
    """Return the text of a schema, its descriptor, and bytes, which sometimes end too soon."""
    schema = Schema(random)
    data = schema.data(schema.file.message_type[0])
    return schema.text, schema.file.SerializeToString(), data[:-1] if random.random() < 0.03 and data else data


def agree(said, found):
    """Whether what kops shows is what Java says."""
    kind, *more = said
    return SAME[kind](more, found)


def same_message(fields, found):
    named = dict(fields)
    return set(named) == set(found) and all(agree(each, found[name]) for name, each in named.items())


def same_text(said, found):
    if "\ufffd" in said[0] and isinstance(found, dict):
        return bytes_of(found).decode(errors="replace") == said[0]
    return (json.dumps(found) if isinstance(found, (bool, int)) else found) == said[0]


SAME = {
    "message": same_message,
    "list": lambda items, found: len(items) == len(found) and all(map(agree, items, found)),
    "map": lambda said, found: set(said[0]) == set(found) and all(agree(said[0][name], each) for name, each in found.items()),
    "bytes": lambda said, found: bytes_of(found).hex() == said[0],
    "float": lambda said, found: same_number(">f", said[0], found),
    "double": lambda said, found: same_number(">d", said[0], found),
    "text": same_text,
}


@pytest.mark.parametrize("count", COUNTS)
def test_protobuf_reads_the_same(java_judge, count):
    refused = 0
    for cases in portions(case_of(random) for random in random_of("protobuf", count)):
        asked = [{"file": file.hex(), "message": "M0", "data": data.hex()} for _, file, data in cases]
        for (text, _, data), java in zip(cases, java_judge.ask("ProtobufRecords", asked), strict=True):
            try:
                kops = {"ok": shown(ProtobufSchema(text).decode(b"\0" + data))}
            except KopsError as wrong:
                kops = {"error": wrong.message}
            said = f"{text} {data.hex()}: kops {kops}, Java {java}"
            assert ("error" in kops) == ("error" in java), said
            assert "error" in java or agree(java["ok"], kops["ok"]), said
            refused += "error" in java
    assert 0 < refused < count / 5

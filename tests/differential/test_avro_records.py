"""Random Avro schemas with records, read by kops and by Avro's own ``GenericDatumReader`` and conversions.

The bytes are written here, by the specification: no writer would write what is wrong on purpose, such as decimals beyond their precision.
What differs by decision: bytes of a text that are not UTF-8 are an error, where Java puts U+FFFD, and so are bytes left over; UUIDs are
shown in lower case; a name is defined before it is used, as the specification has it and Java did until 1.11.
"""

import base64
import json
import struct
from decimal import Decimal

import pytest

from kops.core.errors import KopsError
from kops.formats.avro import AvroSchema
from support.java_judge import COUNTS, portions, random_of

TIMES = tuple(f"{local}timestamp-{unit}" for local in ("", "local-") for unit in ("millis", "micros", "nanos"))
EDGES = (0, 1, -1, 86_399_999, 86_400_000, 2_932_896, 2_932_897, -719_162, -719_163, 2**31 - 1, -(2**31))
LONG_EDGES = (
    *EDGES,
    *(86_399_999_999, 86_400_000_000, 253_402_300_799_999, 253_402_300_800_000, -62_135_596_800_000, -62_135_596_800_001),
    *(253_402_300_800_000_000, -62_135_596_800_000_001, -62_167_219_200_000_001, 2**63 - 1, -(2**63), 2**53 + 1),
)
UUIDS = ("123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-42661417400", "no uuid", "")


class Schemas:
    """Random schemas; names are defined once and used again."""

    def __init__(self, random):
        self.random, self.named = random, {}

    def any(self, depth=0, union=True):
        random = self.random
        kinds = ["scalar"] * 4 + ["logical"] * 6 + ["fixed", "enum"]
        kinds += (["record"] * 3 + ["array", "map"] + ["union"] * (2 if union else 0)) if depth < 3 else []
        kind = random.choice(kinds)
        if kind in ("fixed", "enum", "record") and self.named and random.random() < 0.2:
            return random.choice(list(self.named))
        return getattr(self, kind)(depth)

    def name(self):
        return f"N{len(self.named)}"

    def scalar(self, _depth):
        kind = self.random.choice(["null", "boolean", "int", "long", "float", "double", "bytes", "string"])
        return self.random.choice([kind, {"type": kind}])

    def logical(self, _depth):
        """Return a type with a logical one, which is not always valid."""
        random = self.random
        name = random.choice(["decimal", "decimal", "decimal", "uuid", "date", "time-millis", "time-micros", *TIMES, "unknown"])
        kind = {"decimal": "bytes", "uuid": "string", "date": "int", "time-millis": "int"}.get(name, "long")
        if random.random() < 0.1:
            kind = random.choice(["int", "long", "string", "bytes", "double"])
        found = {"type": kind, "logicalType": name}
        if name == "decimal":
            found |= self.decimal()
            if kind == "bytes" and random.random() < 0.4:
                found |= {"type": "fixed", "name": self.name(), "size": random.randint(1, 20)}
                self.named[found["name"]] = found
        return found

    def decimal(self):
        random = self.random
        precision = random.choice([1, 4, 9, 10, 20, 38, 60, 0, -1, "9", 4.0, None, random.randint(1, 40)])
        scale = random.choice([0, 1, 2, 10, precision, -1, "2", None])
        return {**({} if precision is None else {"precision": precision}), **({} if scale is None else {"scale": scale})}

    def fixed(self, _depth):
        found = {"type": "fixed", "name": self.name(), "size": self.random.randint(0, 17)}
        self.named[found["name"]] = found
        return found

    def enum(self, _depth):
        found = {"type": "enum", "name": self.name(), "symbols": ["A", "B", "C"][: self.random.randint(1, 3)]}
        if self.random.random() < 0.3:
            found["default"] = self.random.choice(["A", "ZZ"])
        self.named[found["name"]] = found
        return found

    def record(self, depth):
        found = {"type": "record", "name": self.name(), "fields": []}
        self.named[found["name"]] = found
        for number in range(self.random.randint(0, 4)):
            field = {"name": f"f{number}", "type": self.any(depth + 1)}
            if self.random.random() < 0.3:
                field["default"] = self.random.choice([None, 0, "12", 1.5, [], {}, True])
            if self.random.random() < 0.2:
                field |= {"doc": "a", "aliases": ["b"]}
            found["fields"].append(field)
        return found

    def array(self, depth):
        return {"type": "array", "items": self.any(depth + 1)}

    def map(self, depth):
        return {"type": "map", "values": self.any(depth + 1)}

    def union(self, depth):
        branches, kinds = [], set()
        for branch in ("null", *(self.any(depth + 1, union=False) for _ in range(self.random.randint(1, 3)))):
            kind = branch if isinstance(branch, str) else branch.get("name") or branch["type"]
            if kind not in kinds:
                kinds.add(kind)
                branches.append(branch)
        return branches if self.random.random() < 0.7 else [*branches[1:], "null"]


class Data:
    """Random bytes of a schema."""

    def __init__(self, random, named):
        self.random, self.named = random, named

    def of(self, schema, depth=0):
        if depth > 30:
            raise RecursionError
        if isinstance(schema, list):
            nulls = [at for at, branch in enumerate(schema) if branch == "null"]
            at = nulls[0] if nulls and depth > 8 else self.random.randrange(len(schema))
            return varint(at) + self.of(schema[at], depth + 1)
        if isinstance(schema, str):
            schema = self.named.get(schema, {"type": schema})
        return getattr(self, schema["type"])(schema, depth + 1)

    def record(self, schema, depth):
        return b"".join([self.of(field["type"], depth) for field in schema["fields"]])

    def array(self, schema, depth):
        return self.blocks(depth, lambda: self.of(schema["items"], depth))

    def map(self, schema, depth):
        return self.blocks(depth, lambda: self.text(self.random.choice("abcd")) + self.of(schema["values"], depth))

    def enum(self, schema, _depth):
        return varint(self.random.randrange(len(schema["symbols"])))

    def fixed(self, schema, _depth):
        return self.random.randbytes(schema["size"])

    def blocks(self, depth, item):
        count = 0 if depth > 6 else self.random.randint(0, 3)
        items = b"".join(item() for _ in range(count))
        if not count:
            return varint(0)
        return (varint(count) if self.random.random() < 0.7 else varint(-count) + varint(len(items))) + items + varint(0)

    def text(self, text):
        return varint(len(text.encode())) + text.encode()

    def null(self, _schema, _depth):
        return b""

    def boolean(self, _schema, _depth):
        return bytes([self.random.randint(0, 1)])

    def int(self, _schema, _depth):
        random = self.random
        return varint(random.choice([random.choice(EDGES), random.randint(-(2**31), 2**31 - 1), random.randint(0, 86_400_000)]))

    def long(self, _schema, _depth):
        random = self.random
        return varint(random.choice([random.choice(LONG_EDGES), random.randint(-(2**63), 2**63 - 1), random.randint(0, 2**42)]))

    def float(self, _schema, _depth):
        return self.random.choice([self.random.randbytes(4), struct.pack("<f", self.random.choice([0.1, -0.0, 1e-7, 3.4e38, 16777217.0]))])

    def double(self, _schema, _depth):
        numbers = [0.1, -0.0, 1e300, 5e-324, *map(float, ("nan", "inf"))]
        return self.random.choice([self.random.randbytes(8), struct.pack("<d", self.random.choice(numbers))])

    def bytes(self, _schema, _depth):
        data = self.random.choice([b"", self.random.randbytes(self.random.randint(1, 30)), (123456789).to_bytes(5, "big"), b"\0\0\1"])
        return varint(len(data)) + data

    def string(self, schema, _depth):
        if schema.get("logicalType") == "uuid":
            return self.text(self.random.choice(UUIDS))
        return self.text(self.random.choice(["", "a", "\u00e9\u4e2d\U0001f600", "x" * 70]))


def varint(number):
    number = (number << 1) ^ (number >> 63)
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


def case_of(random):
    """Return a schema and bytes, which sometimes end too soon."""
    schemas = Schemas(random)
    schema = schemas.any() if random.random() < 0.2 else schemas.record(0)
    try:
        data = Data(random, schemas.named).of(schema)
    except RecursionError:
        return '"null"', b""
    return json.dumps(schema), data[:-1] if random.random() < 0.03 and data else data


def agree(said, shown):
    """Whether what kops shows is what Java says."""
    kind, *more = said
    return SAME[kind](more, shown)


def same_record(fields, shown):
    return [name for name, _ in fields] == list(shown) and all(agree(each, shown[name]) for name, each in fields)


def same_map(said, shown):
    return set(said[0]) == set(shown) and all(agree(said[0][name], each) for name, each in shown.items())


def same_text(said, shown):
    text = json.dumps(shown) if isinstance(shown, (bool, int)) else shown
    return text == said[0] or (said[0] in UUIDS and text == said[0].lower())


def bytes_of(shown):
    return base64.b64decode(shown["data"]) if shown["encoding"] == "base64" else shown["data"].encode()


def same_number(code, java, shown):
    """Whether a number is the same in as many bits, and no longer than Java writes it."""
    if isinstance(shown, str) or java in ("NaN", "Infinity", "-Infinity"):
        return shown == java
    digits = len(Decimal(repr(shown)).normalize().as_tuple().digits)
    return struct.pack(code, shown) == struct.pack(code, float(java)) and digits <= len(Decimal(java).normalize().as_tuple().digits)


def short(text):
    """Return a time without zeros at the end of its seconds, which Java writes as it needs them and kops by milliseconds; else the text."""
    if not isinstance(text, str) or ":" not in text:
        return text
    body, zone = (text[:-1], "Z") if text.endswith("Z") else (text, "")
    if body.count(":") == 1:
        body += ":00"
    return (body.rstrip("0").rstrip(".") if "." in body else body) + zone


SAME = {
    "record": same_record,
    "array": lambda items, shown: len(items) == len(shown) and all(map(agree, items, shown)),
    "map": same_map,
    "bytes": lambda said, shown: bytes_of(shown).hex() == said[0],
    "float": lambda said, shown: same_number(">f", said[0], shown),
    "double": lambda said, shown: same_number(">d", said[0], shown),
    "null": lambda _, shown: shown is None,
    "logical": lambda said, shown: short(shown) == short(said[0]),
    "text": same_text,
}


@pytest.mark.parametrize("count", COUNTS)
def test_avro_reads_the_same(java_judge, count):
    refused = logical = 0
    for cases in portions(case_of(random) for random in random_of("avro", count)):
        answers = java_judge.ask("AvroRecords", [{"schema": schema, "data": data.hex()} for schema, data in cases])
        for (schema, data), java in zip(cases, answers, strict=True):
            try:
                kops = {"ok": AvroSchema(schema).decode(data)}
            except KopsError as wrong:
                kops = {"error": wrong.message}
            said = f"{schema} {data.hex()}: kops {kops}, Java {java}"
            assert ("error" in kops) == ("error" in java), said
            assert "error" in java or agree(java["ok"], kops["ok"]), said
            refused += "error" in java
            logical += '"logical"' in json.dumps(java)
    assert 0 < refused < count / 5
    assert logical > count / 5

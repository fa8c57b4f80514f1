"""Programs and inputs that the rebuild is judged by: every aggregate, every format, awkward keys and times."""

from __future__ import annotations

import json
import math
import random
import struct
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

from support.programs import Headers, KeyBy, Program, Record, Where

PARTITIONS = 3
START = 1_700_000_000_000
NEGATIVE_MURMUR2 = ["21", "foobar", "a-little-bit-long-string"]
"""From Kafka's UtilsTest."""
TEXTS = ["", "a", "apple", "ключ", "日本語", "😀", "\uffee", "e\u0301", "é", " ", "a\u0000b", "x" * 300, *NEGATIVE_MURMUR2]
"""Texts with no letter, with letters of several bytes, and with some beyond 16 bits."""
LONGS = [0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1, 10**12, -7]
INTS = [0, 1, -1, 2**31 - 1, -(2**31), 7, 65536]
SHORTS = [0, 1, -1, 2**15 - 1, -(2**15), 300]
FINITE = [0.1, 0.2, 0.3, -2.5, 1e300, 5e-324, 1e16, 1.0, 2000.0]
PLAIN = [0.1, -2.5, 2000.0, 3, -1, 0]
ODD_NAN = b"\x7f\xf8\x00\x00\x00\x00\x00\x01"
"""A NaN that DoubleSerializer does not write: it writes the one of ``Double.doubleToLongBits``."""
DOUBLES = [*FINITE, 0.0, -0.0, math.inf, ODD_NAN]
FLOATS = [0.1, 0.2, -2.5, 3.4e38, 1e-45, 16777216.0, 1.0, 0.0, -0.0, math.inf, math.nan]
UUIDS = [*(str(uuid.UUID(int=number)) for number in (0, 1, 2**127, 2**128 - 1)), "ABCDEF01-2345-6789-ABCD-EF0123456789"]
"""The last in capitals, which Java reads and does not write."""

ENCODERS: dict[str, Callable[[object], bytes]] = {
    "string": lambda value: str(value).encode(),
    "uuid": lambda value: str(value).encode(),
    "bytes": lambda value: value if isinstance(value, bytes) else str(value).encode(),
    "long": lambda value: struct.pack(">q", value),
    "int": lambda value: struct.pack(">i", value),
    "short": lambda value: struct.pack(">h", value),
    "double": lambda value: value if isinstance(value, bytes) else struct.pack(">d", value),
    "float": lambda value: struct.pack(">f", value),
    "json": lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(),
}
VALUES: dict[str, Sequence[object]] = {
    "string": TEXTS,
    "uuid": UUIDS,
    "bytes": [b"", b"\x00", b"\xff\xfe", b"\x80abc", b"plain"],
    "long": LONGS,
    "int": INTS,
    "short": SHORTS,
    "double": DOUBLES,
    "float": FLOATS,
}


@dataclass(frozen=True)
class Case:
    """A program and the records of its input, each with its partition."""

    name: str
    program: Program
    records: tuple[Record, ...]

    def in_partition(self, partition: int) -> list[Record]:
        return [record for record in self.records if record.partition == partition]


def prices(random_: random.Random, *, rough: bool) -> object:
    """A price as JSON, sometimes without one of its fields, or with it null, or a number that looks like an integer.

    :param rough: numbers and letters that Python and Java spell differently too
    """
    texts = TEXTS if rough else [text for text in TEXTS if max(text, default="") < "\U00010000"]  # which Jackson writes as two escapes
    price = {"id": random_.choice(LONGS), "item": random_.choice(texts), "price": random_.choice([*FINITE, 3, -1, 0] if rough else PLAIN)}
    for field in ("item", "price"):
        chance = random_.random()
        if chance < 0.05:
            del price[field]
        elif chance < 0.1:
            price[field] = None
    return price


def records(program: Program, seed: str, count: int = 240, partitions: int = PARTITIONS) -> tuple[Record, ...]:
    """Return an input: times shuffled and repeated, null keys, null values, headers, keys that come back after a tombstone.

    Where a key goes is not the default partitioner's choice, as with producers that have a partitioner of their own.
    """
    random_ = random.Random(seed)
    keys = [ENCODERS[program.key](key) for key in VALUES[program.key]]
    times = [START + 10 * (at // 2) for at in range(count)]
    random_.shuffle(times)
    made = []
    for time in times:
        key = None if random_.random() < 0.05 else random_.choice(keys)
        if random_.random() < 0.12:
            value = None
        elif program.value == "json":
            value = ENCODERS["json"](prices(random_, rough=program.format != "json"))
        else:
            value = ENCODERS[program.value](random_.choice(VALUES[program.value]))
        headers: Headers = (("trace", b"\x00\xff"), ("trace", None)) if random_.random() < 0.3 else ()
        if program.timestamp and random_.random() < 0.7:
            extracted = -1 if random_.random() < 0.1 else START + random_.randrange(1000)
            headers = (*headers, ("ts", b"7"), ("ts", b"%d" % extracted))
        partition = random_.randrange(partitions) if key is None else crc32(key) % partitions
        made.append(Record(key, value, time, headers, partition))
    return tuple(made)


def case(name: str, program: Program, partitions: int = PARTITIONS) -> Case:
    store = name.replace("_", "-")
    program = replace(program, store=store, topic=f"in-{store}")
    if program.key_by:
        program = replace(program, key_by=replace(program.key_by, repartition=store))
        partitions = 1  # with one upstream partition, the order in the repartition topic is known
    return Case(name, program, records(program, name, partitions=partitions))


BY_HEADER = "coalesce(cast(cast(try_element_at(filter(headers, h -> h.key = 'ts'), -1).value as string) as bigint), timestamp_ms)"
"""What PayloadTime.java finds in these inputs."""


def own_key_cases() -> list[Case]:
    """Aggregates by the record's own key; not every kind with every format, but each with those that differ."""
    schema = "id bigint, item string, price double"
    cases = [
        case("count_json", Program("count", "long", schema=schema)),
        case("sum_price", Program("sum", "double", "price", schema=schema)),
        case("sum_price_where", Program("sum", "double", "price", schema=schema, where=Where("ge", 0.2, "price"))),
        case("sum_id", Program("sum", "long", "id", schema=schema)),
        case("sum_where_text", Program("sum", "long", "id", schema=schema, where=Where("eq", "ключ", "item"))),
        case("max_item", Program("max", "string", "item", schema=schema)),
        case("first_item", Program("first", "string", "item", schema=schema)),
        case("last_json", Program("last", "json", schema=schema)),
        case("table_json", Program("table", "json", schema=schema)),
        case("to_table_where", Program("to_table", "double", "price", schema=schema, where=Where("ge", 0.2, "price"))),
        case("to_table_price", Program("to_table", "string", "item", schema=schema)),
        case("timed_sum", Program("sum", "double", "price", schema=schema, timestamp=BY_HEADER)),
        case("timed_table", Program("table", "string", value="string", timestamp=BY_HEADER)),
        case("timed_to_table", Program("to_table", "double", "price", schema=schema, timestamp=BY_HEADER)),
        case("concat", Program("concat", "string", value="string")),
        case("concat_or_delete", Program("concat_or_delete", "string", value="string")),
    ]
    cases += [case(f"sum_{form}", Program("sum", form, key=form, value=form)) for form in ("long", "int", "double", "float")]
    extremes = ("min_int", "max_long", "min_double", "max_double", "max_float", "min_string", "max_string")
    latest = (
        "table_string",
        "table_uuid",
        "table_double",
        "table_bytes",
        "last_string",
        "last_long",
        "last_uuid",
        "first_short",
        "first_float",
    )
    for name in (*extremes, *latest):
        kind, _, form = name.partition("_")
        cases.append(case(name, Program(kind, form, key=form, value=form)))
    return cases


def new_key_cases() -> list[Case]:
    """Aggregates by another key, through a repartition topic."""
    schema = "id bigint, item string, price double"
    item, whole = KeyBy(field="item"), KeyBy()
    cases = [
        case("by_item_count", Program("count", "long", schema=schema, key_by=item)),
        case("by_item_sum", Program("sum", "double", "price", schema=schema, key_by=item)),
        case("by_item_where", Program("sum", "double", "price", schema=schema, key_by=item, where=Where("lt", 100.0, "price"))),
        case("by_item_first", Program("first", "double", "price", schema=schema, key_by=item)),
        case("to_table_by_item", Program("to_table", "long", "id", schema=schema, key_by=item)),
        case("timed_by_item", Program("sum", "double", "price", schema=schema, key_by=item, timestamp=BY_HEADER)),
        case("by_item_last", Program("last", "long", "id", schema=schema, key_by=item)),
        case("by_id", Program("last", "string", "item", schema=schema, key_by=KeyBy("long", "id"))),
        case("by_word", Program("count", "long", value="string", key_by=whole)),
        case("by_word_concat", Program("concat", "string", value="string", key_by=whole)),
    ]
    for form in ("double", "uuid"):
        cases.append(case(f"by_{form}", Program("count", "long", key="bytes", value=form, key_by=KeyBy(form))))
    return cases


FURTHER = frozenset(
    {
        *("sum_price", "sum_id", "sum_where_text", "max_item", "to_table_price", "timed_table", "sum_long", "sum_int", "sum_float"),
        *("max_long", "min_double", "max_double", "min_string", "table_uuid", "table_double", "table_bytes", "last_string", "last_uuid"),
        *("first_float", "by_item_count", "by_item_first", "by_item_last", "by_word", "by_double"),
        *("table_json", "min_int", "to_table_where", "by_id", "timed_by_item"),
        *("sum_price_where", "sum_double", "max_float", "last_long", "first_short", "by_item_where", "by_uuid", "timed_to_table"),
    }
)
"""Further formats of aggregates of which others stay: long variants. Their formats are compared one by one in test_formats.py too."""

"""Bytes to values and back in Spark SQL, against Python's struct: every bit, and every kind of wrong bytes."""

import json
import math
import re
import struct
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from random import Random

import pytest

from kops.core.errors import OperationFailed
from kops.core.schemas.models import RegisteredSchema
from kops.core.statefile import Form
from kops.spark.driver.failures import explained
from kops.spark.reading.codec import decoding, encoding, written_again
from kops.spark.reading.registered import with_read

pytestmark = pytest.mark.spark

NUMBERS = {
    "long": (">q", [0, 1, -1, 2**63 - 1, -(2**63), 123456789]),
    "int": (">i", [0, -1, 2**31 - 1, -(2**31)]),
    "short": (">h", [0, -1, 2**15 - 1, -(2**15)]),
    "double": (">d", [0.0, -0.0, 19.99, math.inf, -math.inf, math.nan, 5e-324, 1.7976931348623157e308]),
    "float": (">f", [0.0, -0.0, 1.5, math.inf, math.nan, 1e-45, 3.4028234663852886e38]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_come_back_bit_by_bit(spark, name):
    code, numbers = NUMBERS[name]
    packed = [struct.pack(code, number) for number in numbers]
    rows = [(at, bytearray(data)) for at, data in enumerate(packed)] + [(98, None), (99, bytearray(b"abc"))]
    how = decoding("b", Form(name))
    decoded = spark.createDataFrame(rows, "at int, b binary").selectExpr("at", f"{how.value} as v", f"{how.is_wrong} as wrong")
    found = (
        decoded.selectExpr("at", "v", "coalesce(wrong, false) as wrong", f"{encoding('v', Form(name))} as again").orderBy("at").collect()
    )
    assert [bytes(row.again) for row in found[:-2]] == packed
    assert [(row.v, row.again, row.wrong) for row in found[-2:]] == [(None, None, False), (None, None, True)]
    assert not any(row.wrong for row in found[:-2])


TEXTS = {
    "string": ([b"", b"a", "ключ 😀".encode()], [b"\xff", b"a\xc3", b"\xed\xa0\x80"]),
    "uuid": ([b"123e4567-e89b-12d3-a456-426614174000"], [b"", b"123e4567", b"123e4567-e89b-12d3-a456-42661417400g"]),
    "json": ([b"{}", b"[1]", b"null", b'"a"', b" 1 "], [b"", b" ", b"{", b"\xff"]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_not_of_a_format(spark, name):
    good, wrong = TEXTS[name]
    how = decoding("b", Form(name))
    frame = spark.createDataFrame([(at, bytearray(data)) for at, data in enumerate([*good, *wrong])], "at int, b binary")
    judged = frame.selectExpr("at", "b", f"{how.value} as v").selectExpr("at", f"{how.is_wrong.replace('{value}', 'v')} as wrong")
    assert [row.wrong for row in judged.orderBy("at").collect()] == [False] * len(good) + [True] * len(wrong)


@pytest.mark.parametrize(
    ("data", "wrong", "price"),
    [
        (b'{"item":"a","price":2}', False, 2.0),
        (b'{"item":"a","more":[1]}', False, None),
        (b"null", False, None),
        (b"", True, None),
        (b"{", True, None),
        (b"[1]", True, None),
        (b'{"price":"two"}', True, None),
        (b'{"item":"\xff"}', True, None),
    ],
)
def test_json_with_a_schema(spark, data, wrong, price):
    how = decoding("b", Form("json", "item string, price double"))
    frame = spark.createDataFrame([(bytearray(data),)], "b binary").selectExpr("b", f"{how.value} as v")
    found = frame.selectExpr(f"{how.is_wrong.replace('{value}', 'v')} as wrong", "v.price as price").collect()[0]
    assert (found.wrong, None if found.wrong else found.price) == (wrong, price)


def test_what_kafka_streams_writes_for_what_it_read(spark):
    """UUIDSerializer writes lower case, DoubleSerializer one NaN, StringDeserializer replaces what is not UTF-8."""
    cases = [
        (Form("uuid"), b"123E4567-E89B-12D3-A456-426614174000", b"123e4567-e89b-12d3-a456-426614174000"),
        (Form("double"), bytes.fromhex("fff8000000000001"), bytes.fromhex("7ff8000000000000")),
        (Form("string"), b"a\xffb", "a\ufffdb".encode()),
        (Form("json"), b'{"a": 1}', b'{"a": 1}'),
    ]
    for form, data, wanted in cases:
        how = decoding("b", form, lenient=True)
        frame = spark.createDataFrame([(bytearray(data),)], "b binary").selectExpr("b", f"{how.value} as v")
        assert bytes(frame.selectExpr(f"{written_again('v', 'b', form)} as again").collect()[0].again) == wanted


def test_what_a_column_cannot_hold_ends_the_job_with_the_record_and_the_field(spark):
    amount = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    schema = {"type": "record", "name": "R", "fields": [{"name": "amount", "type": amount}]}
    form = Form("avro", registered=(RegisteredSchema(1, "AVRO", json.dumps(schema)),))
    rows = [(b"\0\0\0\0\1\x04\x04\xce", "orders", 3, 7), (b"\0\0\0\0\1\x0a" + (123456789).to_bytes(5, "big"), "orders", 3, 8)]
    frame = spark.createDataFrame(rows, "_value binary, topic string, partition int, offset bigint")
    assert with_read(frame.where("offset = 7"), {"_value": form}).selectExpr("_value_read.amount as a").collect()[0].a == Decimal("12.30")
    reason = "the value of orders:3 at offset 8 has no place in a column: amount: 1234567.89 does not fit into decimal(4,2)"
    with pytest.raises(OperationFailed, match=re.escape(reason)), explained("compute totals"):
        with_read(frame, {"_value": form}).collect()


HELD = {
    "a double": (
        "0.1",
        "0.10000000000000001",
        "1e23",
        "5e-324",
        "-0.0",
        "9223372036854775808",
        "1.7976931348623157e308",
        repr(2**-44),
        '"NaN"',
    ),
    "a float": ("0.1", "16777216", "3.4028235e38"),
    "a bigint": (str(2**63 - 1), str(-(2**63))),
    "a tinyint": ("127", "-128"),
    "a decimal(10,2)": ("1.230", "1e3", '"1.25"', "12345678.12"),
    "a string": ('"12345678901234567.89"', str(10**30), "[1.10]", "true", '"{\\"b\\":1e400}"'),
    "a timestamp": ("1700000000", '"2026-01-01T00:00:00.123456000Z"'),
    "a date": ('"2026-01-01"',),
    "b double": ("12345678901234567.89",),
}
NOT_HELD = [
    ("a double", "12345678901234567.89", "a: 12345678901234567.89 does not fit into double"),
    ("a double", "9007199254740993", "a: 9007199254740993 does not fit into double"),
    ("a double", "1234567890123456.68", "a: 1234567890123456.68 does not fit into double"),
    ("a double", "1e400", "a: 1e400 does not fit into double"),
    ("a double", "1e-400", "a: 1e-400 does not fit into double"),
    ("a float", "16777217", "a: 16777217 does not fit into float"),
    ("a bigint", "9223372036854775808", "a: 9223372036854775808 does not fit into bigint"),
    ("a bigint", "1.5", "a: 1.5 does not fit into bigint"),
    ("a tinyint", "200", "a: 200 does not fit into tinyint"),
    ("a decimal(10,2)", "1.239", "a: 1.239 does not fit into decimal(10,2)"),
    ("a decimal(10,2)", '"1.239"', "a: 1.239 does not fit into decimal(10,2)"),
    ("a decimal(10,2)", "123456789.1", "a: 123456789.1 does not fit into decimal(10,2)"),
    ("a string", "12345678901234567.89", "a: 12345678901234567.89 does not fit into string"),
    ("a string", '{"b": [1e400]}', "a: 1e400 does not fit into string"),
    ("a timestamp", '"2026-01-01T00:00:00.123456789Z"', "a: 2026-01-01T00:00:00.123456789Z does not fit into timestamp"),
    ("a date", '"2026-01-01T10:00:00"', "a: 2026-01-01T10:00:00 does not fit into date"),
    ("a struct<b: array<map<string, double>>>", '{"b": [{"x": 1}, {"x": 1, "y": 1e400}]}', "a.b[]{}: 1e400 does not fit into double"),
]
"""A schema, a value, and what is reported."""


def judged(spark, schema, texts):
    how = decoding("_value", Form("json", schema))
    rows = [(bytearray(b'{"a": %s}' % text.encode()), "orders", 3, at) for at, text in enumerate(texts)]
    frame = spark.createDataFrame(rows, "_value binary, topic string, partition int, offset bigint").coalesce(1)
    return frame.selectExpr("*", f"{how.value} as value").selectExpr("offset", f"{how.judged('value')} as wrong")


@pytest.mark.parametrize("schema", HELD)
def test_json_that_its_columns_hold(spark, schema):
    assert [row.wrong for row in judged(spark, schema, HELD[schema]).orderBy("offset").collect()] == [False] * len(HELD[schema])


@pytest.mark.parametrize(("schema", "text", "said"), NOT_HELD)
def test_json_that_its_columns_would_change_ends_the_job(spark, schema, text, said):
    reason = f"the value of orders:3 at offset 1 has no place in a column: {said}; declare a type that holds it"
    with pytest.raises(OperationFailed, match=re.escape(reason)), explained("compute totals"):
        judged(spark, schema, ["null", text]).collect()


def test_json_that_is_not_of_its_format_and_too_large_besides(spark):
    """A damaged text is one, whatever its numbers are: ``--skip-undecodable`` may leave it out."""
    assert [row.wrong for row in judged(spark, "a double", ["1e400, ", "01", '"5"']).orderBy("offset").collect()] == [True] * 3


def test_random_doubles_are_held_and_their_neighbours_in_text_are_not(spark):
    """By Python's decimals: a double is held in every way that it is printed with 15 to 25 digits, and no other number is."""
    random, texts, wanted = Random(31), [repr(2.0**power) for power in range(-1074, 1024)], [True] * 2098
    while len(texts) < 3_000:
        number = struct.unpack(">d", random.randbytes(8))[0] if random.random() < 0.5 else random.uniform(-1e17, 1e17)
        if not math.isfinite(number):
            continue
        text = f"{number:.{random.choice((14, 15, 16, 16, 16, 20, 24))}e}" if random.random() < 0.7 else repr(number)
        if random.random() < 0.5:
            text = re.sub(r"[0-9](?=e|$)", str(random.randrange(10)), text, count=1)
        digits = max(1, len(Decimal(text).normalize().as_tuple().digits))
        exact = Decimal(float(text)) if math.isfinite(float(text)) else Decimal(0)
        same = Decimal(text) in (Context(digits, rounding).plus(exact) for rounding in (ROUND_HALF_UP, ROUND_HALF_EVEN))
        texts.append(text)
        wanted.append(digits <= 15 or same or Decimal(repr(float(text))) == Decimal(text))
    assert (True in wanted[2098:], False in wanted) == (True, True)
    how = decoding("_value", Form("json", "a double"))
    suspicious, reason = how.not_held
    rows = [(bytearray(b'{"a": %s}' % text.encode()), text, held) for text, held in zip(texts, wanted, strict=True)]
    frame = spark.createDataFrame(rows, "_value binary, t string, w boolean").selectExpr("*", f"{how.value} as value")
    found = frame.selectExpr("t", "w", f"not ({suspicious} and ({reason}) is not null) as held").collect()
    assert [row.t for row in found if row.held != row.w] == []

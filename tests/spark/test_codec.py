"""Bytes to values and back in Spark SQL, against Python's struct: every bit, and every kind of wrong bytes."""

import json
import math
import re
import struct
from decimal import Decimal

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

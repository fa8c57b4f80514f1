import json
import math
import struct
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kops.core.errors import UndecodableRecord, UsageProblem
from kops.formats.base import Format, Place, decode_at
from kops.formats.registry import FORMATS
from kops.plugins.loader import load_format

CASES = json.loads((Path(__file__).parent / "golden" / "serializers.json").read_text("utf-8"))["cases"]
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['format']} {case['value']}")
def test_bytes_are_those_of_kafkas_serializers(case):
    form, data = FORMATS[case["format"]], bytes.fromhex(case["bytes"])
    assert form.encode(form.decode(data)) == data
    assert form.encode(form.parse(str(case["value"]))) == data
    shown = form.show(form.decode(data))
    assert shown == case["value"] or form.encode(shown) == data


def test_every_serializer_has_its_cases():
    assert {case["format"] for case in CASES} == set(FORMATS) - {"bytes", "json"}


@pytest.mark.parametrize("name", FORMATS)
def test_null_stays_null_and_the_protocol_holds(name):
    assert isinstance(FORMATS[name], Format)
    assert FORMATS[name].name == name
    assert FORMATS[name].encode(None) is None


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("string", b"\xff\xfe"),
        ("long", b"1234567"),
        ("long", b""),
        ("int", b"12345678"),
        ("short", b"1"),
        ("double", b"6000.000"[:7]),
        ("float", b"12345678"),
        ("json", b"{'a': 1}"),
        ("json", b""),
        ("json", b"NaN"),
        ("json", b"\xff"),
        ("json", b"[" * 100_000),
        ("uuid", b"not a uuid"),
        ("uuid", b"0123456789abcdef"),
        ("uuid", b"\xff" * 36),
    ],
)
def test_wrong_bytes_name_the_record(name, data):
    with pytest.raises(UndecodableRecord) as caught:
        decode_at(FORMATS[name], data, Place("orders", 3, 77, "value"))
    assert caught.value.message.startswith(f"the value of orders:3 at offset 77 is not {name}: ")
    assert "--value" in caught.value.hint
    facts = caught.value.details
    assert (facts["topic"], facts["partition"], facts["offset"], facts["part"], facts["format"]) == ("orders", 3, 77, "value", name)
    json.dumps(caught.value.as_json(), allow_nan=False)


def test_nothing_is_decoded_of_a_tombstone():
    assert decode_at(FORMATS["long"], None, Place("orders", 0, 1, "value")) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("long", 2**63),
        ("long", 6000.0),
        ("long", True),
        ("long", "6000"),
        ("int", -(2**31) - 1),
        ("double", "1.5"),
        ("double", True),
        ("float", 1e300),
        ("string", 5),
        ("string", "\ud800"),
        ("bytes", "text"),
        ("json", [math.nan]),
        ("json", ["\ud800"]),
        ("json", object()),
        ("uuid", "123e4567"),
    ],
)
def test_values_of_another_kind_are_refused(name, value):
    with pytest.raises(UsageProblem):
        FORMATS[name].encode(value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("long", "6000.5"),
        ("long", "1_000"),
        ("long", "٣"),
        ("long", ""),
        ("int", "9" * 5_000),
        ("double", "abc"),
        ("double", "1_0"),
        ("bytes", "base64:***"),
        ("json", "{a: 1}"),
        ("json", "NaN"),
        ("uuid", "123e4567"),
    ],
)
def test_texts_that_mean_no_value_are_refused(name, text):
    with pytest.raises(UsageProblem):
        FORMATS[name].parse(text)


@given(st.binary(max_size=40))
def test_bytes_show_and_read_back(data):
    shown = FORMATS["bytes"].show(FORMATS["bytes"].decode(data))
    prefix = "base64:" if shown["encoding"] == "base64" else ""
    if prefix or not shown["data"].startswith("base64:"):
        assert FORMATS["bytes"].parse(prefix + shown["data"]) == data


@given(JSON_VALUES.filter(lambda value: value is not None))
def test_json_round_trip(value):
    form = FORMATS["json"]
    try:
        data = form.encode(value)
    except UsageProblem:
        assert "\\ud" in json.dumps(value)  # a lone surrogate has no UTF-8
        return
    assert json.loads(data) == value
    assert form.encode(form.decode(data)) == data


def test_json_is_compact_and_keeps_text():
    assert FORMATS["json"].encode(FORMATS["json"].parse('{"a": [1, "ü"]}')) == '{"a":[1,"ü"]}'.encode()


def digits_of(number):
    return len(Decimal(repr(number)).normalize().as_tuple().digits)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
@example(999999986991104.0)  # shown as 1e15, which has fewer digits and more letters
def test_a_float_is_shown_short_and_has_the_same_bytes(value):
    shown = FORMATS["float"].show(value)
    assert struct.pack(">f", shown) == struct.pack(">f", value)
    assert digits_of(shown) <= digits_of(value)


def test_numbers_of_json_are_shown_as_they_are_written():
    text = '{"a":[1e999,1.50,12345678901234567.89,-0],"a":1}'
    assert FORMATS["json"].encode(FORMATS["json"].show(FORMATS["json"].decode(text.encode()))) == text.encode()


def test_numbers_of_32_bits_are_shown_as_java_shows_them():
    assert FORMATS["float"].show(struct.unpack(">f", bytes.fromhex("3dcccccd"))[0]) == 0.1


def test_unknown_format_names_the_nearest():
    with pytest.raises(UsageProblem) as caught:
        load_format("Strnig")
    assert "did you mean string?" in caught.value.hint
    assert "long, int, short" in caught.value.hint

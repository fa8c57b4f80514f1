"""JSON without loss. Its judge beside Jackson, which tests/differential asks, is the standard library."""

import copy
import json
import pickle
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.core.json_values import RepeatedNames, WrittenNumber, read_json, write_json

TEXTS = [
    *(
        "12345678901234567.89",
        "1e400",
        "-1E-400",
        "1.50",
        "-0",
        "-0.0",
        "0.1",
        "1E5",
        "12345678901234567890123",
        "9" * 5000,
        "1." + "3" * 5000,
    ),
    *(
        '{"a":1,"b":[1.0,{"c":2.50}]}',
        '{"a":1,"a":2.5,"b":{"x":1,"x":[]}}',
        "true",
        "null",
        '"\\ud800"',
        '["-0",-0]',
        '{"-0":-0}',
        "[]",
        "{}",
    ),
]


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_read_is_written_again(text):
    assert write_json(read_json(text), compact=True) == text.replace("\\ud800", "\ud800")
    for twin in (copy.deepcopy(read_json(text)), pickle.loads(pickle.dumps(read_json(text)))):
        assert write_json(twin, compact=True) == write_json(read_json(text), compact=True)


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_where_nothing_can_be_lost_it_is_the_standard_librarys(value):
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=2)):
        assert read_json(text) == value
    assert write_json(value) == json.dumps(value, ensure_ascii=False)
    assert write_json(value, indent=2) == json.dumps(value, ensure_ascii=False, indent=2)


def test_numbers_are_compared_exactly():
    assert read_json("12345678901234567.89") == Decimal("12345678901234567.89") != read_json("12345678901234568.12")
    assert read_json("1.50") == Decimal("1.5")
    assert hash(read_json("2.0")) == hash(2)
    assert f"{read_json('1e400')}" == repr(read_json("1e400")) == str(read_json("1e400")) == "1e400"


def test_repeated_names():
    found = read_json('{"a": 1, "b": 2, "a": 3}')
    assert isinstance(found, RepeatedNames)
    assert found == {"a": 3, "b": 2}
    assert list(found.items()) == [("a", 1), ("b", 2), ("a", 3)]
    assert type(read_json('{"a": 1, "b": 2}')) is dict


@pytest.mark.parametrize(
    "text", ["", "NaN", "-Infinity", "01", "1.", ".5", "+1", "[1,]", "1e", "1e9999999999999999999", "{'a':1}", "1 2", "0x1"]
)
def test_what_is_no_json(text):
    with pytest.raises(ValueError, match=r"."):
        read_json(text)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), Decimal("Infinity"), b"a", {1, 2}, object()])
def test_what_json_does_not_have(value):
    with pytest.raises((ValueError, TypeError)):
        write_json({"a": [WrittenNumber("1.5"), value]})
    assert write_json([WrittenNumber("2.5")]) == "[2.5]", "what was left of the refused text"

import contextlib
import json
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kops.core.errors import UsageProblem
from kops.core.records.filters import Filter, compile_filters, parse_filter
from kops.core.records.models import Record
from kops.formats.registry import FORMATS
from kops.operations.records.rows import Subject

BYTES, JSON, LONG, STRING = (FORMATS[name] for name in ("bytes", "json", "long", "string"))
ORDER = {"id": 7, "price": 10.5, "item": "laptop", "paid": True, "note": None, "lines": [{"sku": "a"}, {"sku": "b"}], "a.b": {"c=d": 1}}


def fits(text, *, key=b"abc", value=None, headers=(), form=BYTES, key_form=BYTES, **record):
    data = json.dumps(ORDER).encode() if value is None else value
    made = Record("t", record.get("partition", 2), record.get("offset", 40), record.get("timestamp", 1000), key, data, headers)
    if value == b"":
        made = made._replace(value=None)
    return compile_filters([parse_filter(text)])(Subject(made, key_form, form))


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("key=abc", Filter("key", (), "=", "abc")),
        ("key=", Filter("key", (), "=", "")),
        ("key!=a=b", Filter("key", (), "!=", "a=b")),
        ("value=null", Filter("value", (), "=", None)),
        ('value="null"', Filter("value", (), "=", "null")),
        ("value.a.b[0].c>=1.5", Filter("value", ("a", "b", 0, "c"), ">=", "1.5")),
        ('value."a.b"."x=\\"y"~z', Filter("value", ("a.b", 'x="y'), "~", "z")),
        ("value[3]<2", Filter("value", (3,), "<", "2")),
        ("header.trace-id=abc", Filter("header", ("trace-id",), "=", "abc")),
        ("header.a.b.c!~^x", Filter("header", ("a.b.c",), "!~", "^x")),
        ('header."a=b"=null', Filter("header", ("a=b",), "=", None)),
        ("partition=3", Filter("partition", (), "=", "3")),
        ("offset>=10", Filter("offset", (), ">=", "10")),
    ],
)
def test_filters_are_read(text, parsed):
    assert parse_filter(text) == parsed


@pytest.mark.parametrize(
    "text",
    [
        *("", "key", "=", "price>1", "value.=1", "value[x]=1", "header.=1", "header=1", "key>null", "value~null", "key~(", "partition=a"),
        *("offset~1", "timestamp=null", "partition.a=1", "value..a=1", "Key=1", 'value."a=1'),
    ],
)
def test_what_is_no_filter(text):
    with pytest.raises(UsageProblem):
        parse_filter(text)


def test_quotes_that_are_none_are_a_part_of_the_text():
    assert parse_filter('key="a').operand == '"a'
    assert parse_filter('key="a":"b"').operand == '"a":"b"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key=abc", True),
        ("key=ab", False),
        ("key!=ab", True),
        ("key~^a.c$", True),
        ("key!~b", False),
        ("value.id=7", True),
        ("value.id=7.0", True),
        ("value.id>6", True),
        ("value.id>7", False),
        ("value.id>=7", True),
        ("value.id<7", False),
        ("value.id<=7", True),
        ("value.price<10.6", True),
        ("value.item=laptop", True),
        ("value.item>kaptop", True),
        ("value.item<3", False),
        ("value.paid=true", True),
        ("value.paid=True", False),
        ("value.paid>0", False),
        ("value.note=null", True),
        ("value.nothing=null", True),
        ("value.nothing!=null", False),
        ("value.nothing!=7", True),
        ("value.nothing>1", False),
        ("value.lines[1].sku=b", True),
        ("value.lines[2].sku=null", True),
        ('value."a.b"."c=d"=1', True),
        ('value.lines~"sku":"b"', True),
        ("value=null", False),
        ("value!=null", True),
        ("value~laptop", True),
        ("partition=2", True),
        ("offset>40", False),
        ("timestamp<=1000", True),
    ],
)
def test_a_json_value(text, expected):
    assert fits(text) is expected
    if not text.startswith(("value~", "value.lines~")):
        assert fits(text, form=JSON) is expected


def test_tombstones_and_records_without_a_key():
    assert fits("value=null", value=b"")
    assert not fits("value!=null", value=b"")
    assert fits("value.a=null", value=b"")
    assert fits("key=null", key=None)
    assert not fits("key=", key=None)
    assert fits("key=", key=b"")
    assert not fits("value=null", value=b"null", form=STRING), "the four letters are a value"


def test_bytes_and_formats():
    assert fits("value=base64:/w==", value=b"\xff")
    assert fits("value.a=null", value=b"\xff")
    assert fits("key>41", key=(42).to_bytes(8, "big"), key_form=LONG)
    assert not fits("key>42", key=(42).to_bytes(8, "big"), key_form=LONG)


def test_headers():
    headers = (("a", b"1"), ("a", b"2"), ("none", None), ("raw", b"\xff"))
    assert fits("header.a=2", headers=headers)
    assert not fits("header.a!=2", headers=headers), "one of them is 2"
    assert fits("header.a>1", headers=headers)
    assert fits("header.none=null", headers=headers)
    assert fits("header.absent=null", headers=headers)
    assert not fits("header.a=null", headers=headers)
    assert fits("header.raw=base64:/w==", headers=headers)


def test_several_are_all_to_fit():
    subject = Subject(Record("t", 0, 0, 0, b"k", b"5"), BYTES, BYTES)
    assert compile_filters([parse_filter("key=k"), parse_filter("value>4")])(subject)
    assert not compile_filters([parse_filter("key=k"), parse_filter("value>5")])(subject)
    assert compile_filters([])(subject)


@given(st.text(max_size=30))
def test_any_text_is_a_filter_or_a_usage_problem(text):
    with contextlib.suppress(UsageProblem):
        compile_filters([parse_filter(text)])


@given(st.text(max_size=20).filter(lambda text: text != "null"))
def test_a_text_equals_itself(text):
    typed = json.dumps(text)
    assert fits(f"key={typed}", key=text.encode("utf-8", "surrogatepass"), key_form=STRING) if text.isprintable() else True
    assert fits(f"value.x={typed}", value=json.dumps({"x": text}).encode()) is True


NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15).map(
    lambda f: round(f, 3)
)


@given(NUMBERS, NUMBERS)
@example(699999999999999.1, 699999999999999.1)
def test_the_order_of_numbers(left, right):
    """Numbers are compared as they are written: these two are one double, but not one number."""
    value = json.dumps({"x": left}).encode()
    typed = str(right) if isinstance(right, int) else f"{right:.3f}"
    assert fits(f"value.x>{typed}", value=value) is (Decimal(repr(left)) > Decimal(typed))
    assert fits(f"value.x<={typed}", value=value) is (Decimal(repr(left)) <= Decimal(typed))


@given(st.lists(st.sampled_from(["a", "b.c", "d e", "[", '"', "="]) | st.integers(0, 5), min_size=1, max_size=4), st.integers(0, 99))
def test_paths_lead_to_what_they_name(path, number):
    value = number
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [None] * step + [value]
    typed = "".join(f"[{step}]" if isinstance(step, int) else f".{json.dumps(step)}" for step in path)
    data = json.dumps(value).encode()
    assert fits(f"value{typed}={number}", value=data)
    assert not fits(f"value{typed}={number + 1}", value=data)

"""Output formats, byte for byte: JSON, YAML and CSV are a contract, the table is what people see at 80 columns."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.output.render import render_object, render_rows
from kops.output.table import NARROWEST, Column, cell, fitted, shortened

ROWS = [
    {
        "name": "orders",
        "partitions": 6,
        "internal": False,
        "replicas": [1, 2],
        "settings": {"a": 1, "b": None},
        "note": 'höher, "schneller"',
    },
    {"name": "x", "partitions": 1024, "internal": True, "replicas": [], "settings": {}, "note": None},
]
COLUMNS = ["name", Column("partitions", "PARTS"), "internal", "replicas", "settings", "note"]

GOLDEN = {
    "table": """\
NAME    PARTS  INTERNAL  REPLICAS  SETTINGS  NOTE
orders      6  no        1,2       a=1, b=-  höher, "schneller"
x        1024  yes       -         -         -
""",
    "csv": """\
name,partitions,internal,replicas,settings,note
orders,6,false,"[1, 2]","{""a"": 1, ""b"": null}","höher, ""schneller""\"
x,1024,true,[],{},
""",
    "yaml": """\
- name: orders
  partitions: 6
  internal: false
  replicas:
  - 1
  - 2
  settings:
    a: 1
    b: null
  note: höher, "schneller"
- name: x
  partitions: 1024
  internal: true
  replicas: []
  settings: {}
  note: null
""",
    "name": "orders\nx\n",
}


def rendered(output_format, rows=ROWS, columns=COLUMNS, **options):
    stream = io.StringIO()
    render_rows(iter(rows), columns, output_format, stream, **options)
    return stream.getvalue()


@pytest.mark.parametrize("output_format", GOLDEN)
def test_golden(output_format):
    assert rendered(output_format) == GOLDEN[output_format]


def test_json_carries_every_key_and_is_readable():
    text = rendered("json", columns=["name"])
    assert json.loads(text) == ROWS
    assert text.endswith("]\n")
    assert "höher" in text


@pytest.mark.parametrize("output_format", ["json", "yaml"])
def test_no_rows_are_an_empty_list(output_format):
    assert rendered(output_format, rows=[]) == "[]\n"


def test_no_rows_are_headings_alone():
    assert rendered("csv", rows=[], columns=["a", "b"]) == "a,b\n"
    assert rendered("table", rows=[], columns=["a", "b"]).split() == ["A", "B"]
    assert rendered("name", rows=[]) == ""


def test_a_table_is_cut_at_a_terminals_width_only(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    cut = rendered("table", terminal=True).splitlines()
    assert [len(line) for line in cut] == [20, 20, 20]
    assert cut[1].endswith("…")
    assert "schneller" in rendered("table")


LONG = {
    "topic": "payments-enrichment-app-totals-per-customer-repartition",
    "group": "payments-enrichment-app-canary",
    "time": "2026-11-20T10:00:00.000Z",
    "lag": 12345678,
}


def test_long_names_give_way_so_that_every_column_fits(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    rows, columns = [LONG, {**LONG, "topic": "orders", "lag": 7}], list(LONG)
    shown = rendered("table", rows, columns, terminal=True)
    assert shown.splitlines() == [
        "TOPIC                  GROUP                  TIME                           LAG",
        "payments-e…epartition  payments-e…app-canary  2026-11-20T10:00:00.000Z  12345678",
        "orders                 payments-e…app-canary  2026-11-20T10:00:00.000Z         7",
    ]
    assert max(map(len, rendered("table", rows, columns).splitlines())) == 55 + 30 + 24 + 8 + 6


def test_sentences_give_way_before_names(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    row = {"target": "orders-enriched-changelog:11", "reason": "11 added (doubtful), and 2 of them were there before"}
    assert rendered("table", [row], list(row), terminal=True).splitlines() == [
        "TARGET                        REASON",
        "orders-enriched-changelog:11  11 added (doubtful), and 2 of…",
    ]
    monkeypatch.setenv("COLUMNS", "35")
    assert rendered("table", [row], list(row), terminal=True).splitlines()[1] == "orders-enr…angelog:11  11 added (d…"


def test_results_and_objects_are_wrapped_and_lose_nothing(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    row = {"target": "orders-enriched-changelog:11", "value": "records=11, first_offset=1200, last_offset=1211"}
    assert rendered("table", [row], list(row), terminal=True, whole=True).splitlines() == [
        "TARGET                        VALUE",
        "orders-enriched-changelog:11  records=11, first_offset=1200,",
        "                              last_offset=1211",
    ]
    stream = io.StringIO()
    render_object(row, "table", stream, terminal=True)
    assert "".join(stream.getvalue().split()) == "".join(f"{key}{value}" for key, value in row.items()).replace(" ", "")


@given(st.lists(st.tuples(st.integers(0, 200), st.booleans()), max_size=9), st.integers(1, 200))
def test_columns_are_no_narrower_than_they_must_be(columns, limit):
    widths, may_shrink = [width for width, _ in columns], [may for _, may in columns]
    shrunk = fitted(widths, may_shrink, limit)
    room = limit - 2 * (len(widths) - 1)
    assert all(
        after == before or (may and NARROWEST <= after < before) for after, before, may in zip(shrunk, widths, may_shrink, strict=True)
    )
    if sum(shrunk) > room:
        assert all(after <= NARROWEST or not may for after, may in zip(shrunk, may_shrink, strict=True))
    elif shrunk != widths:
        narrowed = [after for after, before in zip(shrunk, widths, strict=True) if after < before]
        assert room - sum(shrunk) < len(narrowed) + 1
        assert len(set(narrowed)) == 1


def test_sentences_keep_their_beginning_and_names_both_ends():
    assert shortened("a-long-name-of-a-topic", 9) == "a-lo…opic"
    assert shortened("some words of it", 9) == "some wor…"
    assert shortened("short", 9) == "short"


def test_one_object():
    body = {"name": "prod", "brokers": ["a:1", "b:2"], "tls": True}
    made = {}
    for output_format in ("table", "json", "yaml", "csv", "name"):
        stream = io.StringIO()
        render_object(body, output_format, stream)
        made[output_format] = stream.getvalue()
    assert json.loads(made.pop("json")) == body
    assert made == {
        "table": "name     prod\nbrokers  a:1,b:2\ntls      yes\n",
        "yaml": "name: prod\nbrokers:\n- a:1\n- b:2\ntls: true\n",
        "csv": 'key,value\nname,prod\nbrokers,"[""a:1"", ""b:2""]"\ntls,true\n',
        "name": "prod\n",
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (True, "yes"), (False, "no"), (0, "0"), ("", ""), ([], "-"), ({}, "-"), ([1, None], "1,-"), ({"a": [1]}, "a=1")],
)
def test_cells_for_people(value, text):
    assert cell(value) == text

"""Differences and answers as tables: what is missing in a line, what is different in two, and all of it within 80 columns."""

import csv
import io
import json

import pytest

from kops.cli.frame.session import Session
from kops.cli.state.view import show_answers, show_differences

STORE = "KSTREAM-AGGREGATE-STATE-STORE-0000000003"


def row(key, status, expected=None, actual=None, **more):
    time = {"expected": "2026-11-20T10:00:00.000Z", "actual": "2026-11-20T10:00:00.125Z"}
    return {
        "store": "totals",
        "partition": 2,
        "key": key,
        "status": status,
        "expected": expected,
        "actual": actual,
        "expected_timestamp": None if status == "unexpected" else time["expected"],
        "actual_timestamp": None if status == "missing" else time["actual"],
        **more,
    }


def window(start, end):
    moments = [f"2026-11-20T09:{minute:02}:00.000Z" for minute in (start, end)]
    return {
        "window_start": moments[0],
        "window_end": moments[1],
        "window_start_ms": start * 60_000,
        "window_end_ms": end * 60_000,
    }


@pytest.fixture
def shown(monkeypatch, capsys):
    """Return what a view writes to a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def show(view, rows, output_format="table"):
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        view(Session({"output": output_format}), rows)
        return capsys.readouterr().out

    return show


def test_a_line_for_one_side_and_two_for_both(shown):
    rows = [row("a", "missing", 5), row("b", "unexpected", None, {"n": 1}), row("c\x1b", "different", "x", "y")]
    assert shown(show_differences, rows).splitlines() == [
        "P  KEY    STATUS      TIMESTAMP                 VALUE",
        "2  a      missing     2026-11-20T10:00:00Z      5",
        '2  b      unexpected  2026-11-20T10:00:00.125Z  {"n":1}',
        "2  c\\x1b  expected    2026-11-20T10:00:00Z      x",
        "2  c\\x1b  actual      2026-11-20T10:00:00.125Z  y",
    ]


def test_windows_show_their_end_where_it_says_something(shown):
    rows = [row("a", "missing", 5, **window(0, 5)), row("a", "different", 5, 4, **window(5, 10))]
    assert shown(show_differences, rows).splitlines()[:2] == [
        "P  KEY  START                 STATUS    TIMESTAMP      VALUE",
        "2  a    2026-11-20T09:00:00Z  missing   10:00:00Z      5",
    ]
    sessions = [row("a", "missing", 5, **window(0, 5)), row("a", "missing", 5, **window(5, 6))]
    assert shown(show_differences, sessions).splitlines()[1] == "2  a    2026-11-20T09:00:00Z  09:05:00Z  missing  10:00:00Z  5"


def test_long_names_and_values_fit(shown):
    long = row("customer-0000000000000000000000000000042", "different", {"total": 1.5, "items": ["a"] * 20}, 7, **window(0, 5))
    lines = shown(show_differences, [long, {**long, "store": STORE}]).splitlines()
    assert max(map(len, lines)) <= 80
    assert (lines[0], lines[4:6]) == ("totals:", ["", f"{STORE}:"])
    assert lines[1].split() == ["P", "KEY", "START", "STATUS", "TIMESTAMP", "VALUE"]
    answer = {"store": STORE, "key": "customer-0000000000000000042", "value": {"total": 1.5}, "timestamp": "2026-11-20T10:00:00.000Z"}
    lines = shown(show_answers, [{**answer, "partition": 11, **window(0, 5)}]).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["STORE", "P", "KEY", "START", "END", "VALUE"]
    assert shown(show_answers, [{**answer, "partition": 11}]).splitlines()[0].split() == ["STORE", "P", "KEY", "TIMESTAMP", "VALUE"]


def test_data_has_everything(shown):
    rows = [row("a", "different", 5, 4, **window(0, 5))]
    assert json.loads(shown(show_differences, rows, "json")) == rows
    read = list(csv.DictReader(io.StringIO(shown(show_differences, rows, "csv"))))
    assert (read[0]["expected"], read[0]["actual_timestamp"], read[0]["window_end"]) == (
        "5",
        "2026-11-20T10:00:00.125Z",
        "2026-11-20T09:05:00.000Z",
    )

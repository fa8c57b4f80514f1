"""How lag moves between looks, and how that is written."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.core.groups.lag_rates import Line, Rates, rate_text, sparkline
from kops.output.watch import json_lines, live_table, plain_lines


def row(group, partition, committed, end, time_lag=None):
    lag = None if committed is None else end - committed
    place = {"group": group, "topic": "t", "partition": partition}
    return {**place, "committed": committed, "log_end_offset": end, "lag": lag, "time_lag_ms": time_lag}


@pytest.fixture
def looks():
    """Two looks at two groups, two seconds apart."""
    rates = Rates("group")
    first = rates.look([row("a", 0, 0, 100, 500), row("a", 1, 0, 10), row("b", 0, 100, 100, 0)], 10.0)
    second = rates.look([row("a", 0, 60, 110, 700), row("a", 1, None, 10), row("b", 0, 100, 110, 9)], 12.0)
    return first, second


def test_the_first_look_has_no_rates(looks):
    first, _ = looks
    assert first.lines == (Line(("a",), 110, (110,), time_lag_ms=500), Line(("b",), 0, (0,), time_lag_ms=0))
    assert first.total.lag == 110
    assert first.total.consumed is None


def test_the_second_look_compares(looks):
    _, second = looks
    a, b = second.lines
    assert (a.lag, a.change, a.consumed, a.produced, a.time_lag_ms) == (50, -30.0, 30.0, 5.0, 700)
    assert a.seconds_left == pytest.approx(50 / 30)
    assert (b.lag, b.change, b.consumed, b.produced, b.seconds_left) == (10, 5.0, 0.0, 5.0, None)
    assert second.total.history == (110, 60)


def test_partitions_and_topics():
    rates = Rates("partition")
    assert [line.name for line in rates.look([row("a", 0, 9, 10), row("b", 1, 0, 10)], 0).lines] == [("b", "t", 1), ("a", "t", 0)]
    assert [line.name for line in Rates("topic").look([row("a", 0, 9, 10), row("b", 1, 0, 10)], 0).lines] == [("t",)]


def test_a_look_as_a_line(looks):
    stream = io.StringIO()
    show = plain_lines(stream)
    show(looks[0], "2026-01-01T00:00:00.000Z", [])
    show(looks[1], "2026-01-01T00:00:02.000Z", ["a (lag 50)"])
    assert stream.getvalue().splitlines() == [
        "2026-01-01T00:00:00.000Z  lag 110  (-)  consumed -  produced -  time <1s  largest a 110",
        "2026-01-01T00:00:02.000Z  lag 60  (-25/s)  consumed 30/s  produced 10/s  time <1s  largest a 50  over the limit: a (lag 50)",
    ]


def test_a_look_as_json(looks):
    stream = io.StringIO()
    json_lines("group", stream)(looks[1], "2026-01-01T00:00:02.000Z", ["a (lag 50)"])
    body = json.loads(stream.getvalue())
    assert set(body) == {
        "time",
        "lag",
        "lag_per_second",
        "consumed_per_second",
        "produced_per_second",
        "time_lag_ms",
        "seconds_left",
        "over_limit",
        "groups",
    }
    assert [(line["group"], line["lag"]) for line in body["groups"]] == [("a", 50), ("b", 10)]


def test_a_look_as_a_table_of_80_columns(looks, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    stream = io.StringIO()
    with live_table("group", stream) as show:
        show(looks[1], "2026-01-01T00:00:02.000Z", ["a (lag 50)"])
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    assert any(line.startswith("a") and "-30/s" in line and "▅" in line for line in lines), lines
    assert "over the limit: a (lag 50)" in lines
    assert max(map(len, lines)) <= 80


def test_partitions_are_whole_however_long_the_names(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    rates = Rates("partition")
    topic = "a-topic-with-a-name-longer-than-the-terminal-has-columns-for-it"
    rows = [{**row("billing", number, 0, 1_000_000 + number), "topic": topic} for number in (7, 123)]
    stream = io.StringIO()
    with live_table("partition", stream) as show:
        rates.look(rows, 0.0)
        show(rates.look(rows, 2.0), "2026-01-01T00:00:02.000Z", [])
    lines = [line.split() for line in stream.getvalue().splitlines()]
    assert [words[1:3] for words in lines if words[0].startswith("a-top")] == [["123", "1000123"], ["7", "1000007"]]
    assert max(len(line) for line in stream.getvalue().splitlines()) <= 80


@given(st.lists(st.integers(0, 10**9), max_size=40), st.integers(0, 20))
def test_sparklines_are_as_wide_as_asked(values, width):
    line = sparkline(values, width)
    assert len(line) == min(len(values), width)
    if line and max(values[-width:]):
        assert "█" in line


@pytest.mark.parametrize(("rate", "text"), [(None, "-"), (0.0, "0/s"), (0.25, "0.2/s"), (-3.0, "-3/s"), (12345.6, "12,346/s")])
def test_rates_for_people(rate, text):
    assert rate_text(rate) == text

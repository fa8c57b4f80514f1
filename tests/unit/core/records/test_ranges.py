import contextlib
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.core.errors import UsageProblem
from kops.core.models import Bounds, TopicPartition
from kops.core.records.models import OffsetRange
from kops.core.records.ranges import END, START, Span, parse_span, resolve_span
from kops.core.times import Position, Times

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
MS = 1_795_262_400_000
ZERO = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("start..end", Span(START, END)),
        ("..", Span(START, END)),
        ("100..200", Span(Position("offset", 100), Position("offset", 200))),
        ("100..", Span(Position("offset", 100), END)),
        ("100", Span(Position("offset", 100), END)),
        ("..200", Span(START, Position("offset", 200))),
        ("@-1h..@-30m", Span(Position("time", MS - 3_600_000), Position("time", MS - 1_800_000))),
        ("@2026-11-20T14:05..", Span(Position("time", 1_795_183_500_000), END)),
        ("5..5", Span(Position("offset", 5), Position("offset", 5))),
        ("5..@now", Span(Position("offset", 5), Position("time", MS))),
        ("end", Span(END, END)),
        ("start..start", Span(START, START)),
    ],
)
def test_ranges_are_read(text, span):
    assert parse_span(text, NOW) == span


@pytest.mark.parametrize(
    "text",
    ["", ".", "...", "a..b", "1..2..3", "200..100", "@-1h..@-2h", "end..start", "end..5", "5..start", "-1..5", "1.5", "@..", "@-1h...@-2h"],
)
def test_what_is_no_range(text):
    with pytest.raises(UsageProblem):
        parse_span(text, NOW)


@given(st.text(alphabet="start.end@0123456789-hT:", max_size=20))
def test_any_text_is_a_range_or_a_usage_problem(text):
    with contextlib.suppress(UsageProblem):
        parse_span(text, NOW)


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 60), st.integers(0, 60))
def test_offsets_stay_within_the_log(start, length, first, more):
    bounds = {ZERO: Bounds(start, start + length)}
    ranges, _ = resolve_span(parse_span(f"{first}..{first + more}", NOW), bounds, {})
    wanted = set(range(first, first + more)) & set(range(start, start + length))
    assert set(range(ranges[ZERO].start, ranges[ZERO].end)) == wanted
    assert start <= ranges[ZERO].start <= ranges[ZERO].end <= start + length


def test_a_time_begins_where_kafka_says_and_may_go_on_to_the_log_end():
    bounds = {TopicPartition("t", n): Bounds(10, 20) for n in range(3)}
    first = {TopicPartition("t", 0): 12, TopicPartition("t", 1): None, TopicPartition("t", 2): 10}
    span = Span(Position("time", 1), Position("time", 2))
    ranges, notes = resolve_span(span, bounds, first)
    assert list(ranges.values()) == [OffsetRange(12, 20), OffsetRange(20, 20), OffsetRange(10, 20)]
    assert (notes, span.times) == ([], Times(1, 2))


def test_an_offset_ends_a_range_of_time():
    span = Span(Position("time", 1), Position("offset", 15))
    assert resolve_span(span, {ZERO: Bounds(0, 20)}, {ZERO: 9})[0] == {ZERO: OffsetRange(9, 15)}
    assert span.times == Times(1)
    _, notes = resolve_span(span, {ZERO: Bounds(0, 20)}, {ZERO: 16})
    assert notes == ["no record at or after 1970-01-01T00:00:00.001Z within the range"]


def test_what_the_log_does_not_have_is_said():
    _, notes = resolve_span(parse_span("5..", NOW), {ZERO: Bounds(10, 20)}, {})
    assert notes == ["t:0 begins at offset 10: earlier records were deleted"]
    _, notes = resolve_span(parse_span("25..", NOW), {ZERO: Bounds(10, 20)}, {})
    assert notes == ["t:0 ends at offset 20, before 25"]
    _, notes = resolve_span(Span(Position("time", MS)), {ZERO: Bounds(10, 20)}, {ZERO: None})
    assert notes == ["no record at or after 2026-11-21T12:00:00.000Z"]

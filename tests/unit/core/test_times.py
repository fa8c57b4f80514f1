import contextlib
import time
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.core.durations import duration_text, parse_duration
from kops.core.errors import UsageProblem
from kops.core.times import Position, parse_datetime, parse_position, parse_time, time_text, to_milliseconds

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
DAY = 86_400_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("7d", 7 * DAY),
        ("12h", DAY // 2),
        ("30m", 1_800_000),
        ("500ms", 500),
        ("1h30m", 5_400_000),
        ("1w2d", 9 * DAY),
        ("0s", 0),
        ("P7D", 7 * DAY),
        ("p7d", 7 * DAY),
        ("PT1H30M", 5_400_000),
        ("P1DT2H3M4.567S", DAY + 7_384_567),
        ("PT0.0009S", 0),
        ("PT,5S", None),
        ("PT1,5S", 1500),
        ("PT36H", 36 * 3_600_000),
    ],
)
def test_durations(text, milliseconds):
    if milliseconds is None:
        with pytest.raises(UsageProblem):
            parse_duration(text)
    else:
        assert parse_duration(text) == milliseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "d",
        "7x",
        "P",
        "PT",
        "P1W",
        "P1Y",
        "P1M",
        "P1DT",
        "-5m",
        "1m1h",
        "1h1h",
        "1.5h",
        "٣d",
        "7 d",
        "PT-1H",
        "9" * 30 + "d",
        "9" * 5000 + "d",
        "PT" + "9" * 5000 + "S",
    ],
)
def test_invalid_durations_are_rejected(text):
    with pytest.raises(UsageProblem):
        parse_duration(text)


def test_negative_durations_where_allowed():
    assert parse_duration("-PT1H", negative=True) == -3_600_000
    assert parse_duration("PT-6H3M", negative=True) == -6 * 3_600_000 + 180_000  # as java.time.Duration has it
    assert parse_duration("-PT-6H+3M", negative=True) == 6 * 3_600_000 - 180_000


@given(st.integers(min_value=0, max_value=2**53))
def test_durations_round_trip(milliseconds):
    assert parse_duration(duration_text(milliseconds)) == milliseconds


@given(st.text(max_size=12))
def test_any_text_is_a_duration_or_a_usage_problem(text):
    with contextlib.suppress(UsageProblem):
        assert parse_duration(text) >= 0


# What org.apache.kafka.common.utils.Utils.getDateTime of Kafka 4.3.1 says, in any local time zone.
APACHE = {
    "2026-11-20T14:05:00.000": 1795183500000,
    "2026-11-20T14:05:00.123Z": 1795183500123,
    "2026-11-20T14:05:00.000+01": 1795179900000,
    "2026-11-20T14:05:00.000+01:00": 1795179900000,
    "2026-11-20T14:05:00.000-07:00": 1795208700000,
}


@pytest.mark.parametrize(("text", "milliseconds"), APACHE.items())
def test_datetimes_match_apache(text, milliseconds):
    assert parse_datetime(text) == milliseconds


def test_minutes_of_zone_offset_count():
    """Apache 4.3.1 drops them: it takes +0530 for +05."""
    assert parse_datetime("2026-11-20T14:05:00.000+0530") == 1795183500000 - 5 * 3_600_000 - 30 * 60_000


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-20",
        "2026-11-20T14",
        "2026-13-40T14:05:00.000",
        "2026-02-30T14:05",
        "1999-12-31T24:00:00.000",
        "2026-11-20 14:05:00.000",
        "2026-11-20T14:05:00.1",
        "2026-11-20T14:05:00.123456",
        "xTx",
        "1969-12-31T23:59:59.999",
        "2026-11-20T14:05:00.000+1",
        "",
    ],
)
def test_invalid_datetimes_are_rejected(text):
    with pytest.raises(UsageProblem):
        parse_datetime(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("@-1h", "2026-11-21T11:00:00.000Z"),
        ("@-P1D", "2026-11-20T12:00:00.000Z"),
        ("@now", "2026-11-21T12:00:00.000Z"),
        ("@2026-11-20", "2026-11-20T00:00:00.000Z"),
        ("@2026-11-20T14:05", "2026-11-20T14:05:00.000Z"),
        ("@2026-11-20T14:05:06+02:00", "2026-11-20T12:05:06.000Z"),
        ("@1700000000000", "2023-11-14T22:13:20.000Z"),
        ("@0", "1970-01-01T00:00:00.000Z"),
    ],
)
def test_times(text, shown):
    assert time_text(parse_time(text, NOW)) == shown


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (253_402_300_800_000, "+10000-01-01T00:00:00.000Z"),
        (2**63 - 1, "+292278994-08-17T07:12:55.807Z"),
        (-(2**63), "-292275055-05-16T16:47:04.192Z"),
        (-62_167_219_200_001, "-0001-12-31T23:59:59.999Z"),
        (-62_135_596_800_001, "0000-12-31T23:59:59.999Z"),
    ],
)
def test_years_beyond_four_digits_are_as_java_writes_them(milliseconds, shown):
    """The values are those of ``java.time.Instant``."""
    assert time_text(milliseconds) == shown


@pytest.mark.parametrize(
    "text", ["@", "now", "@+1h", "@-", "@-999999d", "@1700000000", "@" + "9" * 20, "@" + "9" * 5000, "@yesterday", "@-1"]
)
def test_invalid_times_are_rejected(text):
    with pytest.raises(UsageProblem):
        parse_time(text, NOW)


def test_seconds_are_recognized_and_rejected():
    with pytest.raises(UsageProblem) as problem:
        parse_time("@1700000000", NOW)
    assert problem.value.hint == "write @1700000000000"


def test_positions():
    assert parse_position("start", NOW) == Position("start")
    assert parse_position("end", NOW) == Position("end")
    assert parse_position("12", NOW) == Position("offset", 12)
    assert parse_position("@-1h", NOW) == Position("time", to_milliseconds(NOW - timedelta(hours=1)))
    for text in ("-1", "-2", "", "START", "1.5", "0x1", "9" * 20, "9" * 5000):
        with pytest.raises(UsageProblem):
            parse_position(text, NOW)


@given(st.integers(min_value=0, max_value=253_402_300_799_999))
def test_times_round_trip(milliseconds):
    assert parse_time(f"@{time_text(milliseconds)}", NOW) == milliseconds


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_a_usage_problem(text):
    for parse in (lambda: parse_time(f"@{text}", NOW), lambda: parse_datetime(text), lambda: parse_position(text, NOW)):
        with contextlib.suppress(UsageProblem):
            parse()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("@14:45", "2026-11-20T13:45:00"), ("@14:45:30", "2026-11-20T13:45:30"), ("@23:10", "2026-11-19T22:10:00")],
)
def test_time_of_day_is_most_recent_local_one(text, expected, monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        moment = parse_time(text, datetime(2026, 11, 20, 15, 0, tzinfo=timezone.utc))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert time_text(moment) == f"{expected}.000Z"


def test_invalid_time_of_day_is_rejected():
    with pytest.raises(UsageProblem):
        parse_time("@25:00", datetime(2026, 11, 20, 15, 0, tzinfo=timezone.utc))

"""Lag in time, headroom, open transactions and limits, without a broker."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.core.groups.lag import (
    Aged,
    FirstRecord,
    Headroom,
    Limits,
    OpenTransaction,
    Retention,
    TimeLag,
    age_text,
    headroom_by_age,
    headroom_by_size,
    held_text,
    time_lag_of,
)
from kops.core.models import Bounds, Setting, TopicPartition
from kops.operations.groups.unread import retention_of

PLACE = (TopicPartition("orders", 0), 10)
NOW = 1_000_000
HOUR = 3_600_000


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (FirstRecord(10, NOW - 500), TimeLag(500, NOW - 500)),
        (FirstRecord(12, NOW - 500), TimeLag(500, NOW - 500, "next record is 12")),
        (FirstRecord(10, NOW - 5, log_append_time=True), TimeLag(5, NOW - 5, "by log append time")),
        (FirstRecord(12, NOW + 5), TimeLag(0, NOW + 5, "next record is 12")),
        (
            FirstRecord(10, NOW + 6_000),
            TimeLag(None, NOW + 6_000, "misdated: 1970-01-01T00:16:46.000Z is after now"),
        ),
        (FirstRecord(10, None), TimeLag(None, None, "the record has no timestamp")),
        (None, TimeLag(0, None, "no record left: markers or compacted away")),
    ],
)
def test_time_lag_is_the_age_of_the_first_record_left(found, expected):
    assert time_lag_of(PLACE, found, NOW) == expected


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0s"),
        (1, "<1s"),
        (1000, "1s"),
        (61_500, "1m1s"),
        (60_000, "1m"),
        (HOUR + 59_999, "1h"),
        (50 * HOUR, "2d2h"),
        (21_600 * HOUR, "900d"),
    ],
)
def test_ages_for_people_have_two_units_at_most(milliseconds, text):
    assert age_text(milliseconds) == text


@given(st.integers(0, 10**13))
def test_every_age_is_short(milliseconds):
    assert 2 <= len(age_text(milliseconds)) <= 10


def test_headroom_by_age():
    rule, old = Retention(HOUR, None, HOUR, 1000), NOW - HOUR + 60_000
    newest = old + 30_000
    assert headroom_by_age(rule, Aged(7, old, younger=False, newest=newest, size=10), NOW) == Headroom(
        7, newest + HOUR, "age", certain=True, keeps=25 * HOUR
    )  # one segment, which goes with its newest record
    assert headroom_by_age(rule, Aged(7, old, younger=False, newest=newest, size=2000), NOW).expires == NOW + 60_000
    assert headroom_by_age(rule, Aged(7, None, younger=False), NOW).expires == NOW
    assert headroom_by_age(rule, Aged(0, NOW, younger=False), NOW) is None
    assert headroom_by_age(Retention(), Aged(7, old, younger=False), NOW) is None


def test_younger_records_keep_the_segment_that_they_share():
    rule, soon = Retention(HOUR, None, 7 * HOUR, 1000), NOW - HOUR + 60_000
    shared = Aged(7, soon, younger=True, newest=NOW - 1, size=10)
    assert headroom_by_age(rule, shared, NOW) is None
    for several in (shared._replace(size=2000), shared._replace(newest=NOW + 8760 * HOUR), shared._replace(size=None)):
        assert not headroom_by_age(rule, several, NOW).certain
    overdue = shared._replace(size=2000, first=NOW - 9 * HOUR // 2)
    assert headroom_by_age(rule, overdue, NOW) is None  # brokers would have deleted it hours ago
    assert headroom_by_age(rule, overdue._replace(younger=False), NOW).keeps == 29 * HOUR  # not twice the retention


@pytest.mark.parametrize(
    ("retention", "within", "at_risk", "expires"),
    [
        (500, 1000, 50, 0),  # 900 bytes are unread, and 100 more come: 500 too many
        (900, 1000, 10, 0),
        (950, 1000, 5, 500),
        (1000, 1000, None, None),
        (1000, 1001, 1, 1000),
    ],
)
def test_headroom_by_size(retention, within, at_risk, expires):
    """90 of 100 records of 10 bytes are unread, and came in 9 seconds: 100 bytes a second."""
    found = headroom_by_size(retention, 1000, PLACE, Bounds(0, 100), oldest=NOW - 9_000, now=NOW, within=within)
    expected = None if at_risk is None else (at_risk, NOW + expires, "size")
    assert (found and (found.at_risk, found.expires, found.by)) == expected


def test_nothing_unread_is_at_no_risk():
    place = (TopicPartition("orders", 0), 100)
    assert headroom_by_size(1, 1000, place, Bounds(0, 100), oldest=None, now=NOW, within=HOUR) is None


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"cleanup.policy": "delete", "retention.ms": "60000", "retention.bytes": "-1"}, (60_000, None)),
        ({"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "5"}, (None, 5)),
        ({"cleanup.policy": "compact", "retention.ms": "60000", "retention.bytes": "5"}, (None, None)),
        ({"cleanup.policy": "", "retention.ms": "60000"}, (None, None)),  # since Kafka 4.2: kept for ever
    ],
)
def test_what_deletes_records(settings, expected):
    found = retention_of({name: Setting(name, value, "topic") for name, value in settings.items()})
    assert (found.milliseconds, found.size) == expected


def test_a_transaction_that_no_coordinator_ends_is_hanging():
    known = OpenTransaction(7, 0, 10, NOW - 50, "app-1", "Ongoing", NOW - 60_000, 5_000, includes_partition=True)
    assert not known.hanging
    assert known.age(NOW) == 60_000
    assert held_text(known, NOW) == "open transaction of app-1 at 10 for 1m"
    orphan = OpenTransaction(7, 0, 10, NOW - 50)
    assert orphan.hanging
    assert orphan.age(NOW) == 50
    assert held_text(orphan, NOW) == "hanging transaction of producer 7 at 10 for <1s"
    left_behind = OpenTransaction(7, 0, 10, NOW - 70_000, "app-1", "Ongoing", NOW - 50, 5_000, includes_partition=False)
    assert (left_behind.hanging, left_behind.age(NOW)) == (True, 70_000)  # the coordinator reports the transaction after it
    assert OpenTransaction(7, 0, 10, None, "app-1", "CompleteAbort", includes_partition=True).hanging
    assert OpenTransaction(7, 0, 10).age(NOW) is None


def test_limits_name_what_exceeds_them():
    row = {"group": "g", "topic": "orders", "partition": 0, "lag": 11, "time_lag_ms": 60_001}
    assert Limits().exceeded_by(row) == ""
    assert Limits(11, 60_001).exceeded_by(row) == ""
    assert Limits(10, 60_001).exceeded_by(row) == "g orders:0 (lag 11)"
    assert Limits(10, 60_000).exceeded_by(row) == "g orders:0 (lag 11, 1m behind)"
    unknown = {**row, "time_lag_ms": None, "note": "misdated"}
    assert Limits(11, 60_001).exceeded_by(unknown) == "g orders:0 (time not known: misdated)"
    assert Limits(11).exceeded_by(unknown) == Limits(11, 60_001).exceeded_by({**unknown, "lag": 0}) == ""
    assert Limits(0, 0).exceeded_by({**row, "lag": None, "time_lag_ms": None}) == ""
    assert Limits(10).exceeded_by({"group": "g", "lag": 11, "time_lag_ms": None}) == "g (lag 11)"
    assert Limits(10).exceeded_by({"topic": "orders", "groups": 2, "lag": 11, "time_lag_ms": None}) == "orders (lag 11)"

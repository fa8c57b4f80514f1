"""Windows in a state file, and what is said of them."""

import random

import pytest

from kops.core.errors import ConfigError
from kops.core.statefile import Windows, parse_state_file
from kops.operations.state.evidence_doubts import counted, emitted_again, fading, of_windows, window_warnings
from kops.spark.windows import sessions as windows_sessions
from kops.spark.windows.sessions import Tally, sessions_of
from kops.spark.windows.steps import steps_of

SOURCE = {"topic": "t", "key": "string", "value": "long"}
COUNT = {"count": True}


def store(kind, window, aggregate=COUNT, *, version="4.3", **fields):
    body = {"type": kind, "from": SOURCE, "window": window, "aggregate": aggregate, **fields}
    return parse_state_file("state.yaml", {"application": "a", "streams": {"version": version}, "stores": {"s": body}}).stores[0]


@pytest.mark.parametrize(
    ("kind", "window", "expected"),
    [
        ("window", {"size": "1m"}, Windows("window", 60_000, 60_000, 0, 60_000, says_retention=False)),
        ("window", {"size": "1m", "advance": "10s", "grace": "5s"}, Windows("window", 60_000, 10_000, 5000, 65_000, says_retention=False)),
        ("window", {"size": "1m", "retention": "1d"}, Windows("window", 60_000, 60_000, 0, 86_400_000)),
        (
            "sliding-window",
            {"difference": "10s", "grace": "1s"},
            Windows("sliding-window", 10_000, 10_000, 1000, 21_000, says_retention=False),
        ),
        ("session", {"gap": "30s", "grace": "PT5S"}, Windows("session", 30_000, 30_000, 5000, 35_000, says_retention=False)),
    ],
)
def test_windows_have_the_defaults_of_kafka_streams(kind, window, expected):
    assert store(kind, window).window == expected
    assert store(kind, window).type == kind


@pytest.mark.parametrize(
    ("kind", "window", "field", "hint"),
    [
        ("window", {}, "window.size", "1m"),
        ("window", {"size": "1 minute"}, "window.size", "30s"),
        ("window", {"size": "0s"}, "window.size", "0ms"),
        ("window", {"size": "1m", "advance": "2m"}, "window.advance", "1m"),
        ("window", {"size": "1m", "grace": "1m", "retention": "90s"}, "window.retention", "2m"),
        ("window", {"size": "1m", "gap": "1m"}, "window.gap", "size"),
        ("sliding-window", {"difference": "1m", "retention": "1m"}, "window.retention", "2m"),
        ("sliding-window", {"size": "1m"}, "window.size", "difference"),
        ("session", {"gap": "1m", "advance": "1m"}, "window.advance", "gap"),
    ],
)
def test_what_kafka_streams_refuses_is_an_error(kind, window, field, hint):
    with pytest.raises(ConfigError) as refused:
        store(kind, window)
    assert refused.value.details["field"] == f"stores.s.{field}"
    assert hint in (refused.value.hint or "")


def test_windows_need_an_aggregate_and_a_key_value_store_has_no_windows():
    with pytest.raises(ConfigError, match=r"stores\.s\.aggregate is missing"):
        store("window", {"size": "1m"}, aggregate=None)
    with pytest.raises(ConfigError, match=r"stores\.s\.window"):
        store("key-value", {"size": "1m"})


@pytest.mark.parametrize(
    ("noted", "grade", "reason"),
    [
        ({"late": 5, "expired": 2, "hidden": 1}, "A", ""),
        ({"timed": 2}, "B", "timestamps of 2 of 9"),
        ({"trimmed": 1}, "B", "begins above offset 0"),
        ({"boundary": 3}, "C", "3 records"),
        ({"cached": 2}, "C", "2 late records"),
        ({"unaligned": 4}, "C", "4 windows of a-s-changelog do not start at multiples of 1m"),
        ({"null_values": 3, "timed": 1}, "C", "null value"),
        ({"trimmed": 1, "uncovered": 4}, "D", "4 windows"),
    ],
)
def test_how_exact_windows_are(noted, grade, reason):
    found = of_windows(store("session", {"gap": "1m"}), 9, noted, cache=True)
    assert found.grade == grade
    assert reason in "; ".join(found.reasons)


def test_without_a_cache_an_expired_session_is_gone_for_sure():
    assert of_windows(store("session", {"gap": "1m"}), 9, {"cached": 2}, cache=False).grade == "A"


def test_what_is_told_of_windows():
    noted = {"late": 1234, "expired": 2, "hidden": 0, "boundary": 7}
    said = window_warnings(store("window", {"size": "1m"}), noted)
    assert [sentence.split(" and")[0].split(" (")[0] for sentence in said] == [
        "s: 1,234 records came after their window had closed,",
        "s: 2 windows have ended longer ago than the retention",
    ]
    assert counted(noted) == {"late_records": 1234, "boundary_records": 7, "expired_windows": 2}
    assert counted({}) == {"late_records": 0, "boundary_records": 0, "expired_windows": 0}


def test_what_is_sent_once_is_said():
    plain, closing = store("window", {"size": "1m"}), store("window", {"size": "1m"}, emit="on-close")
    assert emitted_again(plain) == []
    assert "once more" in emitted_again(closing)[0]
    suppressed = store("window", {"size": "1m"}, suppress="closed-store")
    assert suppressed.window.buffer == "a-closed-store-changelog"
    assert "a-closed-store-changelog" in window_warnings(suppressed, {})[0]
    with pytest.raises(ConfigError, match=r"stores\.s\.emit"):
        store("window", {"size": "1m"}, emit="close")


@pytest.mark.parametrize(
    ("settings", "fades"),
    [
        ({"cleanup.policy": "compact,delete", "retention.ms": "1000"}, True),
        ({"cleanup.policy": "compact,delete", "retention.ms": "5000"}, False),
        ({"cleanup.policy": "compact,delete", "retention.ms": "-1"}, False),
        ({"cleanup.policy": "compact", "retention.ms": "1000"}, False),
        ({}, False),
    ],
)
def test_records_that_the_broker_will_delete_are_said(settings, fades):
    assert bool(fading(store("window", {"size": "1m"}), settings, earliest=5000, now_ms=10_000)) is fades


@pytest.mark.parametrize("retention", ["1d", "90ms"])
def test_sessions_that_were_merged_are_told_as_they_come_and_not_twice(monkeypatch, retention):
    made = store("session", {"gap": "5ms", "grace": "30ms", "retention": retention})
    chance, latest, taken = random.Random("sessions"), 0, []
    for step in range(600):
        time = max(0, step * 2 - chance.choice([0, 0, 0, 9, 40]) + chance.choice([0, 0, 30]))
        taken.append((time, None, latest, -1))
        latest = max(latest, time)
    steps, floor = steps_of(made, "string"), latest - made.window.retention_ms

    def told(**how):
        found = list(sessions_of(b"k", taken, made.window, steps, Tally(), **how))
        assert len({put[:2] for put in found}) == len(found)
        return sorted(put for put in found if put[0] > floor)

    whole = told()
    monkeypatch.setattr(windows_sessions, "_MAX_TOMBSTONES", 3)
    assert told(in_order=True) == whole
    assert {put[2] is None for put in whole} == {True, False}

"""Positions by time: what Kafka finds there, wrong dates, timestamps out of order, another clock."""

import json
from datetime import datetime, timedelta, timezone

import pytest
from confluent_kafka import Producer

from kops.cli.frame.session import Session
from support.kafka import needs_kafka
from support.patience import HANG_SECONDS
from support.programs import Record

pytestmark = pytest.mark.broker

BASE = 1_760_000_000_000
NEXT_YEAR = int((datetime.now(timezone.utc) + timedelta(days=365)).timestamp() * 1000)


ANY_DATE = {"message.timestamp.after.max.ms": str(2**63 - 1)}
"""Brokers before 3.6 take every date; newer ones by default none that is more than an hour ahead."""
of_any_date = needs_kafka("3.6")


def dated(cluster, name, timestamps):
    cluster.produce(name, [Record(b"k", b"v", timestamp, (), 0) for timestamp in timestamps])
    return name


def plan_of(kops, name, group, *how):
    found = kops("offsets", "reset", group, "--topic", name, *how, "--new-group", "--dry-run", "-o", "json").ok().json
    return found["items"][0], found["warnings"]


@pytest.fixture
def a_day_ahead(monkeypatch):
    monkeypatch.setattr(Session, "now", lambda _session: datetime.now(timezone.utc) + timedelta(days=1))


def test_a_reset_shows_the_time_of_the_record_that_it_leads_to(kops, cluster, topic, group):
    name = dated(cluster, topic(), [BASE, BASE + 5000, BASE + 9000])
    item, warnings = plan_of(kops, name, group, "--to", f"@{BASE + 1000}")
    assert (item["after"], warnings) == (1, [])
    assert item["reason"].startswith("first record at or after 2025-10-09T08:53:21.000Z: of 2025-10-09T08:53:25.000Z")
    item, _ = plan_of(kops, name, group, "--to", f"@{BASE + 5000}")
    assert item["reason"].startswith("first record at or after 2025-10-09T08:53:25.000Z;")


@of_any_date
def test_a_reset_to_a_record_that_is_dated_ahead_says_so(kops, cluster, topic, group):
    name = dated(cluster, topic(config=ANY_DATE), [BASE, NEXT_YEAR, BASE + 1, BASE + 2])
    item, warnings = plan_of(kops, name, group, "--by-duration", "PT1H")
    assert item["after"] == 1
    assert any("dated after now" in warning and f"{name}:0" in warning for warning in warnings)
    assert any("2 of 3 records looked at from offset 1 on are earlier" in warning for warning in warnings)


def test_a_reset_to_where_order_is_broken_says_so(kops, cluster, topic, group):
    name = dated(cluster, topic(), [BASE + after for after in (0, 100, 300, 200, 50, 400)])
    item, warnings = plan_of(kops, name, group, "--to", f"@{BASE + 150}")
    assert item["after"] == 2
    (warning,) = warnings
    assert "1 of 4 records looked at from offset 2 on are earlier" in warning
    assert "such as offset 4 of 2025-10-09T08:53:20.050Z" in warning


def test_a_marker_is_not_called_a_record(kops, broker, cluster, topic, group, unique):
    name = topic()
    producer = Producer({**broker.client, "transactional.id": unique()})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, b"v", b"k", 0, timestamp=BASE)
    producer.flush(HANG_SECONDS)
    producer.commit_transaction(30)
    cluster.settle(name)
    item, _ = plan_of(kops, name, group, "--to", "@-1h")
    assert item["after"] == 1  # as Apache's tool: Kafka finds the marker, which is dated now
    assert item["reason"].startswith("no record at or after ")
    assert "a transaction marker" in item["reason"]
    rows = kops("topics", "offsets", name, "--at", "@-1h", "-o", "json").ok().json
    assert [row["note"] for row in rows] == ["a transaction marker is there"]


def test_the_log_end_is_not_called_a_record(kops, cluster, topic, group):
    name = dated(cluster, topic(), [BASE])
    item, warnings = plan_of(kops, name, group, "--to", "@-1h")
    assert item["after"] == 1
    assert item["reason"].startswith("no record at or after ")
    assert any("all records are earlier than the time, which is by this machine's clock" in warning for warning in warnings)


@needs_kafka("3.5")
def test_a_clock_that_is_a_day_ahead_is_named(kops, cluster, topic, group, a_day_ahead):
    now = int(datetime.now(timezone.utc).timestamp() * 1000)
    name = dated(cluster, topic(), [now - 120_000, now - 60_000])
    item, warnings = plan_of(kops, name, group, "--to", "@-1h")
    assert item["after"] == 2
    assert any("this machine's clock" in warning and "ahead of the cluster's" in warning for warning in warnings)
    outcome = kops("records", "consume", name, "@-1h").ok()
    assert "no record at or after" in outcome.err
    assert "ahead of the cluster's" in outcome.err


def test_a_clock_that_agrees_is_not_mentioned(kops, cluster, topic, group):
    now = int(datetime.now(timezone.utc).timestamp() * 1000)
    name = dated(cluster, topic(), [now - 120_000, now - 60_000])
    item, warnings = plan_of(kops, name, group, "--to", "@-1h")
    assert (item["after"], warnings) == (0, [])


@of_any_date
def test_offsets_by_time_have_the_time_of_the_record_there(kops, cluster, topic):
    name = dated(cluster, topic(config=ANY_DATE), [BASE, NEXT_YEAR, BASE + 1])
    outcome = kops("topics", "offsets", name, "--at", f"@{BASE + 500}", "-o", "json").ok()
    (row,) = outcome.json
    assert (row["offset_at"], row["offsets_since"]) == (1, 2)
    assert row["timestamp_at"].startswith(str(datetime.now(timezone.utc).year + 1))
    assert "dated after now" in outcome.err
    assert "1 of 2 records looked at" in outcome.err


@of_any_date
def test_a_year_of_five_digits_is_shown(kops, cluster, topic):
    name = dated(cluster, topic(config=ANY_DATE), [253_402_300_800_000])  # java.time.Instant: +10000-01-01T00:00:00Z
    row = json.loads(kops("records", "consume", name, "-o", "json").ok().out)
    assert row["timestamp"] == "+10000-01-01T00:00:00.000Z"
    assert "+10000-01-01T00:00:00.000Z" in kops("records", "consume", name).ok().out


@of_any_date
@pytest.mark.parametrize("by", ["partition", "group", "topic"])
def test_a_lag_that_is_dated_ahead_is_not_within_a_limit_of_time(kops, cluster, topic, group, by):
    name = dated(cluster, topic(config=ANY_DATE), [NEXT_YEAR, NEXT_YEAR])
    cluster.commit(group, {(name, 0): 0})
    outcome = kops("groups", "lag", group, "--by", by, "--max-time", "1h", "-o", "json")
    assert outcome.code == 1
    assert "time not known: misdated" in outcome.err
    (row,) = kops("groups", "lag", group, "-o", "json").ok().json
    assert (row["lag"], row["time_lag_ms"]) == (2, None)
    assert row["note"].startswith("misdated: ")

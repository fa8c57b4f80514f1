"""``kops changelog`` on what a real application wrote for a store of every type, beside what the application itself answers."""

import json
import subprocess
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kops.core.murmur2 import partition_for
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams import java_command

pytestmark = [pytest.mark.broker, pytest.mark.streams]

T = int(time.time()) // 60 * 60_000 - 3_600_000
"""The start of a minute: an hour ago, since brokers delete windows that are older than their retention."""
KEYS = ("anna", "ben", "chloé")
LEFT = [(KEYS[n % 3], f"l{n}", T + n * 7_000 + n // 9 * 20_000) for n in range(30)]
"""With pauses, after which new sessions begin."""
RIGHT = [(KEYS[n % 3], f"r{n}", T + n * 21_000 + 3) for n in range(8)]
PEOPLE = [
    ("anna", "Rome", T - 5_000),
    ("anna", "Oslo", T + 9_000),
    ("anna", "Bern", T + 1_000),
    ("ben", "Bonn", T),
    ("ben", None, T + 500),
]
DEPARTMENTS = [("p1", "sales", T), ("p2", "sales", T + 1), ("p3", "nobody", T + 2)]
ROOMS = [("sales", "R1", T)]
INPUTS = {"left": LEFT, "right": RIGHT, "people": PEOPLE, "departments": DEPARTMENTS, "rooms": ROOMS}
PARTITIONS = 2


def records(rows):
    return [Record(key.encode(), None if value is None else value.encode(), at) for key, value, at in rows]


@pytest.fixture(scope="module")
def application(broker, cluster, tmp_path_factory):
    """A real application that has read its topics, with what it answered; its name, and what its stores hold."""
    import uuid

    name = f"every-store-{uuid.uuid4().hex[:8]}"
    topics = {f"{name}-{topic}": records(rows) for topic, rows in INPUTS.items()}
    cluster.create_all(dict.fromkeys(topics, PARTITIONS))
    cluster.produce_all(topics)
    command = java_command("EveryStore", sources=Path(__file__).parent / "changelogs")
    state = str(tmp_path_factory.mktemp("state"))
    done = subprocess.run(
        [*command, broker.bootstrap_servers, name, state, *KEYS],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (answers,) = (line for line in done.stdout.splitlines() if line.startswith("{"))  # before it and after it the library logs
    yield name, json.loads(answers)
    cluster.delete_all(cluster.topics(name))
    cluster.admin.delete_consumer_groups([name])[name].result(HANG_SECONDS)


@pytest.fixture
def changelog(run_kops, broker, application):
    """Run a verb on a store of the application."""
    name, _ = application

    def run(verb, store, *arguments):
        return run_kops("changelog", verb, name, store, *arguments, "-B", broker.bootstrap_servers, "-o", "json")

    return run


def rows_of(found):
    return found.ok().json


def test_the_types_are_guessed_and_the_settings_are_those_of_kafka_streams(run_kops, broker, application):
    name, _ = application
    found = run_kops("changelog", "list", name, "-B", broker.bootstrap_servers, "-o", "json").ok()
    types = {row["store"] or row["topic"].removeprefix(f"{name}-"): row["type"] for row in found.json}
    assert {store: kind for store, kind in types.items() if "STATE-STORE" not in store} == {
        "counts": "key-value",
        "per-minute": "window",
        "sessions": "session",
        "homes": "versioned",
        "pairs-this-join-store": "join",
        "pairs-outer-other-join-store": "join",
        "pairs-left-shared-join-store": "outer-join",
        "waiting-store": "suppress",
        "closing-store": "suppress",
        "ending-store": "suppress",
        "visits-Buffer": "join-buffer",
        "located": "key-value",
        "where-subscription-store": "subscription",
        "where-subscription-registration-topic": "subscription-registration",
        "where-subscription-response-topic": "subscription-response",
    }
    own = {row["topic"]: row["differences"] for row in found.json if row["differences"]}
    assert own == {}, "the real application's own topics are as Kafka Streams sets them"
    assert {row["partitions"] for row in found.json} == {PARTITIONS}


def test_key_value_store_shows_what_the_application_holds(changelog, application):
    found = changelog("inspect", "counts", "--value", "long")
    held = [[row["key"], row["value"], row["timestamp_ms"]] for row in rows_of(found)]
    assert sorted(held) == sorted(application[1]["counts"])
    assert all(row["partition"] == partition_for(row["key"].encode(), PARTITIONS) for row in found.json)
    assert "read as key-value, a guess of high confidence" in found.err
    assert [row["value"] for row in rows_of(changelog("get", "counts", "ben", "--value", "long"))] == [10]
    history = rows_of(changelog("history", "counts", "chloé", "--value", "long"))
    assert [(row["value"], row["timestamp_ms"]) for row in history] == [(n + 1, at) for n, at in enumerate(times_of("chloé"))]


def times_of(key):
    return [at for one, _, at in LEFT if one == key]


def test_windows(changelog, application):
    found = changelog("inspect", "per-minute", "--value", "long", "--window-size", "1m")
    held = [[row["key"], row["window_start_ms"], row["window_end_ms"], row["value"], row["timestamp_ms"]] for row in rows_of(found)]
    assert sorted(held) == sorted(application[1]["per-minute"])
    first = found.json[0]
    assert first["window_start"].endswith(":00.000Z")
    assert first["window_end_ms"] - first["window_start_ms"] == 60_000
    of_anna = sorted(row for row in held if row[0] == "anna")
    got = rows_of(changelog("get", "per-minute", "anna", "--value", "long", "--window-size", "60s"))
    assert sorted([row["key"], row["window_start_ms"], row["window_end_ms"], row["value"], row["timestamp_ms"]] for row in got) == of_anna
    second = f"@{T + 60_000}"
    one = rows_of(changelog("get", "per-minute", "anna", "--window", second, "--value", "long"))
    assert [(row["window_start_ms"], row["window_end"]) for row in one] == [(T + 60_000, None)]
    some = rows_of(changelog("inspect", "per-minute", "--window", f"{second}..@{T + 180_000}", "--value", "long"))
    assert {row["window_start_ms"] for row in some} == {T + 60_000, T + 120_000}
    unknown = changelog("inspect", "per-minute", "--value", "long")
    assert {row["window_end"] for row in rows_of(unknown)} == {None}
    assert "their windows' ends are not in the topic" in unknown.err


def test_sessions(changelog, application):
    found = changelog("inspect", "sessions", "--value", "long")
    held = [[row["key"], row["window_start_ms"], row["window_end_ms"], row["value"]] for row in rows_of(found)]
    assert sorted(held) == sorted(application[1]["sessions"])
    history = rows_of(changelog("history", "sessions", "anna", "--value", "long"))
    of_anna = [row for row in held if row[0] == "anna"]
    assert len(of_anna) > 1
    grown = len(times_of("anna")) - len(of_anna)
    assert sum(row["tombstone"] for row in history) == grown, "a session that grows is deleted and rewritten"


def test_versions(changelog, application):
    found = rows_of(changelog("inspect", "homes", "--tombstones"))
    assert sorted((row["key"], row["timestamp_ms"], row["value"]) for row in found) == sorted((k, at, v) for k, v, at in PEOPLE)
    held = [[row["key"], row["value"], row["timestamp_ms"]] for row in found if not row["tombstone"]]
    assert sorted(held) == sorted(row[:3] for row in application[1]["homes"])
    assert [row["value"] for row in rows_of(changelog("get", "homes", "anna"))] == ["Oslo"], "the newest, not what was written last"
    gone = changelog("get", "homes", "ben")
    assert gone.code == 1
    assert "ben is deleted in " in gone.err


def test_join_stores_show_the_records_of_both_sides(changelog):
    for store, rows in (("pairs-this-join-store", LEFT), ("pairs-outer-other-join-store", RIGHT)):
        found = rows_of(changelog("inspect", store))
        assert sorted((row["key"], row["value"], row["record_time_ms"]) for row in found) == sorted(rows)
        assert all(row["sequence"] > 0 for row in found)
    anna = rows_of(changelog("get", "pairs-outer-other-join-store", "anna"))
    assert [row["value"] for row in anna] == [value for key, value, _ in RIGHT if key == "anna"]


def test_outer_join_store_shows_what_found_no_partner(changelog):
    found = rows_of(changelog("inspect", "pairs-left-shared-join-store"))
    assert found, "the last records of each side wait for one another"
    known = {(side, key, at): value for side, rows in (("left", LEFT), ("right", RIGHT)) for key, value, at in rows}
    assert all(row["value"] == [known[row["side"], row["key"], row["record_time_ms"]]] for row in found)


@pytest.mark.parametrize("store", ["closing-store", "ending-store"])
def test_suppress_buffer_shows_windows_held_back(changelog, application, store):
    table = "per-minute" if store == "closing-store" else "sessions"
    held = {(row[0], row[1], row[2]): row[3] for row in application[1][table]}
    found = rows_of(changelog("inspect", store, "--value", "long"))
    assert found
    for row in found:
        assert row["value"] == held[row["key"], row["window_start_ms"], row["window_end_ms"]]
        assert row["buffer_time_ms"] == row["window_end_ms"]
        assert row["source"]["topic"].endswith("-left")
        assert row["source"]["timestamp_ms"] in times_of(row["key"])
    assert {row["key"] for row in found} <= set(KEYS)


def test_suppress_buffer_shows_keys_held_back(changelog, application):
    found = rows_of(changelog("inspect", "waiting-store", "--value", "long"))
    assert sorted([row["key"], row["value"]] for row in found) == sorted(row[:2] for row in application[1]["counts"])
    assert all(row["buffer_time_ms"] == times_of(row["key"])[0] for row in found), "a row keeps the place of its first change"


def test_join_buffer_shows_records_that_wait_for_a_table(changelog):
    found = rows_of(changelog("inspect", "visits-Buffer"))
    assert sorted((row["key"], row["value"], row["record_time_ms"]) for row in found) == sorted(LEFT)
    assert {row["source"]["topic"].rsplit("-", 1)[1] for row in found} == {"left"}


def test_subscription_store_shows_both_keys(run_kops, broker, application):
    topic = f"{application[0]}-where-subscription-store-changelog"
    found = run_kops("changelog", "inspect", topic, "-B", broker.bootstrap_servers, "-o", "json").ok()
    assert sorted((row["key"], row["primary_key"]) for row in found.json) == sorted((value, key) for key, value, _ in DEPARTMENTS)
    assert {row["value"]["instruction"] for row in found.json} == {"PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"}
    sales = run_kops("changelog", "get", topic, "sales", "-B", broker.bootstrap_servers, "-o", "json").ok()
    assert sorted(row["primary_key"] for row in sales.json) == ["p1", "p2"]


@pytest.mark.parametrize("store", ["counts", "per-minute", "sessions", "homes", "closing-store", "pairs-left-shared-join-store"])
def test_nothing_is_wrong_with_what_kafka_streams_wrote(changelog, cluster, application, store):
    found = changelog("stats", store, "--key", "string").ok().json
    log = cluster.read(f"{application[0]}-{store}-changelog")
    total = found["total"]
    assert total["records"] == len(log)
    assert (total["wrong_partition"], total["undecodable"], total["unkeyed"]) == (0, 0, 0)
    assert total["key_bytes"] == sum(len(record.key) for record in log)
    assert (total["oldest_ms"], total["newest_ms"]) == (min(r.timestamp for r in log), max(r.timestamp for r in log))


@pytest.mark.spark
@pytest.mark.parametrize(
    ("verb", "store", "arguments"),
    [
        ("inspect", "per-minute", ("--key", "string", "--value", "long", "--tombstones")),
        pytest.param(
            *("inspect", "sessions", ("--key", "string", "--value", "long", "--window", f"@{T}..@{T + 90_000}", "--limit", 3)),
            marks=pytest.mark.long,
        ),
        pytest.param("stats", "homes", ("--key", "string", "--value", "json"), marks=pytest.mark.long),
        ("get", "pairs-this-join-store", ("anna", "--key", "string", "--value", "string")),
    ],
)
def test_spark_answers_the_same(changelog, verb, store, arguments):
    here, there = changelog(verb, store, *arguments), changelog(verb, store, *arguments, "--spark")
    assert rows_of(there) == rows_of(here)
    assert here.json


@pytest.fixture
def broken(broker, cluster, topic):
    """A log with all that can be wrong: poison, no keys, other partitions, tombstones, an aborted and an open transaction."""
    name = topic(partitions=3)
    rows = [
        Record(b"key-%d" % (n % 40), None if n % 11 == 0 else b"value-%d" % n, T + n % 7, (("h", b"x"),) if n % 3 else (), n % 3)
        for n in range(200)
    ]
    poison = [Record(b"\xff\xfe", b"v", T, (), 1), Record(b"fine", b"\xfe", T - 9, (), 2), Record(b"fine", b"\xfd", T, (), 2)]
    cluster.produce(name, [*rows, *poison, Record(None, b"keyless", T, (), 0)])
    for end in ("abort", "open"):
        producer = Producer({**broker.client, "transactional.id": f"{name}-{end}"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(name, b"not committed", b"key-3", partition=0, timestamp=T)
        producer.flush(HANG_SECONDS)
        if end == "abort":
            producer.abort_transaction(30)
            cluster.settle(name)
    yield name
    producer.abort_transaction(30)


@pytest.mark.spark
def test_spark_answers_the_same_about_a_broken_log(run_kops, broker, broken):
    text = ("--type", "key-value", "--key", "string", "--value", "string", "-B", broker.bootstrap_servers, "-o", "json")

    def both(verb, *arguments):
        here = run_kops("changelog", verb, broken, *arguments, *text).ok()
        there = run_kops("changelog", verb, broken, *arguments, *text, "--spark").ok()
        assert there.json == here.json
        notes = [{line for line in found.err.splitlines() if line.startswith((broken, "note:", "warning:"))} for found in (here, there)]
        assert notes[0] == notes[1]
        return here

    assert f"{broken}:0 has an open transaction at offset" in both("inspect", "--tombstones", "--on-error", "skip").err
    stats = both("stats").json["total"]
    assert stats["undecodable"] == 3
    assert stats["wrong_partition"] > 0
    assert stats["unkeyed"] == 1
    both("history", "key-3", "--isolation", "read_uncommitted", "--limit", 2, "--all-partitions")

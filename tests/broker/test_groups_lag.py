"""``kops groups lag`` beyond offsets, on a real broker: in time, what will expire, open transactions, limits, watching."""

import itertools
import re
import signal
import time

import pytest
from confluent_kafka import Producer

from support.apache_tools import GROUPS
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams_apps import wait_for

pytestmark = pytest.mark.broker

HOUR = 3_600_000


@pytest.fixture
def lag(run_kops, broker):
    """Run ``kops groups lag``."""
    return lambda *arguments: run_kops("groups", "lag", *arguments, "-B", broker.bootstrap_servers)


@pytest.fixture
def transaction(broker, unique):
    """Begin a transaction that writes to some partitions: gives its producer and its id; aborted in the end, unless it is over."""
    left = []

    def begin(name, *partitions):
        transactional_id = unique("tx")
        producer = Producer({**broker.client, "transactional.id": transactional_id, "log_level": 0})
        producer.init_transactions(30)
        producer.begin_transaction()
        left.append(producer)
        for partition in partitions:
            producer.produce(name, b"in a transaction", partition=partition)
        producer.flush(HANG_SECONDS)
        return producer, transactional_id

    yield begin
    for producer in left:
        try:
            producer.abort_transaction(30)
        except Exception:
            continue


def by_partition(outcome):
    return {row["partition"]: row for row in outcome.json}


def now():
    return int(time.time() * 1000)


def test_time_lag_is_the_age_of_the_first_record_to_read(lag, group, topic, cluster):
    name, then = topic("t", partitions=4), now()
    for partition, ages in ((0, (5, 4, 3)), (1, (2, 1)), (2, (1,))):
        cluster.produce(name, [Record(None, b"x", then - age * HOUR, partition=partition) for age in ages])
    cluster.trim(name, {1: 1})
    cluster.commit(group, {(name, 0): 1, (name, 1): 0, (name, 2): 1, (name, 3): 0})
    rows = by_partition(lag(group, "-o", "json").ok())
    assert [round(rows[at]["time_lag_ms"] / HOUR, 2) for at in range(4)] == [4.0, 1.0, 0, 0]  # below the log start: what is left
    assert rows[0]["first_unread"] is not None
    assert (rows[2]["first_unread"], rows[3]["note"]) == (None, "")
    (total,) = lag(group, "--by", "group", "-o", "json").ok().json
    assert round(total["time_lag_ms"] / HOUR, 2) == 4.0
    table = lag(group).ok()
    assert table.out.splitlines()[0].split() == ["TOPIC", "PART", "COMMITTED", "END", "LAG", "TIME", "NOTE"]
    assert "4h" in table.out
    assert "2 partitions" not in table.err
    assert "lag 3, 4h" in table.err
    bare = by_partition(lag(group, "--no-time", "-o", "json").ok())
    assert [bare[at]["time_lag_ms"] for at in range(4)] == [None, None, 0, 0]


def test_offsets_and_lag_are_apaches_but_for_records_that_are_gone(lag, group, topic, cluster, apache):
    """Apache counts records below the log start, which can no longer be read, and counts below zero past the end; kops does neither."""
    name = topic("t", partitions=5)
    cluster.produce(name, [Record(None, b"x", now(), partition=partition) for partition in range(4) for _ in range(10)])
    cluster.trim(name, {1: 6})
    cluster.commit(group, {(name, 0): 4, (name, 1): 2, (name, 2): 13, (name, 3): 10, (name, 4): 0})
    printed = apache.run("--describe", "--group", group, GROUPS)
    found = re.findall(rf"^\S+\s+{re.escape(name)}\s+(\d+)\s+(\d+)\s+(\d+)\s+(-?\d+)\s", printed, re.MULTILINE)
    theirs = {int(partition): tuple(map(int, rest)) for partition, *rest in found}
    ours = {at: (row["committed"], row["log_end_offset"], row["lag"]) for at, row in by_partition(lag(group, "-o", "json").ok()).items()}
    assert {at: offsets[:2] for at, offsets in ours.items()} == {at: offsets[:2] for at, offsets in theirs.items()}
    assert [theirs[at][2] for at in range(5)] == [6, 8, -3, 0, 0]
    assert [ours[at][2] for at in range(5)] == [6, 4, 0, 0, 0]


def test_time_lag_by_the_brokers_clock_is_told(lag, group, topic, cluster):
    name = topic("t", config={"message.timestamp.type": "LogAppendTime"})
    cluster.produce(name, [Record(None, b"x", now() - HOUR, partition=0)])
    cluster.commit(group, {(name, 0): 0})
    (row,) = lag(group, "-o", "json").ok().json
    assert row["time_lag_ms"] < HOUR / 2
    assert row["note"] == "by log append time"


def test_transaction_markers_do_not_count_as_records(lag, group, topic, cluster, transaction):
    """A committed offset at a transaction's marker: the record after it counts, and without one nothing is known."""
    name = topic("t", partitions=2)
    producer, _ = transaction(name, 0, 1)
    producer.commit_transaction(30)
    wait_for("the markers, which the coordinator writes later", lambda: set(cluster.ends(name).values()) == {(0, 2)})
    cluster.produce(name, [Record(None, b"x", now() - HOUR, partition=0)])
    cluster.commit(group, {(name, 0): 1, (name, 1): 1})
    rows = by_partition(lag(group, "-o", "json").ok())
    assert (rows[0]["lag"], rows[0]["note"]) == (2, "next record is 2")
    assert round(rows[0]["time_lag_ms"] / HOUR, 2) == 1.0
    assert (rows[1]["lag"], rows[1]["time_lag_ms"], rows[1]["note"]) == (1, 0, "no record left: markers or compacted away")


def test_an_open_transaction_holds_readers_back(lag, group, topic, cluster, transaction):
    name = topic("t", partitions=2)
    cluster.produce(name, [Record(None, b"x", now() - HOUR, partition=0)])
    _, transactional_id = transaction(name, 0)
    cluster.produce(name, [Record(None, b"x", now(), partition=0)])
    cluster.commit(group, {(name, 0): 0, (name, 1): 0})
    row = by_partition(lag(group, "-o", "json").ok())[0]
    assert (row["lag"], row["log_end_offset"], row["last_stable_offset"]) == (3, 3, 1)
    held = row["transaction"]
    assert (held["transactional_id"], held["start_offset"], held["state"], held["hanging"]) == (transactional_id, 1, "Ongoing", False)
    assert 0 <= held["age_ms"] < HOUR
    committed = by_partition(lag(group, "--isolation", "read_committed", "-o", "json").ok())[0]
    assert (committed["lag"], committed["log_end_offset"], committed["last_stable_offset"]) == (1, 3, 1)
    cluster.commit(group, {(name, 0): 1})
    waiting = by_partition(lag(group, "--isolation", "read_committed", "-o", "json").ok())[0]
    assert (waiting["lag"], waiting["transaction"]["transactional_id"]) == (0, transactional_id)
    assert by_partition(lag(group, "-o", "json").ok())[0]["lag"] == 2
    said = f"open transaction of {transactional_id} at 1 for"  # in the table when it is no longer as young as they all are once
    wait_for("it to be shown", lambda: said in lag(group).ok().out)


def test_records_that_retention_will_delete_unread_are_counted(lag, group, topic, cluster):
    """Segments of half an hour: where they end decides how many of the records that are too old go, and brokers do not report it."""
    name = topic("t", partitions=2, config={"retention.ms": str(2 * HOUR), "segment.ms": str(HOUR // 2)})
    cluster.produce(name, [Record(None, b"x", now() - 105 * 60_000 + at * 10 * 60_000, partition=0) for at in range(10)])
    cluster.commit(group, {(name, 0): 2, (name, 1): 0})
    row = by_partition(lag(group, "--within", "1h", "-o", "json").ok())[0]
    # The record at 2 is 85 minutes old: it may go in 35. In an hour those may go that are older than an hour now: 2, 3 and 4.
    assert (row["expires"]["at_risk"], row["expires"]["certain"], row["expires"]["by"]) == (3, False, "age")
    assert by_partition(lag(group, "--within", "1h", "-o", "json").ok())[1]["expires"] is None
    assert by_partition(lag(group, "--within", "30m", "-o", "json").ok())[0]["expires"] is None
    assert "3 may expire, first in 34m" in lag(group, "--within", "1h", "--no-time").ok().out
    assert "8 expire" in lag(group, "--within", "3h").ok().out


def test_records_in_one_segment_with_a_younger_one_do_not_expire(lag, group, topic, cluster):
    """A segment goes when its newest record is too old (``UnifiedLog.deleteRetentionMsBreachedSegments``)."""
    name = topic("t", config={"retention.ms": str(2 * HOUR)})
    cluster.produce(name, [Record(None, b"x", now() - 105 * 60_000 + at * 10 * 60_000, partition=0) for at in range(10)])
    cluster.commit(group, {(name, 0): 2})
    assert lag(group, "--within", "1h", "-o", "json").ok().json[0]["expires"] is None
    assert "8 expire" in lag(group, "--within", "3h").ok().out


def test_records_that_a_size_limit_will_delete_unread_are_counted(lag, group, topic, cluster):
    name = topic("t", config={"retention.bytes": "20000", "retention.ms": "-1"})
    cluster.produce(name, [Record(None, b"x" * 1000, now() - HOUR, partition=0) for _ in range(40)])
    cluster.commit(group, {(name, 0): 0})
    (row,) = lag(group, "--within", "1m", "-o", "json").ok().json
    assert row["expires"]["by"] == "size"
    assert 15 <= row["expires"]["at_risk"] <= 25
    cluster.commit(group, {(name, 0): 30})
    assert lag(group, "--within", "1m", "-o", "json").ok().json[0]["expires"] is None


def test_compacted_topics_expire_nothing(lag, group, topic, cluster):
    name = topic("t", config={"cleanup.policy": "compact", "retention.ms": "60000"})
    cluster.produce(name, [Record(b"k", b"x", now() - HOUR, partition=0)])
    cluster.commit(group, {(name, 0): 0})
    assert lag(group, "--within", "1h", "-o", "json").ok().json[0]["expires"] is None


def test_the_sum_says_where_the_age_is_not_known(lag, group, topic, cluster):
    name = topic("t", partitions=2, config={"message.timestamp.after.max.ms": str(2**63 - 1)})
    cluster.produce(name, [Record(None, b"x", now() - HOUR, partition=0), Record(None, b"x", now() + 1000 * HOUR, partition=1)])
    cluster.commit(group, {(name, 0): 0, (name, 1): 0})
    shown = lag(group).ok()
    assert re.search(r"lag 2, 1h(\d+m)? behind \(not known for 1 partition\)", shown.err), shown.err


def test_limits_end_with_1_and_name_what_exceeds_them(lag, group, topic, cluster):
    name = topic("t", partitions=2)
    cluster.produce(name, [Record(None, b"x", now() - HOUR, partition=at % 2) for at in range(10)])
    cluster.commit(group, {(name, 0): 0, (name, 1): 4})
    lag(group, "--max-lag", "5", "--max-time", "2h").ok()
    for limit in (("--max-lag", "4"), ("--max-time", "59m")):
        exceeded = lag(group, *limit, "-o", "json")
        assert exceeded.code == 1
        assert f"over the limit: {group} {name}:0 (" in exceeded.err
        assert len(exceeded.json) == 2
    summed = lag(group, "--by", "topic", "--max-lag", "5")
    assert (summed.code, f"over the limit: {name} (lag 6)" in summed.err) == (1, True)
    assert lag(group, "--max-time", "1h", "--no-time").code == 2
    assert lag(group, "--max-time", "soon").code == 2
    assert lag().code == 2


def test_many_offsets_in_the_same_partitions_are_read(lag, group, topic, cluster):
    """Each group stands elsewhere: all are read in one pass over each partition."""
    name, then = topic("t", partitions=2), now() - HOUR
    cluster.produce(name, [Record(None, b"x" * 100, then + at, partition=part) for at in range(3000) for part in range(2)])
    expected = {}
    for number, (first, second) in enumerate(itertools.islice(itertools.product((0, 1, 999, 1500, 2999), (2998, 700, 5, 1)), 20)):
        cluster.commit(f"{group}-{number:02d}", {(name, 0): first, (name, 1): second})
        expected |= {(f"{group}-{number:02d}", 0): first, (f"{group}-{number:02d}", 1): second}
    rows = lag(f"{group}-*", "-o", "json").ok().json
    from kops.core.times import time_text

    assert {(row["group"], row["partition"]): row["first_unread"] for row in rows} == {
        place: time_text(then + offset) for place, offset in expected.items()
    }


def test_watching_in_a_pipe_is_a_line_a_look(lag, group, topic, cluster, kops_process, broker):
    name = topic("t")
    cluster.produce(name, [Record(None, b"x", now() - HOUR, partition=0) for _ in range(10)])
    cluster.commit(group, {(name, 0): 0})
    looks = lag("--watch", group, "--count", "2", "--max-lag", "5")
    assert looks.code == 1
    first, second = looks.out.splitlines()
    assert "lag 10  (-)  consumed -" in first
    assert f"lag 10  (0/s)  consumed 0/s  produced 0/s  time 1h  largest {group} {name}:0 10  over the limit: {group} {name}:0" in second
    process = kops_process("groups", "lag", group, "--watch=300ms", "-o", "json", "-B", broker.bootstrap_servers)
    assert '"lag": 10' in process.stdout.readline()
    cluster.commit(group, {(name, 0): 6})
    import json

    bodies = (json.loads(line) for line in process.stdout)
    moved = next(body for body in bodies if body["lag"] == 4)
    assert moved["consumed_per_second"] > 0
    assert moved["partitions"][0]["group"] == group
    process.send_signal(signal.SIGINT)
    assert process.wait(HANG_SECONDS) == 130
    assert lag(group, "--watch", "10ms").code == 2
    assert lag(group, "--watch", "-o", "csv").code == 2


def test_watching_on_a_terminal_redraws_the_screen(group, topic, cluster, kops_process, broker):
    import os
    import pty

    name = topic("t")
    cluster.produce(name, [Record(None, b"x", now() - HOUR, partition=0) for _ in range(10)])
    cluster.commit(group, {(name, 0): 0})
    ours, theirs = pty.openpty()
    command = ("groups", "lag", group, "--by", "group", "--watch=200ms", "-B", broker.bootstrap_servers)
    process = kops_process(*command, stdout=theirs, env={**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"})
    os.close(theirs)
    seen = ""

    def shown(text):
        nonlocal seen
        seen += os.read(ours, 65536).decode()
        return text in seen

    wait_for("two looks", lambda: shown("██"))
    process.send_signal(signal.SIGINT)
    assert process.wait(HANG_SECONDS) == 130
    os.close(ours)
    assert "CONSUMED" in seen
    assert group[:20] in seen


def test_each_group_is_named_once_and_no_match_is_an_answer_of_its_own(kops, cluster, topic, group):
    name = topic(partitions=3)
    cluster.commit(group, {(name, partition): 0 for partition in range(3)})
    assert kops("groups", "lag", group, "-o", "name").ok().out == f"{group}\n"
    nothing = kops("groups", "lag", f"{group}-none*")
    assert (nothing.code, "no group matches" in nothing.err) == (1, True)

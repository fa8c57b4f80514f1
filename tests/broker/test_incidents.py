"""Incidents as they are met on call: what ``kops diagnose`` says first, and the command that it advises.

What takes minutes in reality is made by old records and a clock that is set forward: nothing waits.
"""

import shlex
import time
from datetime import timedelta

import pytest
from confluent_kafka import Producer

from kops.cli.frame.session import Session
from kops.core.models import CommittedOffset, TopicPartition
from support.connect_answers import connect_worker
from support.consumer_groups import STREAM_TIME_130, member
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams_apps import wait_for
from support.suggested import assert_taken

pytestmark = pytest.mark.broker

MINUTE, HOUR = 60_000, 3_600_000


@pytest.fixture
def records(cluster, topic):
    """Make a topic with some records in each partition, ``age_ms`` old."""

    def make(*counts, age_ms=10 * MINUTE, **options):
        name = topic("t", partitions=len(counts), **options)
        wait_for("the topic", lambda: name in cluster.topics(name))
        write(cluster, name, *counts, age_ms=age_ms)
        return name

    return make


def write(cluster, name, *counts, age_ms=10 * MINUTE):
    then = int(time.time() * 1000) - age_ms
    values = [(partition, number) for partition, count in enumerate(counts) for number in range(count)]
    cluster.produce(name, [Record(b"key", b"%d" % number, then + number, partition=partition) for partition, number in values])


@pytest.fixture
def later(monkeypatch):
    """Set the clock of kops forward."""
    now = Session.now

    def set_forward(**much):
        monkeypatch.setattr(Session, "now", lambda self: now(self) + timedelta(**much))

    return set_forward


@pytest.fixture
def diagnose(kops, broker):
    """Run ``kops diagnose`` and return its findings; every command that they suggest is one."""

    def run(*arguments, sample="300ms"):
        body = kops("diagnose", *arguments, "--sample", sample, "-o", "json").json
        for finding in body["findings"]:
            finding["commands"] = [text.removesuffix(f" -B {broker.bootstrap_servers}") for text in finding["commands"]]
            for command in finding["commands"]:
                assert_taken(command)
        return body["findings"]

    return run


def advised(findings):
    """All commands of some findings in one text."""
    return "\n".join(command for finding in findings for command in finding["commands"])


def test_a_consumer_that_commits_nothing_stops_several_partitions(diagnose, broker, cluster, group, records, later):
    name = records(9, 8, 7, 6, 5)
    cluster.commit(group, {(name, partition): partition for partition in range(5)})
    later(minutes=10)
    with member(broker.bootstrap_servers, group, name, client_id="app"):
        findings = diagnose(group)
    first = findings[0]
    assert (first["severity"], first["check"], first["subject"]) == ("critical", "not_progressing", f"group {group}")
    assert first["summary"].startswith(f"commits nothing on 5 partitions of app, {name}:0-4: 25 records unread")
    assert first["commands"][0] == f"kops groups describe {group}"
    assert "skip" not in advised(findings)


@pytest.fixture
def open_transaction(broker, unique):
    """Open a transaction in some partitions; it is aborted at the end."""
    producers = []

    def begin(name, *partitions):
        producer = Producer({**broker.client, "transactional.id": unique("ledger-writer"), "transaction.timeout.ms": 15 * MINUTE})
        producer.init_transactions(30)
        producer.begin_transaction()
        producers.append(producer)
        for partition in partitions:
            producer.produce(name, b'{"open": 7}', b"key", partition, timestamp=int(time.time() * 1000) - 9 * MINUTE)
        assert producer.flush(HANG_SECONDS) == 0

    yield begin
    for producer in producers:
        producer.abort_transaction(30)


def commit(groups, group, name, offsets):
    """Commit as consumers do: with a leader epoch."""
    groups.commit(group, {TopicPartition(name, partition): CommittedOffset(offset, "", 0) for partition, offset in offsets.items()})


@pytest.mark.parametrize("protocol", ["classic", pytest.param("consumer", marks=pytest.mark.long)])  # its members are slow to come and go
def test_a_consumer_in_a_crash_loop_stands_at_one_record(diagnose, kops, broker, cluster, groups, group, records, protocol):
    name = records(3, 9, 4)
    commit(groups, group, name, {0: 3, 1: 5, 2: 4})
    for _crash in range(3):
        with member(broker.bootstrap_servers, group, name, group_protocol=protocol):
            pass
    first = diagnose(group)[0]
    assert (first["severity"], first["check"], first["subject"]) == ("critical", "crash_loop", f"group {group}")
    assert first["summary"].startswith(f"looks like a crash loop: {name}:1 stands at offset 5 for ")
    assert "while members joined 3 times and left 3 times, the last left " in first["summary"]
    assert first["summary"].endswith(f"{name}:1 is at offset 5 (key key, value 5)")
    assert "; it is without members for moments only: stop the consumer before a skip; " in first["summary"]
    assert first["commands"] == [
        f"kops records peek {group} --topic {name}:1",
        f"kops offsets seek {group} {name}:1=skip:1 --wait-empty 1m",
    ]
    commit(groups, group, name, {1: 6, 2: 2})
    findings = diagnose(group)  # it went on: nobody has left since
    assert (findings[0]["check"], findings[0]["severity"]) == ("no_members", "warning")
    assert findings[0]["summary"].startswith("no members, the last left ")
    for _crash in range(3):
        with member(broker.bootstrap_servers, group, name, group_protocol=protocol):
            pass
    both = diagnose(group)
    assert (both[0]["check"], both[0]["facts"]["partitions"]) == ("crash_loop", [f"{name}:2", f"{name}:1"])
    assert "skip" not in advised(both)  # one of the two stops the consumer, and which one is not known


def test_a_reset_to_the_end_is_reported(diagnose, kops, broker, cluster, groups, group, records):
    name = records(60, 60, 60)
    for offset in (10, 20):
        commit(groups, group, name, dict.fromkeys(range(3), offset))
    time.sleep(0.02)
    assert "skips 120 unread offsets" in kops("offsets", "reset", group, "--topic", name, "--to-latest", "--yes").ok().err
    time.sleep(0.02)
    commit(groups, group, name, dict.fromkeys(range(2), 60))
    with member(broker.bootstrap_servers, group, name):
        first = diagnose(group)[0]
    assert (first["severity"], first["check"], first["subject"]) == ("warning", "commits_jumped", f"group {group}")
    assert first["summary"].startswith(f"commits of {name}:0-2 were moved forward by 120 offsets at ")
    assert first["summary"].endswith(", by a tool and not by reading: 120 offsets skipped unread")
    back = first["commands"][0]
    assert back.startswith(f"kops offsets reset {group} --topic {name}:0-2 --to-history @")
    assert first["commands"][1] == f"kops offsets history {group} --jumps"
    assert "commits_jumped" not in {finding["check"] for finding in diagnose(group, "--history", "0s")}
    shown = kops(*shlex.split(back)[1:], "--dry-run").ok()
    assert "DELTA" in shown.out
    assert "reads 120 offsets again" in shown.err.splitlines()
    kops(*shlex.split(back)[1:], "--yes").ok()
    assert set(cluster.committed(group).values()) == {20}
    findings = diagnose(group)
    assert "commits_jumped" not in {finding["check"] for finding in findings}, findings  # undone


def test_a_topic_recreated_under_a_group_is_reported(diagnose, kops, broker, cluster, groups, group, records):
    name = records(40, 40)
    commit(groups, group, name, {0: 40, 1: 40})
    with member(broker.bootstrap_servers, group, name):
        cluster.delete_all([name])
        wait_for("the commits to be deleted with the topic", lambda: not cluster.committed(group))
        wait_for("the topic to be gone", lambda: name not in cluster.topics(name))
        cluster.create(name, 2)
        wait_for("the topic", lambda: name in cluster.topics(name))
        write(cluster, name, 30, 20)
        findings = diagnose(group)
    first = findings[0]
    assert (first["severity"], first["check"], first["subject"]) == ("warning", "commits_deleted", f"group {group}")
    assert first["summary"].startswith(f"commits of {name}:0-1 were deleted at ")
    assert ": the topic was recreated, its " in first["summary"]
    assert "50 records unread" in first["summary"]
    assert first["commands"] == [
        f"kops offsets reset {group} --topic {name}:0-1 --to-earliest --wait-empty 1m",
        f"kops offsets history {group} --topic {name}:0-1",
    ]


def test_readers_that_wait_for_an_open_transaction_are_reported(diagnose, kops, broker, cluster, group, records, open_transaction, later):
    name = records(6, 5, 4)
    cluster.commit(group, {(name, 0): 6, (name, 1): 5, (name, 2): 4})
    open_transaction(name, 0, 1, 2)
    write(cluster, name, 3, 2, 1)
    with member(broker.bootstrap_servers, group, name):
        findings = diagnose(group)
        reason, first = findings[:2]
        assert (reason["severity"], reason["check"], first["follows"]) == ("critical", "open_transaction", [f"{name}:0-2"])
        assert (first["severity"], first["check"], first["subject"]) == ("critical", "waits_for_transaction", f"group {group}")
        assert (first["facts"]["partitions"], first["facts"]["start_offset"]) == ([f"{name}:{number}" for number in range(3)], 6)
        assert f"waits on {name}:0-2 for an open transaction: 9 records unread" in first["summary"]
        assert first["commands"][0] == f"kops groups lag {group} --isolation read_committed"
        (named,) = [finding for finding in findings if finding["check"] == "open_transaction"]
        assert named["facts"]["start_offset"] == 6
        assert named["facts"]["transactional_id"] in first["summary"]
        assert "skip" not in advised(findings)
        (soon,) = [finding for finding in diagnose(group, sample="0s") if finding["check"] == "waits_for_transaction"]
        assert soon["facts"]["lag"] == 9
        later(minutes=20)
        (overdue,) = [finding for finding in diagnose(group, sample="0s") if finding["check"] == "open_transaction"]
        assert ", longer than its time-out, " in overdue["summary"]
    skipping = kops("offsets", "seek", group, f"{name}:0=skip:1", "--dry-run")
    assert (skipping.code, f"before the open transaction of {named['facts']['transactional_id']} at 6" in skipping.err) == (5, True)
    for position in (f"{name}:0=+2", f"{name}:0=end"):
        plan = kops("offsets", "seek", group, position, "--dry-run", "-o", "json").ok().json
        (warning,) = plan["warnings"]
        assert f"lies past the open transaction of {named['facts']['transactional_id']} at 6" in warning
    assert kops("offsets", "seek", group, f"{name}:0=4", "--dry-run", "-o", "json").ok().json["warnings"] == []
    several = ("offsets", "reset", group, f"{group}-2", "--new-group", "--topic", name, "--to-latest", "--dry-run", "-o", "json")
    warnings = kops(*several).ok().json["warnings"]
    assert [text.partition(": ")[0] for text in warnings if "lies past the open transaction" in text] == [f"{name}:{at}" for at in range(3)]


def test_a_reader_that_stopped_before_an_open_transaction_is_not_told_to_skip(
    diagnose, broker, cluster, group, records, open_transaction, later
):
    name = records(6, 4)
    cluster.commit(group, {(name, 0): 2, (name, 1): 4})
    open_transaction(name, 0)
    later(minutes=10)
    with member(broker.bootstrap_servers, group, name):
        findings = diagnose(group)
    first = findings[0]
    assert (first["check"], first["commands"]) == ("stuck_partitions", [f"kops records peek {group} --topic {name}:0"])
    assert "has a transaction open there from offset 6 on" in first["summary"]
    assert "skip" not in advised(findings)


def test_unread_records_that_are_about_to_expire_are_reported(diagnose, kops, cluster, group, records):
    name = records(50, age_ms=HOUR, config={"retention.ms": str(HOUR + 5 * MINUTE)})
    cluster.commit(group, {(name, 0): 10})
    first = diagnose(group)[0]
    assert (first["severity"], first["check"]) == ("critical", "expiring_unread")
    assert first["summary"].startswith(f"40 unread records of {name}:0 will be deleted before being read, the first in ")
    assert first["commands"] == [f"kops topics alter {name} --config retention.ms={26 * HOUR}"]  # a day more than it needs, in full hours
    kops(*shlex.split(first["commands"][0])[1:], "--yes").ok()
    assert "expiring_unread" not in {finding["check"] for finding in diagnose(group)}


def test_a_hot_partition_is_what_a_group_is_behind_on(diagnose, broker, cluster, group, records):
    name = records(4, 4, 192, age_ms=5 * MINUTE)
    cluster.commit(group, {(name, 0): 4, (name, 1): 4, (name, 2): 20})
    with member(broker.bootstrap_servers, group, name):
        first = diagnose(group, sample="0s")[0]
    assert (first["severity"], first["check"], first["facts"]["partitions"]) == ("warning", "behind", [f"{name}:2"])
    assert f"; {name}:2 gets 96% of the new records of {name} (last 10m): a hot key, or the partitioner" in first["summary"]
    assert (first["facts"]["skew"], first["commands"]) == ({f"{name}:2": 0.96}, [f"kops groups lag {group}"])


def test_a_deleted_changelog_is_reported(diagnose, kops, cluster, groups, group, records):
    name, changelog = records(5), f"{group}-totals-changelog"
    groups.commit(group, {TopicPartition(name, 0): CommittedOffset(5, STREAM_TIME_130, 0)})
    kops("topics", "create", changelog, "--partitions", "1", "--yes").ok()
    assert diagnose(group) == []
    cluster.delete_all([changelog])
    wait_for("the changelog to be gone", lambda: changelog not in cluster.topics(changelog))
    first = diagnose(group)[0]
    assert (first["severity"], first["check"], first["subject"]) == ("critical", "missing_internal_topics", f"group {group}")
    assert first["summary"].startswith(f"internal topics are missing: {changelog} (kops' journal has it (")
    assert "`kops state rebuild FILE --write replace -B " in first["summary"]
    assert (first["commands"], first["facts"]["topics"]) == ([f"kops streams describe {group}"], [changelog])
    kops("topics", "create", changelog, "--partitions", "1", "--yes").ok()
    kops("topics", "delete", changelog, "--confirm", changelog).ok()
    first = diagnose(group)[0]
    assert (first["severity"], first["check"]) == ("warning", "missing_internal_topics")
    assert first["summary"].startswith(f"internal topics seem to be missing: {changelog} (kops deleted it: `kops undo ")


@pytest.mark.parametrize(
    ("cause", "command"),
    [
        ("java.nio.file.NoSuchFileException: /no/such/orders.txt", "kops connect alter {sink} --config file=VALUE"),
        ("org.apache.kafka.connect.errors.DataException: not JSON", "kops records peek connect-{sink}"),
        ("org.apache.kafka.common.errors.TimeoutException: no leader", "kops connect restart {sink} --failed"),
    ],
)
def test_a_connector_whose_task_failed_is_reported(diagnose, kops, cluster, records, unique, monkeypatch, cause, command):
    name, sink = records(3), unique("orders-archive")
    trace = f"org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask\n\tat x\nCaused by: {cause}"
    status = {
        "name": sink,
        "type": "sink",
        "connector": {"state": "RUNNING", "worker_id": "w:1"},
        "tasks": [{"id": 0, "state": "FAILED", "worker_id": "w:1", "trace": trace}],
    }
    config = {"topics": name, "file": "/no/such/orders.txt"}
    with connect_worker({sink: {"status": status, "info": {"config": config}}}) as url:
        monkeypatch.setenv("KOPS_CONNECT_URLS", url)
        for named in (sink, f"{sink[:-1]}*", name):
            first = diagnose(named)[0]
            assert (first["severity"], first["check"], first["subject"]) == ("critical", "tasks_failed", f"connector {sink}")
            assert first["summary"] == f"1 of 1 task failed: {cause}"
            assert first["commands"][0] == command.format(sink=sink)
        unknown = kops("diagnose", f"{sink}x")
    assert (unknown.code, f"there is no group, no topic and no connector {sink}x" in unknown.err) == (1, True)
    assert f"did you mean {sink}" in unknown.err


def test_what_kops_keeps_for_itself_is_nobodys_trouble(diagnose, kops, cluster, groups, records, unique):
    name = records(9)
    own, other = f"kops-redrive-{name}", unique("other")
    try:
        for group in (own, other):
            cluster.commit(group, {(name, 0): 3})
        for found in (diagnose(), diagnose(name), diagnose("*")):
            assert f"group {own}" not in {finding["subject"] for finding in found}
        assert "no_members" in {finding["check"] for finding in diagnose(name) if finding["subject"] == f"group {other}"}
        assert {finding["subject"] for finding in diagnose(own)} == {f"group {own}"}  # unless it is asked for

        def named(*arguments):
            return {row["group"] for row in kops(*arguments, "-o", "json").ok().json}

        assert own not in named("groups", "lag", "*")
        assert own in named("groups", "lag", "kops-redrive-*")
        assert own not in named("groups", "list")
        assert own in named("groups", "list", "--all")
        kops("offsets", "reset", "--all-groups", "--topic", name, "--to-latest", "--yes").ok()
        assert (cluster.committed(own)[name, 0], cluster.committed(other)[name, 0]) == (3, 9)
    finally:
        groups.delete([own, other])

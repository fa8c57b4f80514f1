"""Every reset strategy, partition by partition, against Apache's own tool; and its CSV in both directions."""

import time
from dataclasses import dataclass

import pytest
from confluent_kafka import Producer

from support.apache_tools import GROUPS, ApacheTools
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams_apps import Cluster, wait_for

pytestmark = pytest.mark.broker

HOUR = 3_600_000
DAY = 24 * HOUR


@dataclass(frozen=True)
class World:
    cluster: Cluster
    apache: ApacheTools
    group: str
    one: str
    two: str
    gaps: str


def records(partition, timestamps):
    return [Record(None, b"x", timestamp, partition=partition) for timestamp in timestamps]


@pytest.fixture(scope="module")
def world(broker, apache):
    """Partitions: plain, empty, trimmed, out of order, recent; commits: inside, at 0, below the log start, past the end, none."""
    import uuid

    name = f"apache-{uuid.uuid4().hex[:8]}"
    cluster, now = Cluster(broker.bootstrap_servers), int(time.time() * 1000)
    one, two = f"{name}-a-long-enough-topic-name", f"{name}-2"
    gaps = f"{name}-gaps"
    _make_gaps(cluster, gaps)
    cluster.create(one, 6)
    cluster.create(two, 2)
    cluster.produce_all(
        {
            one: [
                *records(0, range(1_000_000_000_000, 1_000_000_000_000 + 10 * HOUR, HOUR)),
                *records(2, range(1_000_000_000_000, 1_000_000_000_000 + 10 * HOUR, HOUR)),
                *records(3, [1_000_000_000_000, 1_000_050_000_000, 1_000_000_000_001, 1_000_020_000_000]),
                *records(4, [now - 40 * DAY, now - 2 * DAY, now - 2 * HOUR, now - 60_000]),
                *records(5, [1_000_000_000_000] * 3),
            ],
            two: [*records(0, [1_000_000_000_000] * 5), *records(1, [1_000_000_000_000] * 5)],
        }
    )
    cluster.trim(one, {2: 4})
    cluster.trim(two, {0: 5})
    cluster.commit(name, {(one, 0): 5, (one, 1): 0, (one, 2): 2, (one, 3): 99, (one, 4): 1, (two, 0): 3, (two, 1): 2})
    yield World(cluster, apache, name, one, two, gaps)
    for gone in cluster.admin.delete_consumer_groups([name, gaps]).values():
        gone.result(HANG_SECONDS)
    cluster.delete_all([one, two, gaps])


def _make_gaps(cluster, topic):
    """Partition 0 is about to be compacted, 1 has committed, aborted and open transactions; a group of the topic's name stands in both."""
    eager = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    cluster.create(topic, 2, eager)
    plain = Producer({"bootstrap.servers": cluster.servers})
    for at in range(10):  # a batch each, an hour apart, so that each rolls the segment: the cleaner leaves the last one alone
        plain.produce(topic, b"x", b"ab"[at % 2 :][:1], partition=0, timestamp=1_000_000_000_000 + at * HOUR)
        plain.flush(HANG_SECONDS)
    producer = Producer({"bootstrap.servers": cluster.servers, "transactional.id": topic})
    producer.init_transactions(30)
    for at, end in enumerate((producer.commit_transaction, producer.abort_transaction, producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, b"x", b"k", partition=1, timestamp=1_000_000_000_000 + at * HOUR)
        producer.flush(HANG_SECONDS)
        end(30)
    cluster.settle(topic)
    cluster.commit(topic, {(topic, 0): 6, (topic, 1): 2})


@pytest.fixture(scope="module")
def compacted(world):
    """Wait until the cleaner is through with the gaps: a later round of it would change what a time leads to between two tools' answers."""

    def through():
        return [record.offset for record in world.cluster.read(world.gaps) if record.partition == 0] == [7, 8, 9]

    wait_for("the log to be compacted", through)


STRATEGIES = [
    ["--to-earliest"],
    ["--to-latest"],
    ["--to-current"],
    ["--to-offset", "0"],
    ["--to-offset", "5"],
    ["--to-offset", "9999"],
    ["--shift-by", "2"],
    ["--shift-by", "-1"],
    ["--shift-by", "-100"],
    ["--shift-by", "100"],
    ["--shift-by", "0"],
    ["--to-datetime", "1999-01-01T00:00:00.000"],
    ["--to-datetime", "2001-09-09T01:46:40.000"],
    ["--to-datetime", "2001-09-09T05:00:00.123"],
    ["--to-datetime", "2001-09-09T05:00:00.000+02"],
    ["--to-datetime", "2001-09-09T05:00:00.000-07:00"],
    ["--to-datetime", "2001-09-09T08:00:00.000Z"],
    ["--to-datetime", "2099-01-01T00:00:00.000"],
    ["--by-duration", "PT10M"],
    ["--by-duration", "PT6H"],
    ["--by-duration", "P30D"],
    ["--by-duration", "P1DT1H1M1.5S"],
    ["--by-duration", "PT0S"],
    ["--by-duration", "-PT5M"],
]


def planned(run_kops, world, *arguments):
    plan = run_kops("offsets", "reset", world.group, *arguments, "-n", "-o", "json", "-B", world.cluster.servers).ok().json
    return {item["target"]: item["after"] for item in plan["items"]}


def apache(world, *arguments):
    return {str(row.partition): row.offset for row in world.apache.reset(world.group, *arguments)}


@pytest.mark.parametrize("strategy", STRATEGIES, ids=" ".join)
def test_all_topics_go_where_apache_sends_them(run_kops, world, strategy):
    expected = apache(world, "--all-topics", *strategy)
    assert len(expected) == 7
    assert planned(run_kops, world, "--all-topics", *strategy) == expected


@pytest.mark.parametrize("strategy", [["--to-current"], ["--to-latest"], ["--to-offset", "3"]], ids=" ".join)
def test_chosen_topics_and_partitions_go_where_apache_sends_them(run_kops, world, strategy):
    scope = ["--topic", f"{world.one}:1,5", "--topic", world.two]
    expected = apache(world, *scope, *strategy)
    assert len(expected) == 4
    assert planned(run_kops, world, *scope, *strategy) == expected


GAPS = [
    ["--to-earliest"],
    ["--to-latest"],
    ["--to-current"],
    ["--to-offset", "3"],
    ["--shift-by", "1"],
    ["--shift-by", "-3"],
    ["--shift-by", "-7"],
    ["--to-datetime", "1999-01-01T00:00:00.000"],
    ["--to-datetime", "2001-09-09T02:46:39.999"],
    ["--to-datetime", "2001-09-09T04:30:00.000"],
    ["--to-datetime", "2099-01-01T00:00:00.000"],
]


def test_a_shift_without_a_commit_is_refused_as_apache_does(run_kops, world):
    refused = run_kops("offsets", "reset", world.group, "--topic", world.one, "--shift-by", "1", "-n", "-B", world.cluster.servers)
    assert refused.code == 2
    assert f"{world.one}:5: there is no committed offset to shift from" in refused.err
    shifted = world.apache.run("--reset-offsets", "--group", world.group, "--topic", world.one, "--shift-by", "1", "--dry-run", GROUPS)
    assert "Cannot shift offset" in shifted


def test_a_file_of_apache_goes_where_apache_sends_it(run_kops, world, tmp_path):
    file = tmp_path / "plan.csv"
    printed = world.apache.export("--group", world.group, "--all-topics", "--to-offset", "4", "--dry-run")
    file.write_text(printed + f"{world.one},5,77\n", encoding="utf-8")
    expected = apache(world, "--from-file", str(file))
    assert expected[f"{world.one}:5"] == 3
    assert planned(run_kops, world, "--from-file", file) == expected
    narrowed = planned(run_kops, world, "--from-file", file, "--topic", f"{world.one}:0,5")
    assert narrowed == {target: offset for target, offset in expected.items() if target in (f"{world.one}:0", f"{world.one}:5")}


def test_exports_are_byte_for_byte_those_of_apache(run_kops, world):
    exported = run_kops("offsets", "export", world.group, "-B", world.cluster.servers).ok().out
    printed = world.apache.export("--group", world.group, "--all-topics", "--to-current", "--dry-run")
    assert sorted(exported.splitlines()) == sorted(printed.splitlines())


@pytest.mark.parametrize(
    "odd", ["plain", "with space", 'quote"d', "com,ma", "back\\slash", "ünïcode", "#hash", "x" * 24, "x" * 25, "a'b", " lead"]
)
def test_exports_of_several_groups_name_them_as_apache_does(run_kops, world, odd):
    group = f"{world.group}{odd}" if not odd.startswith(" ") else f"{odd}{world.group}"
    world.cluster.commit(group, {(world.two, 1): 1})
    try:
        exported = run_kops("offsets", "export", group, world.group, "-B", world.cluster.servers).ok().out
        flags = ["--group", group, "--group", world.group]
        printed = world.apache.export(*flags, "--all-topics", "--to-current", "--dry-run")
        assert sorted(exported.splitlines()) == sorted(printed.splitlines())
    finally:
        world.cluster.admin.delete_consumer_groups([group])[group].result(HANG_SECONDS)


def test_apache_takes_the_exports_back(run_kops, world, tmp_path):
    group, file = f"{world.group}-round-trip", tmp_path / "exported.csv"
    world.cluster.commit(group, {(world.one, 0): 1, (world.two, 1): 1})
    try:
        file.write_text(run_kops("offsets", "export", group, "-B", world.cluster.servers).ok().out, encoding="utf-8")
        world.cluster.commit(group, {(world.one, 0): 9, (world.two, 1): 4})
        world.apache.reset(group, "--from-file", str(file), execute=True)
        assert world.cluster.committed(group) == {(world.one, 0): 1, (world.two, 1): 1}
        exported = run_kops("offsets", "export", group, "-o", "json", "-B", world.cluster.servers).ok().out
        file.write_text(exported, encoding="utf-8")
        world.cluster.commit(group, {(world.one, 0): 9, (world.two, 1): 4})
        run_kops("offsets", "reset", "--group", group, "--from-file", file, "--execute", "--yes", "-B", world.cluster.servers).ok()
        assert world.cluster.committed(group) == {(world.one, 0): 1, (world.two, 1): 1}
    finally:
        world.cluster.admin.delete_consumer_groups([group])[group].result(HANG_SECONDS)


@pytest.mark.parametrize("strategy", [["--to-earliest"], ["--shift-by", "-1"], ["--to-datetime", "2001-09-09T05:00:00.123"]], ids=" ".join)
def test_many_groups_go_where_apache_sends_each(run_kops, world, compacted, strategy):
    expected = {}
    for group in (world.group, world.gaps):
        rows = world.apache.reset(group, "--all-topics", *strategy)
        expected |= {f"{group} {row.partition}": row.offset for row in rows}
    command = ["offsets", "reset", f"{world.group}*", "--all-topics", *strategy, "-n", "-o", "json", "-B", world.cluster.servers]
    plan = run_kops(*command).ok().json
    assert {item["target"]: item["after"] for item in plan["items"]} == expected


def test_a_log_with_gaps_goes_where_apache_sends_it(run_kops, world, compacted):
    for strategy in GAPS:
        expected = {str(row.partition): row.offset for row in world.apache.reset(world.gaps, "--all-topics", *strategy)}
        assert len(expected) == 2
        plan = (
            run_kops("offsets", "reset", world.gaps, "--all-topics", *strategy, "-n", "-o", "json", "-B", world.cluster.servers).ok().json
        )
        assert {item["target"]: item["after"] for item in plan["items"]} == expected, strategy

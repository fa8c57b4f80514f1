"""Three brokers: replicas, and a cluster that stays when one of them goes; and what an operator sees of that."""

import contextlib
import re

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from kops.core import models
from kops.gateways.kafka import Kafka
from kops.sandbox import cluster
from support.apache_tools import ApacheTools
from support.command_line import in_time
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams_apps import Cluster, wait_for
from support.suggested import assert_taken

pytestmark = pytest.mark.broker


def setting(admin: AdminClient, topic: str, name: str) -> str | None:
    """Return a topic's setting; None while the broker that was asked does not know the topic yet."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    try:
        return admin.describe_configs([resource])[resource].result(HANG_SECONDS)[name].value
    except KafkaException:
        return None


@pytest.fixture(scope="module")
def three(own_brokers):
    """Three brokers, which each test leaves running."""
    return own_brokers(brokers=3)


def test_one_of_three_brokers_may_die_and_return(three):
    own = three
    admin = AdminClient(own.client)
    assert sorted(admin.list_topics(timeout=HANG_SECONDS).brokers) == [1, 2, 3]
    admin.create_topics([NewTopic("orders", 3, config={})])["orders"].result(HANG_SECONDS)

    def all_in_sync():
        found = admin.list_topics("orders", timeout=HANG_SECONDS).topics["orders"].partitions
        return {len(partition.isrs) for partition in found.values()} == {3}

    wait_for("all replicas to be in sync", all_in_sync)
    wait_for("the setting", lambda: setting(admin, "orders", "min.insync.replicas") == "2")

    own.kill(2)
    states = cluster.status(own.sandbox)
    assert (states.state, [node.state for node in states.of("broker")]) == ("degraded", ["running", "crashed", "running"])
    producer = Producer({**own.client, "acks": "all"})
    for partition in range(3):
        producer.produce("orders", b"value", partition=partition)
    assert producer.flush(HANG_SECONDS) == 0

    own.start(2)
    assert cluster.status(own.sandbox).state == "running"
    wait_for("all replicas to be in sync", all_in_sync)


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_health_reports_broker_that_is_down(three, run_kops, unique, ending):
    """Health, lag and diagnosis while a broker is down; nothing that needs it may keep the other commands from working."""

    def kops(*arguments):
        return run_kops(*arguments, "-B", three.bootstrap_servers, "-o", "json")

    def checks(*arguments):
        done = kops(*arguments)
        for command in (command for found in done.json["findings"] for command in found["commands"]):
            assert_taken(command)
        return done.code, {found["check"]: (found["severity"], found["facts"]) for found in done.json["findings"]}

    def healthy():
        return all(severity == "note" for severity, _ in checks("cluster", "health")[1].values())

    admin = AdminClient(three.client)
    safe, narrow, single, group = unique("safe"), unique("narrow"), unique("single"), unique("g")
    settings = {"min.insync.replicas": "2"}
    new = [NewTopic(safe, 3, 3, config=settings), NewTopic(narrow, 3, 2, config=settings)]
    new.append(NewTopic(single, 3, 1, config={"min.insync.replicas": "1"}))
    for future in admin.create_topics(new).values():
        future.result(HANG_SECONDS)
    producer = Producer(three.client)
    for number in range(30):
        for topic in (safe, single):
            producer.produce(topic, b"value", partition=number % 3)
    assert producer.flush(HANG_SECONDS) == 0
    consumer = Consumer({**three.client, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, number, 4) for topic in (safe, single) for number in range(3)], asynchronous=False)
    consumer.close()
    wait_for("health", healthy)
    on_two = {
        topic: [part["partition"] for part in kops("topics", "describe", topic).json[0]["partitions"] if 2 in part["replicas"]]
        for topic in (safe, narrow, single)
    }
    places = {topic: [f"{topic}:{number}" for number in numbers] for topic, numbers in on_two.items()}

    getattr(three, ending)(2)
    # At once, while the others may not have noticed: everything answers.
    for arguments in (("topics", "list"), ("groups", "list"), ("groups", "lag", group), ("cluster", "describe"), ("cluster", "brokers")):
        assert kops(*arguments).code in (0, 6), arguments
    assert kops("cluster", "health").code == 1
    wait_for("the partitions to be reported", lambda: "offline_partitions" in checks("cluster", "health")[1])
    if ending == "stop":  # its controllers take ten seconds to be called silent: once is enough
        wait_for("the controller to be reported", lambda: "controller_silent" in checks("cluster", "health")[1])
    code, found = checks("cluster", "health")
    assert code == 1
    severity, facts = found["offline_partitions"]
    assert (severity, facts["partitions"]) == ("critical", places[single])
    assert facts["eligible_leaders"] in ({}, {place: [2] for place in places[single]})  # by then it is out of the ISR, or still in it
    assert set(places[narrow]) <= set(found["under_min_isr"][1]["partitions"])
    assert found["under_min_isr"][0] == "critical"
    assert set(places[safe]) <= set(found["at_min_isr"][1]["partitions"])
    thin = found["under_replicated"][1]
    assert {*places[safe], *places[narrow], *places[single]} <= set(thin["partitions"])
    assert thin["brokers"] == [2]
    assert found["broker_missing"][1]["broker"] == 2
    assert found["controller_silent"][1] == {"controllers": [2]} if ending == "stop" else True
    counts = kops("cluster", "health").json
    assert (counts["brokers"], counts["offline"], counts["healthy"]) == (2, len(places[single]), False)

    lag = {(row["topic"], row["partition"]): row["lag"] for row in kops("groups", "lag", group).json}
    assert lag == {
        (topic, number): None if topic == single and number in on_two[single] else 6 for topic in (safe, single) for number in range(3)
    }
    code, found = checks("diagnose", group, "--sample", "0s")
    assert code == 1
    assert found["offline_partitions"][1]["partitions"] == places[single]
    assert set(places[safe]) <= set(found["under_replicated"][1]["partitions"])
    assert f"{narrow}:{on_two[narrow][0]}" not in found["under_replicated"][1]["partitions"]  # that topic is not one of the group's
    rows = {row["id"]: row for row in kops("cluster", "brokers").json}
    assert (rows[2]["in_service"], rows[2]["leaders"], rows[2]["log_dirs"]) == (False, 0, [])
    assert rows[2]["out_of_sync_replicas"] == rows[2]["replicas"]

    three.start(2)
    wait_for("health", healthy)
    assert kops("groups", "lag", group).ok()
    kops("topics", "delete", safe, narrow, single, "--confirm", "3 topics").ok()


def test_topics_of_three_brokers_and_of_two(three, run_kops, unique, monkeypatch):
    monkeypatch.setenv("KOPS_BOOTSTRAP_SERVERS", three.bootstrap_servers)
    name = unique()
    one = run_kops("topics", "create", "one", "--replication-factor", "1", "--dry-run", "-o", "json").ok().json
    assert any("replication factor 1 on a cluster of 3 brokers" in warning for warning in one["warnings"])
    strict = ("--replication-factor", "3", "--config", "min.insync.replicas=3", "-o", "json")
    warnings = run_kops("topics", "create", name, *strict, "--dry-run").ok().json["warnings"]
    assert warnings == [
        f"{name}: min.insync.replicas 3 equals the replication factor: producers with acks=all stop as soon as one broker is down"
    ]
    result = run_kops("topics", "create", name, *strict, "--yes").ok().json
    assert result["items"][0]["value"]["replication_factor"] == 3

    def under_replicated():
        return run_kops("topics", "list", name, "-o", "json").ok().json[0]["under_replicated"]

    three.kill(3)
    wait_for("under-replicated partitions", under_replicated)
    assert under_replicated() == 1
    assert "UNDER-REPLICATED" in run_kops("topics", "list").ok().out
    described = run_kops("topics", "describe", name).ok()
    assert "1 under-replicated" in described.out
    assert "sizes are not whole" in described.err
    sizes = run_kops("topics", "describe", name, "-o", "json").ok().json[0]
    assert {size["broker"] for size in sizes["replica_sizes"]} == {1, 2}
    assert sizes["replicas_size_bytes"] is None
    three.start(3)
    wait_for("all replicas to be in sync", lambda: under_replicated() == 0)
    run_kops("topics", "delete", name, "--confirm", name).ok()


def test_lag_on_leaderless_partitions_is_unknown(three, run_kops, unique):
    there, admin = Cluster(three.bootstrap_servers), AdminClient(three.client)
    single, safe, group = unique("single"), unique("safe"), unique("g")
    for name, replicas in ((single, 1), (safe, 3)):
        new = NewTopic(name, num_partitions=3, replication_factor=replicas)
        admin.create_topics([new], operation_timeout=HANG_SECONDS)[name].result(HANG_SECONDS)
        wait_for("the topic", lambda name=name: name in there.topics(name))
        there.produce(name, [Record(None, b"x", 1_000_000, partition=partition) for partition in range(3)])
    there.commit(group, {(name, partition): 0 for name in (single, safe) for partition in range(3)})

    def lag(seconds=6):
        return run_kops("groups", "lag", group, "-B", three.bootstrap_servers, "--timeout", seconds, "-o", "json")

    assert [row["lag"] for row in in_time(lag, 6).ok().json] == [1] * 6
    victim = admin.list_topics(timeout=HANG_SECONDS).topics[single].partitions[0].leader
    three.kill(victim)
    wait_for(
        "another leader", lambda: all(p.leader != victim for p in admin.list_topics(timeout=HANG_SECONDS).topics[safe].partitions.values())
    )
    looks = []

    def partly_known():
        looks.append(lag())
        return looks[-1].code == 6 and all(row["lag"] == 1 for row in looks[-1].json if row["topic"] == safe)

    wait_for("the lag", partly_known)  # each broker hears of it in its own time
    degraded = looks[-1]
    rows = {(row["topic"], row["partition"]): row for row in degraded.json}
    assert [rows[safe, partition]["lag"] for partition in range(3)] == [1, 1, 1]
    assert [rows[single, partition]["lag"] for partition in (1, 2)] == [1, 1]
    lost = rows[single, 0]
    assert (lost["committed"], lost["lag"], lost["log_end_offset"]) == (0, None, None)
    assert "could not" in lost["note"]
    assert f"warning: topic {single}: could not" in degraded.err
    three.start(victim)
    wait_for("the lag to be known", lambda: lag().code == 0)
    assert Kafka(three.connection).groups.committed([group])[group][models.TopicPartition(single, 0)] == models.CommittedOffset(0)
    there.delete(single, safe)


def test_offsets_are_asked_of_leaders_that_have_moved(three, unique):
    """The first replica leads when it is in sync: their order is changed and leaders are elected, before what a client knows is old."""
    from kafka import KafkaAdminClient
    from kafka import TopicPartition as Place

    there, kafka, name = Cluster(three.bootstrap_servers), Kafka(three.connection), unique("t")
    there.admin.create_topics([NewTopic(name, 3, 3)], operation_timeout=HANG_SECONDS)[name].result(HANG_SECONDS)
    there.produce(name, [Record(None, b"x", 1_000_000, partition=number % 3) for number in range(12)])
    there.trim(name, {0: 1})
    expected = {models.TopicPartition(name, number): models.Bounds(*bounds) for number, bounds in there.ends(name).items()}
    assert expected[models.TopicPartition(name, 0)] == models.Bounds(1, 4)
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=there.servers.split(","))) as admin:
        for turn in range(4):
            assert kafka.offsets.bounds(expected) == expected
            before = [p.leader for p in there.admin.list_topics(timeout=HANG_SECONDS).topics[name].partitions.values()]
            order = {number: [(number + turn + place) % 3 + 1 for place in range(3)] for number in range(3)}
            admin.alter_partition_reassignments({Place(name, number): brokers for number, brokers in order.items()})
            admin.elect_leaders(0, {name: [0, 1, 2]}, raise_errors=False)
            assert kafka.offsets.bounds(expected) == expected
            assert kafka.offsets.at_time(expected, 2_000_000) == dict.fromkeys(expected)
            assert turn == 0 or before != [p.leader for p in there.admin.list_topics(timeout=HANG_SECONDS).topics[name].partitions.values()]
    there.delete(name)


def test_a_controller_that_is_a_broker_too_leaves_the_quorum_and_undo_brings_it_back(three, run_kops):
    """Apache's tool says who votes. Last of all: ``kraft.version`` is never lowered."""
    servers = ("-B", three.bootstrap_servers)

    def voters():
        printed = apache.run("describe", "--replication", "org.apache.kafka.tools.MetadataQuorumCommand")
        return {int(number) for number in re.findall(r"^(\d+)\s.*(?:Leader|Follower)\s*$", printed, re.MULTILINE)}

    with ApacheTools(three.bootstrap_servers) as apache:
        run_kops("cluster", "features", "upgrade", "kraft.version=1", "--confirm", "kraft.version", *servers).ok()
        assert voters() == {1, 2, 3}
        removed = run_kops("cluster", "quorum", "remove", "3", "--confirm", "3", "-o", "json", *servers).ok().json
        assert voters() == {1, 2}
        run_kops("undo", removed["journal_id"], "--confirm", "3", *servers).ok()
        assert voters() == {1, 2, 3}

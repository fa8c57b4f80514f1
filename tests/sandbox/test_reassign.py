"""Replicas that are moved on three real brokers in racks: Apache's tools say where they are, and that nothing of a throttle is left."""

import json
import signal

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from kops.core.models import TopicPartition
from kops.core.replicas.reassignment import RATES, THROTTLED
from kops.gateways.kafka import Kafka
from support.apache_tools import ApacheTools
from support.json_keys import as_pinned, keys_of
from support.patience import HANG_SECONDS
from support.streams_apps import wait_for

pytestmark = pytest.mark.broker
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
MEGABYTE = b"x" * 10_000


@pytest.fixture(scope="module")
def three(own_brokers):
    return own_brokers(brokers=3, racks=True)


@pytest.fixture(scope="module")
def apache(three):
    with ApacheTools(three.bootstrap_servers) as tools:
        yield tools


@pytest.fixture
def kops(three, run_kops):
    return lambda *arguments: run_kops(*arguments, "-B", three.bootstrap_servers)


@pytest.fixture
def topic(three, unique):
    """Make a topic with a given number of bytes in each of its partitions, on some brokers only."""
    admin, made = AdminClient(three.client), []

    def make(replicas, *, kilobytes=10, config=None):
        name = unique("moved")
        assignment = {"min.insync.replicas": "1", **(config or {})}
        new = NewTopic(name, len(replicas), replica_assignment=[list(each) for each in replicas], config=assignment)
        admin.create_topics([new])[name].result(HANG_SECONDS)
        made.append(name)
        producer = Producer({**three.client, "compression.type": "none"})
        for number in range(len(replicas)):
            for _ in range(kilobytes // 10):
                producer.produce(name, MEGABYTE, partition=number)
                producer.poll(0)
        assert producer.flush(HANG_SECONDS) == 0
        return name

    yield make
    for future in admin.delete_topics(made).values() if made else ():
        future.result(HANG_SECONDS)


@pytest.fixture
def placed(three):
    """Return the replicas of a topic, by a client that is not kops'."""
    admin = AdminClient(three.client)

    def look(name):
        found = admin.list_topics(name, timeout=HANG_SECONDS).topics[name].partitions
        return [list(part.replicas) for _, part in sorted(found.items())]

    return look


def throttles(three, *topics):
    """Return what is left of a throttle on brokers and topics."""
    admin = AdminClient(three.client)
    wanted = [ConfigResource(ResourceType.BROKER, str(broker)) for broker in (1, 2, 3)]
    wanted += [ConfigResource(ResourceType.TOPIC, name) for name in topics]
    found = {}
    for resource in wanted:  # each broker is asked for its own
        for key, entry in admin.describe_configs([resource])[resource].result(HANG_SECONDS).items():
            if key in (*RATES, *THROTTLED) and entry.value and not entry.is_default:
                found[resource.name, key] = entry.value
    return found


def verified(apache, tmp_path, name, replicas):
    """Return what ``kafka-reassign-partitions --verify`` prints about where replicas should be."""
    file = tmp_path / "expected.json"
    parts = [{"topic": name, "partition": number, "replicas": each} for number, each in enumerate(replicas)]
    file.write_text(json.dumps({"version": 1, "partitions": parts}))
    return apache.run("--verify", "--preserve-throttles", "--reassignment-json-file", str(file), REASSIGN)


def test_replicas_are_added_in_other_racks_with_a_throttle_and_taken_back(three, kops, apache, topic, placed, tmp_path):
    name = topic([(1,), (1,), (2,)], kilobytes=200)
    planned = kops("topics", "reassign", name, "--replication-factor", 3, "--throttle", "1MB", "--dry-run", "-o", "json").ok().json
    assert placed(name) == [[1], [1], [2]]
    moved = {each["broker"]: each["receives_bytes"] for each in planned["arguments"]["brokers"]}
    assert moved.keys() == {1, 2, 3}
    assert moved[3] > 3 * 200_000 > moved[2] > 2 * 200_000 > moved[1] > 200_000
    done = kops("topics", "reassign", name, "--replication-factor", 3, "--throttle", "1MB", "--yes", "-o", "json").ok()
    assert [sorted(replicas) for replicas in placed(name)] == [[1, 2, 3]] * 3
    assert verified(apache, tmp_path, name, placed(name)).count("is completed") == 3
    assert throttles(three, name) == {}
    assert keys_of(done.out) == {"items[].status", "items[].target", "items[].value", "journal_id", "status", "version"}
    kops("undo", "last", "--yes").ok()
    assert placed(name) == [[1], [1], [2]]
    assert throttles(three, name) == {}
    again = kops("topics", "reassign", name, "--to-brokers", "1,2", "--yes").ok()
    assert "nothing has to move" in again.err


def test_killed_in_the_middle_and_finished(three, kops, kops_process, topic, placed, unique):
    name = topic([(1,), (2,)], kilobytes=3_000)
    other = topic([(1,)])
    limited = ("--throttle", "500KB", "--yes", "-B", three.bootstrap_servers)
    process = kops_process("topics", "reassign", name, "--to-brokers", "3", *limited)
    admin = Kafka(three.connection)
    wait_for("it to be under way", lambda: TopicPartition(name, 0) in admin.replicas.moving())
    # A second operator, on this machine and the same topic, and with a throttle of his own elsewhere: both are refused.
    assert "is being moved already" in kops("topics", "reassign", f"{name}:0", "--to-brokers", "2", "--yes").err
    refused = kops("topics", "reassign", other, "--to-brokers", "3", "--throttle", "1MB", "--yes")
    assert (refused.code, "another throttled reassignment is under way" in refused.err) == (5, True)
    kops("topics", "reassign", other, "--to-brokers", "3", "--yes").ok()
    rows = kops("topics", "reassignments", "-o", "json").ok()
    as_pinned("kops topics reassignments", rows)
    process.send_signal(signal.SIGKILL)
    process.wait(HANG_SECONDS)
    assert throttles(three, name) != {}
    entry = next(row for row in kops("journal", "list", "-o", "json").ok().json if row["status"] == "crashed")
    kops("journal", "finish", entry["id"], "--yes").ok()
    assert placed(name) == [[3], [3]]
    assert throttles(three, name) == {}
    kops("undo", entry["id"], "--yes").ok()
    assert placed(name) == [[1], [2]]
    assert throttles(three, name) == {}
    admin.close()


def test_interrupted_and_undone_while_it_is_under_way(three, kops, kops_process, topic, placed):
    name = topic([(1,)], kilobytes=3_000)
    process = kops_process("topics", "reassign", name, "--to-brokers", "2", "--throttle", "10KB", "--yes", "-B", three.bootstrap_servers)
    admin = Kafka(three.connection)
    wait_for("it to be under way", lambda: TopicPartition(name, 0) in admin.replicas.moving())
    process.send_signal(signal.SIGINT)
    assert process.wait(HANG_SECONDS) == 130
    kops("undo", "last", "--yes").ok()
    assert placed(name) == [[1]]
    assert admin.replicas.moving() == {}
    assert throttles(three, name) == {}
    admin.close()


def test_what_another_tool_began_is_shown_and_cancelled(three, kops, apache, topic, placed, tmp_path):
    name = topic([(1,)], kilobytes=3_000)
    file = tmp_path / "moves.json"
    file.write_text(json.dumps({"version": 1, "partitions": [{"topic": name, "partition": 0, "replicas": [3]}]}))
    apache.run("--execute", "--reassignment-json-file", str(file), "--throttle", "10000", REASSIGN)
    [row] = kops("topics", "reassignments", name, "-o", "json").ok().json
    assert (row["replicas"], row["adding"], row["removing"]) == ([3], [3], [1])
    assert 0 < row["left_bytes"] <= 3_200_000
    cancelled = kops("topics", "reassignments", name, "--cancel", "--yes").ok()
    assert f"the throttle of {name} stays" in cancelled.err
    assert placed(name) == [[1]]
    assert "No partition reassignments found." in apache.run("--list", REASSIGN)
    apache.run("--cancel", "--reassignment-json-file", str(file), REASSIGN)  # which removes its throttle
    kops("undo", "last", "--yes").ok()
    assert placed(name) == [[3]]


def test_a_broker_is_demoted_drained_and_unregistered(three, kops, apache, topic, placed, tmp_path):
    name = topic([(3, 1), (3, 2), (1, 3)])
    kops("brokers", "demote", 3, "--yes").ok()
    assert placed(name) == [[1, 3], [2, 3], [1, 3]]
    leaders = [part["leader"] for part in kops("topics", "describe", name, "--brief", "-o", "json").ok().json[0]["partitions"]]
    assert leaders == [1, 2, 1]
    kops("undo", "last", "--yes").ok()
    assert placed(name) == [[3, 1], [3, 2], [1, 3]]
    kops("topics", "elect-leaders", name, "--yes").ok()
    kops("brokers", "drain", 3, "--yes").ok()
    assert [sorted(replicas) for replicas in placed(name)] == [[1, 2]] * 3
    assert verified(apache, tmp_path, name, placed(name)).count("is completed") == 3
    assert kops("brokers", "unregister", 3, "--confirm", 3).code == 5  # in service
    three.stop(3)
    wait_for("it to be out of service", lambda: not kops("brokers", "describe", 3, "-o", "json").ok().json["in_service"])
    drained = kops("brokers", "drain", 3, "--yes").ok()
    assert ("nothing has to move" in drained.err, "may not be described" in drained.err) == (True, False)  # there is no authorizer
    absent = kops("topics", "reassign", name, "--off-broker", 3, "--off-broker", 9, "--yes")
    assert (absent.code, "no broker 9 is in service" in absent.err) == (2, True), absent.err
    kops("brokers", "unregister", 3, "--confirm", 3).ok()
    assert [row["id"] for row in kops("brokers", "list", "-o", "json").ok().json] == [1, 2]
    three.start(3)
    wait_for("it to be back", lambda: [row["id"] for row in kops("brokers", "list", "-o", "json").ok().json] == [1, 2, 3])


def test_an_unclean_election_says_what_is_lost_and_asks_for_the_name(three, kops, topic):
    name = topic([(3, 2)])
    three.stop(2)
    producer = Producer({**three.client, "acks": "1"})
    producer.produce(name, b"only on 3", partition=0)
    assert producer.flush(HANG_SECONDS) == 0
    three.kill(3)
    three.start(2)
    body = lambda: kops("topics", "describe", name, "--brief", "-o", "json").json  # noqa: E731
    wait_for("it to have no leader", lambda: (found := body()) and found[0]["partitions"][0]["leader"] is None)
    asked = kops("topics", "elect-leaders", name, "--unclean", "--yes")
    assert asked.code == 5
    assert "is lost for good" in asked.err
    kops("topics", "elect-leaders", name, "--unclean", "--confirm", name).ok()
    assert body()[0]["partitions"][0]["leader"] == 2
    three.start(3)


def test_replicas_are_moved_to_another_log_directory(kops, topic, three):
    name = topic([(1,), (1,)], kilobytes=100)

    def paths():
        rows = kops("brokers", "log-dirs", 1, "--replicas", "-o", "json").ok().json
        return {row["partition"]: row["path"] for row in rows if row["topic"] == name and not row["moving"]}

    before = paths()
    first, second = (row["path"] for row in kops("brokers", "log-dirs", 1, "-o", "json").ok().json)
    target = second if before[0] == first else first
    kops("brokers", "move-replicas", 1, f"{name}:0", "--to", target, "--yes").ok()
    assert paths() == {**before, 0: target}
    kops("undo", "last", "--yes").ok()
    assert paths() == before
    assert kops("brokers", "move-replicas", 1, name, "--to", "/nowhere", "--yes").code == 2


def test_balanced_without_moving_more_than_needed(kops, topic, placed, three):
    name = topic([(1, 2)] * 6)
    kops("topics", "reassign", name, "--balance", "--yes").ok()
    found = placed(name)
    assert sorted(sum(broker in replicas for replicas in found) for broker in (1, 2, 3)) == [4, 4, 4]
    assert sorted(sum(broker == replicas[0] for replicas in found) for broker in (1, 2, 3)) == [2, 2, 2]
    assert sum(3 in replicas for replicas in found) == 4
    assert sum(replicas == [1, 2] for replicas in found) <= 2
    assert "nothing has to move" in kops("topics", "reassign", name, "--balance", "--yes").ok().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", "reassign", "x", "--to-brokers", "9", "--yes"),
        ("topics", "reassign", "x", "--to-brokers", "one", "--yes"),
        ("topics", "reassign", "x", "--off-broker", "9", "--yes"),
        ("topics", "reassign", "x", "--yes"),
        ("topics", "reassign", "x", "--balance", "--throttle", "0MB", "--yes"),
        ("topics", "reassign", "x", "--balance", "--throttle", "fast", "--yes"),
        ("topics", "reassign", "--balance", "--yes"),
        ("topics", "reassignments", "--yes"),
        ("topics", "elect-leaders", "--unclean"),
        ("brokers", "alter", "1", "--config", "log.cleaner.threads=many", "--yes"),
        ("brokers", "alter", "1", "--config", "log.cleaner.thread=2", "--yes"),
        ("brokers", "alter", "--config", "log.cleaner.threads=2", "--yes"),
        ("brokers", "alter", "1", "--default", "--config", "log.cleaner.threads=2", "--yes"),
    ],
    ids=" ".join,
)
def test_bad_input(kops, topic, placed, arguments):
    name = topic([(1, 2)]) if "x" in arguments else ""
    assert kops(*(name if word == "x" else word for word in arguments)).code == 2
    if name:
        assert placed(name) == [[1, 2]]


def test_settings_of_one_broker_and_of_all(kops, three):
    admin = AdminClient(three.client)

    def found(broker):
        resource = ConfigResource(ResourceType.BROKER, str(broker))
        return admin.describe_configs([resource])[resource].result(HANG_SECONDS)["log.cleaner.backoff.ms"].value

    kops("brokers", "alter", 2, "--config", "log.cleaner.backoff.ms=16s", "--yes").ok()
    shown = kops("brokers", "alter", "--default", "--config", "log.cleaner.backoff.ms=17s", "--yes").ok()
    assert "broker 2 keeps its own log.cleaner.backoff.ms=16000" in shown.err
    assert [found(broker) for broker in (1, 2, 3)] == ["17000", "16000", "17000"]
    kops("brokers", "alter", 2, "--delete-config", "log.cleaner.backoff.ms", "--yes").ok()
    assert found(2) == "17000"
    kops("undo", "last", "--yes").ok()
    assert found(2) == "16000"
    fixed = kops("brokers", "alter", 2, "--config", "node.id=7", "--yes")
    assert (fixed.code, "server.properties" in fixed.err) == (5, True)

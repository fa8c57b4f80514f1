"""Three brokers: replicas, and a cluster that stays when one of them goes; and what an operator sees of that."""

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from kops.sandbox import cluster
from support.suggested import assert_taken

pytestmark = pytest.mark.broker


def setting(admin: AdminClient, topic: str, name: str) -> str | None:
    """Return a topic's setting; None while the broker that was asked does not know the topic yet."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    try:
        return admin.describe_configs([resource])[resource].result(20)[name].value
    except KafkaException:
        return None


@pytest.fixture(scope="module")
def three(own_brokers):
    """Three brokers, which each test leaves running."""
    return own_brokers(brokers=3)


def test_one_of_three_may_die_and_come_back(three, until):
    own = three
    admin = AdminClient(own.client)
    assert sorted(admin.list_topics(timeout=20).brokers) == [1, 2, 3]
    admin.create_topics([NewTopic("orders", 3, config={})])["orders"].result(20)

    def all_in_sync():
        found = admin.list_topics("orders", timeout=20).topics["orders"].partitions
        return {len(partition.isrs) for partition in found.values()} == {3}

    until(all_in_sync)
    until(lambda: setting(admin, "orders", "min.insync.replicas") == "2")

    own.kill(2)
    states = cluster.status(own.sandbox)
    assert (states.state, [node.state for node in states.nodes]) == ("degraded", ["running", "crashed", "running"])
    producer = Producer({**own.client, "acks": "all"})
    for partition in range(3):
        producer.produce("orders", b"value", partition=partition)
    assert producer.flush(60) == 0

    own.start(2)
    assert cluster.status(own.sandbox).state == "running"
    until(all_in_sync)


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_what_an_operator_sees_when_one_goes(three, until, run_kops, unique, ending):
    """Health, lag and diagnosis while a broker is down; nothing that needs it may keep the other commands from working."""

    def kops(*arguments):
        return run_kops(*arguments, "-B", three.bootstrap_servers, "-o", "json")

    def checks(*arguments):
        done = kops(*arguments)
        for command in (command for found in done.json["findings"] for command in found["commands"]):
            assert_taken(command)
        return done.code, {found["check"]: (found["severity"], found["facts"]) for found in done.json["findings"]}

    admin = AdminClient(three.client)
    safe, narrow, single, group = unique("safe"), unique("narrow"), unique("single"), unique("g")
    settings = {"min.insync.replicas": "2"}
    new = [NewTopic(safe, 3, 3, config=settings), NewTopic(narrow, 3, 2, config=settings)]
    new.append(NewTopic(single, 3, 1, config={"min.insync.replicas": "1"}))
    for future in admin.create_topics(new).values():
        future.result(20)
    producer = Producer(three.client)
    for number in range(30):
        for topic in (safe, single):
            producer.produce(topic, b"value", partition=number % 3)
    assert producer.flush(60) == 0
    consumer = Consumer({**three.client, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, number, 4) for topic in (safe, single) for number in range(3)], asynchronous=False)
    consumer.close()
    until(lambda: checks("cluster", "health")[0] == 0)
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
    until(lambda: "offline_partitions" in checks("cluster", "health")[1])
    if ending == "stop":  # its controllers take ten seconds to be called silent: once is enough
        until(lambda: "controller_silent" in checks("cluster", "health")[1])
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
    assert f"{narrow}:{on_two[narrow][0]}" not in found["under_replicated"][1]["partitions"]  # that is no topic of the group
    rows = {row["id"]: row for row in kops("cluster", "brokers").json}
    assert (rows[2]["in_service"], rows[2]["leaders"], rows[2]["log_dirs"]) == (False, 0, [])
    assert rows[2]["out_of_sync_replicas"] == rows[2]["replicas"]

    three.start(2)
    until(lambda: checks("cluster", "health")[0] == 0)
    assert kops("groups", "lag", group).ok()
    kops("topics", "delete", safe, narrow, single, "--confirm", "3 topics").ok()


def test_stopping_all_of_them_ends_every_process(own_broker, run_kops):
    own = own_broker(brokers=3, security="sasl-ssl")
    assert AdminClient(own.client).list_topics(timeout=20).brokers.keys() == {1, 2, 3}
    secured = ("--command-config", own.sandbox.directory / "client.properties", "-B", own.bootstrap_servers, "-o", "json")
    body = run_kops("cluster", "describe", *secured).ok().json
    assert [len(body[key]) for key in ("brokers", "not_known")] == [3, 0]
    assert len(body["quorum"]["voters"]) == 3
    assert all(row["log_dirs"] for row in run_kops("cluster", "brokers", *secured).ok().json)
    assert run_kops("diagnose", *secured).json["not_checked"] == []
    assert cluster.down(own.sandbox) == [1, 2, 3]
    assert cluster.status(own.sandbox).state == "stopped"
    own.up()
    assert AdminClient(own.client).list_topics(timeout=20).brokers.keys() == {1, 2, 3}

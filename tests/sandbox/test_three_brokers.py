"""Three brokers: replicas, and a cluster that stays when one of them goes."""

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from kops.sandbox import cluster

pytestmark = pytest.mark.broker


def setting(admin: AdminClient, topic: str, name: str) -> str | None:
    """Return a topic's setting; None while the broker that was asked does not know the topic yet."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    try:
        return admin.describe_configs([resource])[resource].result(20)[name].value
    except KafkaException:
        return None


def test_one_of_three_may_die_and_come_back(own_broker, until):
    own = own_broker(brokers=3)
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


def test_stopping_all_of_them_ends_every_process(own_broker):
    own = own_broker(brokers=3, security="sasl-ssl")
    assert AdminClient(own.client).list_topics(timeout=20).brokers.keys() == {1, 2, 3}
    assert cluster.down(own.sandbox) == [1, 2, 3]
    assert cluster.status(own.sandbox).state == "stopped"
    own.up()
    assert AdminClient(own.client).list_topics(timeout=20).brokers.keys() == {1, 2, 3}

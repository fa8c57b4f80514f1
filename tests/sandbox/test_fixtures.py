"""The fixtures that every other test stands on."""

import pytest

from support.patience import HANG_SECONDS

pytestmark = pytest.mark.broker


def describe(client):
    from confluent_kafka.admin import AdminClient

    admin = AdminClient(client)  # named: its requests end with it
    return admin.describe_cluster(request_timeout=HANG_SECONDS).result(HANG_SECONDS)


def test_the_shared_broker_answers_and_topics_are_its_own(broker, topic):
    from confluent_kafka.admin import AdminClient

    name = topic("fixture", partitions=3, config={"cleanup.policy": "compact"})
    found = AdminClient(broker.client).list_topics(name, timeout=HANG_SECONDS).topics[name]
    assert len(found.partitions) == 3


def test_a_broker_that_is_killed_comes_back_with_its_topics_on_its_port(own_broker):
    """And one client of kops lives through it: what was reported while the broker was away fails no later request."""
    from confluent_kafka.admin import AdminClient, NewTopic

    from kops.core.errors import Unreachable
    from kops.gateways.kafka import Kafka

    own = own_broker()
    kafka = Kafka(own.connection)
    assert kafka.topics.names() == []
    before = describe(own.client)
    admin = AdminClient(own.client)
    admin.create_topics([NewTopic("orders", 2)])["orders"].result(HANG_SECONDS)
    own.kill()
    with pytest.raises(Unreachable):
        kafka.topics.names()
    own.start()
    assert kafka.topics.names() == ["orders"]
    own.kill()
    own.start()
    assert kafka.topics.names() == ["orders"]
    after = describe(own.client)
    assert (after.cluster_id, after.nodes[0].port) == (before.cluster_id, before.nodes[0].port)
    assert "orders" in AdminClient(own.client).list_topics(timeout=HANG_SECONDS).topics

"""What only looks or plans cannot change a cluster, whatever it tries: a session's clients need a permit, which the protocol grants."""

import pytest

from kops.cli.frame.session import Session
from kops.core.models import CommittedOffset, NewRecord, NewTopic, TopicPartition
from kops.gateways.kafka import Kafka

pytestmark = pytest.mark.broker


@pytest.fixture
def session(broker, home):
    with Session({"bootstrap_server": broker.bootstrap_servers, "quiet": True}) as session:
        yield session


def tries(kafka, topic, other, group):
    """Return what a plan might try, by what it would do."""
    place = TopicPartition(topic, 0)
    return {
        "create": lambda: kafka.topics.create([NewTopic(other, 1, 1)]),
        "delete": lambda: kafka.topics.delete([topic]),
        "alter": lambda: kafka.topics.alter({topic: {"retention.ms": "1000"}}),
        "add partitions": lambda: kafka.topics.add_partitions({topic: 2}),
        "truncate": lambda: kafka.topics.delete_records({place: 1}),
        "produce": lambda: kafka.produce(topic, [NewRecord(None, b"x", partition=0)]),
        "commit": lambda: kafka.groups.commit(group, {place: CommittedOffset(1)}),
        "delete a group": lambda: kafka.groups.delete([group]),
        "delete offsets": lambda: kafka.groups.delete_offsets(group, [place]),
    }


def held(kafka, topic, other, group):
    place = TopicPartition(topic, 0)
    there = kafka.topics.existing([topic, other])
    bounds = kafka.offsets.bounds([place]) if topic in there else {}
    return there, kafka.topics.settings(there)[topic]["retention.ms"].value, bounds, kafka.groups.committed([group])


def test_planning_changes_nothing_whatever_it_tries(session, broker, topic, group, unique):
    name, other, real = topic("kept"), unique("never"), Kafka(broker.connection)
    real.produce(name, [NewRecord(None, b"x", partition=0)])
    real.groups.commit(group, {TopicPartition(name, 0): CommittedOffset(0)})
    before = held(real, name, other, group)
    for what, attempt in tries(session.kafka, name, other, group).items():
        with pytest.raises(RuntimeError, match="no plan is being carried out"):
            attempt()
        assert held(real, name, other, group) == before, what
    assert session.kafka.topics.create([NewTopic(other, 1, 1)], validate_only=True) == {other: None}
    assert held(session.kafka, name, other, group) == before
    with session.permit.granted():
        assert session.kafka.topics.create([NewTopic(other, 1, 1)]) == {other: None}
    real.topics.delete([other])
    real.close()

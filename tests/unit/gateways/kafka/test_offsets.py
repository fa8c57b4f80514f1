"""A leader that no longer is one: librdkafka reports the broker's answer, and keeps asking that broker until it reads metadata again."""

import pytest

from kops.config.connection import Connection
from kops.core.errors import KopsError, TimedOut
from kops.core.models import Bounds, TopicPartition
from kops.gateways.kafka import Kafka
from support.mock_brokers import LIST_OFFSETS, mock_brokers

NOT_LEADER, FENCED, UNKNOWN_EPOCH, LEADER_NOT_AVAILABLE, NOT_AUTHORIZED = 6, 74, 75, 5, 29
PARTITIONS = [TopicPartition("orders", number) for number in range(3)]


def counted(kafka):
    """Return the list to which every question for offsets is added."""
    asked = []
    ask = kafka.client.admin.list_offsets
    kafka.client.__dict__["admin"] = admin = kafka.client.admin
    admin.list_offsets = lambda *arguments, **options: asked.append(arguments) or ask(*arguments, **options)
    return asked


@pytest.fixture
def brokers():
    with mock_brokers(3) as found:
        found.topic("orders", 3, 3)
        for number in range(3):
            found.lead("orders", number, 1)
        yield found


def test_a_leader_that_has_moved_is_found(brokers):
    kafka = Kafka(Connection((brokers.servers,)))
    expected = dict.fromkeys(PARTITIONS, Bounds(0, 0))
    assert kafka.offsets.bounds(PARTITIONS) == expected
    for number, broker in enumerate((2, 3, 1)):
        brokers.lead("orders", number, broker)
    assert kafka.offsets.bounds(PARTITIONS) == expected
    assert kafka.offsets.at_time(PARTITIONS, 1) == dict.fromkeys(PARTITIONS)


@pytest.mark.parametrize("codes", [(FENCED, FENCED), (UNKNOWN_EPOCH, NOT_LEADER, LEADER_NOT_AVAILABLE)])
def test_what_brokers_say_of_leaders_is_asked_again(brokers, codes):
    kafka = Kafka(Connection((brokers.servers,)))
    brokers.fail(LIST_OFFSETS, *codes)
    assert kafka.offsets.bounds(PARTITIONS) == dict.fromkeys(PARTITIONS, Bounds(0, 0))


@pytest.mark.slow
def test_answers_that_are_long_in_coming_use_up_no_patience(brokers):
    kafka = Kafka(Connection((brokers.servers,)))
    assert kafka.offsets.bounds(PARTITIONS)  # so that it is connected
    brokers.slow(1600)  # longer than a partition without a leader is waited for
    brokers.fail(LIST_OFFSETS, NOT_LEADER, LEADER_NOT_AVAILABLE)
    assert kafka.offsets.at_time(PARTITIONS, 1) == dict.fromkeys(PARTITIONS)


@pytest.mark.slow
def test_no_longer_than_it_may_take(brokers):
    kafka = Kafka(Connection((brokers.servers,), timeout=3.0))
    asked = counted(kafka)
    brokers.fail(LIST_OFFSETS, *[FENCED] * 1000)
    with pytest.raises(KopsError) as fenced:
        kafka.offsets.bounds(PARTITIONS)
    assert fenced.value.details["kafka_error"] == "FENCED_LEADER_EPOCH"
    assert not isinstance(fenced.value, TimedOut)
    assert 1 < len(asked) < 100


@pytest.mark.slow
def test_another_error_is_told_at_once(brokers):
    kafka = Kafka(Connection((brokers.servers,), timeout=5.0))  # these brokers do not answer what is asked when an error has come
    asked = counted(kafka)
    brokers.fail(LIST_OFFSETS, NOT_AUTHORIZED)
    with pytest.raises(KopsError) as refused:
        kafka.offsets.bounds(PARTITIONS[:1])
    assert len(asked) == 1
    assert refused.value.details["kafka_error"] == "TOPIC_AUTHORIZATION_FAILED"


@pytest.mark.slow
def test_nobody_waits_for_the_leader_of_a_topic_that_is_not_there(brokers):
    kafka = Kafka(Connection((brokers.servers,), timeout=5.0))  # these brokers do not answer what is asked when an error has come
    asked = counted(kafka)
    with pytest.raises(KopsError):
        kafka.offsets.bounds([TopicPartition("payments", 0)])
    assert len(asked) == 1

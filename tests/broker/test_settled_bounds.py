"""What an application committed just before it stopped, while a transaction hides it from ``read_committed``, on a real broker."""

import time
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer

from kops.core.errors import Refused
from kops.core.models import NewTopic, TopicPartition
from kops.gateways.kafka import Kafka
from kops.operations.engine import stable
from kops.operations.state.snapshot_topics import OwnTopics, stopped_application, unprocessed
from support.programs import Record

pytestmark = pytest.mark.broker


@pytest.fixture
def hidden(broker, topic, unique, cluster):
    """A partition with a record that is hidden by a transaction which began before it, and the producer of that."""
    name = topic()
    producer = Producer({**broker.client, "transactional.id": unique("tx"), "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, b"open", partition=0)
    assert producer.flush(30) == 0
    cluster.produce(name, [Record(b"k", b"committed", 1_000_000, (), 0)])
    yield SimpleNamespace(place=TopicPartition(name, 0), producer=producer)
    producer.abort_transaction(30)


@pytest.fixture
def services(broker):
    kafka, steps = Kafka(broker.connection), []
    yield SimpleNamespace(kafka=kafka, progress=SimpleNamespace(step=steps.append), steps=steps)
    kafka.close()


@pytest.fixture
def ends_meanwhile(hidden, monkeypatch):
    """Abort the transaction as soon as kops waits for it."""

    def end(seconds):
        hidden.producer.abort_transaction(30)
        hidden.producer.begin_transaction()
        monkeypatch.setattr(stable, "time", time)

    monkeypatch.setattr(stable, "time", SimpleNamespace(monotonic=time.monotonic, sleep=end))


def test_records_that_a_transaction_hides_are_waiting_too(hidden, services, ends_meanwhile):
    assert unprocessed(services, [hidden.place], {}, isolation="read_committed") == {hidden.place: (0, 3)}
    assert services.steps == [f"waiting for the end of the transaction that is open in {hidden.place} at offset 0"]


def test_a_cut_of_a_stopped_application_has_what_a_transaction_hid(hidden, services, ends_meanwhile, cluster, group):
    cluster.commit(group, {(hidden.place.topic, 0): 0})
    topics = OwnTopics(group, {"store": NewTopic(hidden.place.topic, 1)}, (), {})
    assert stopped_application(services, topics, isolation="read_committed").bounds[hidden.place].log_end_offset == 3


def test_a_transaction_that_stays_open_is_named(hidden, services, monkeypatch):
    monkeypatch.setattr(stable, "PATIENCE_SECONDS", 0)
    with pytest.raises(Refused) as raised:
        unprocessed(services, [hidden.place], {}, isolation="read_committed")
    assert f"the transaction that is open in {hidden.place} at offset 0: it hides what follows" in raised.value.message
    assert f"`kops diagnose {hidden.place.topic}` says how it is ended" in raised.value.hint
    assert unprocessed(services, [hidden.place], {}, isolation="read_uncommitted") == {hidden.place: (0, 2)}

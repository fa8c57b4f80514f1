"""librdkafka reports once that no broker answers, and never that they are back: what it reported before must not end a later wait."""

from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException

from kops.config.connection import Connection
from kops.core.errors import NotFound, TimedOut, Unreachable
from kops.gateways.kafka import Kafka
from kops.gateways.kafka import client as client_module
from kops.gateways.kafka.client import UNREACHABLE_GRACE_SECONDS, Client
from support.mock_brokers import mock_brokers


@pytest.fixture
def brokers():
    with mock_brokers() as found:
        found.topic("orders")
        yield found


@pytest.mark.slow
def test_brokers_that_are_back_are_asked(brokers):
    kafka = Kafka(Connection((brokers.servers,)))
    assert kafka.topics.names() == ["orders"]
    brokers.down()
    for _ in range(2):
        with pytest.raises(Unreachable):
            kafka.topics.names()
    brokers.up()
    assert kafka.topics.names() == ["orders"]
    brokers.down()
    brokers.up()
    brokers.slow(800)  # several answers, until it has all: longer than brokers have to come back
    assert kafka.topics.names() == ["orders"]
    assert kafka.client._trouble is None


@pytest.mark.slow
def test_trouble_that_is_told_late_does_not_end_a_wait_for_brokers_that_are_back(brokers, monkeypatch):
    """A busy machine: what went wrong before the wait is reported only within it."""
    kafka = Kafka(Connection((brokers.servers,)))
    assert kafka.topics.names() == ["orders"]
    monkeypatch.setattr(kafka.client, "_doubt_trouble", lambda _: kafka.client._on_error(KafkaError(KafkaError._ALL_BROKERS_DOWN)))
    brokers.slow(int(2 * UNREACHABLE_GRACE_SECONDS * 1000))
    assert kafka.topics.names() == ["orders"]


@pytest.mark.slow
def test_trouble_that_lasts_ends_a_wait(brokers, monkeypatch):
    kafka = Kafka(Connection((brokers.servers,)))
    assert kafka.topics.names() == ["orders"]
    brokers.down()
    monkeypatch.setattr(kafka.client, "_doubt_trouble", lambda _: kafka.client._on_error(KafkaError(KafkaError._ALL_BROKERS_DOWN)))
    with pytest.raises(Unreachable):
        kafka.topics.names()


def test_an_answer_takes_back_what_was_told():
    client = Client(Connection(("127.0.0.1:1",)))
    answer: Future[None] = Future()
    client.__dict__["admin"] = Told(client, answer)
    with pytest.raises(NotFound):
        client.wait(answer, "describe topic payments")
    assert client._trouble is None


@pytest.mark.parametrize("ends", ["no answer", "an error of its own"])
def test_a_client_that_was_not_answered_is_left(ends, monkeypatch):
    """After metadata without a broker, which a cluster gives that was frozen and returns, librdkafka has none to ask, for good."""
    client, made = Client(Connection(("127.0.0.1:1",))), []
    monkeypatch.setattr(client, "_make", lambda *_: made.append(Silent()) or made[-1])
    left, future = client.admin, Future()
    if ends != "no answer":
        future.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
    with pytest.raises(TimedOut):
        client.wait(future, "describe the cluster", timeout=0)
    assert client.admin is not left


def test_what_was_sent_to_a_dead_controller_is_sent_again(monkeypatch):
    """Between the look and the request the metadata named another one, or the machine was slow to see it."""
    client, answered = Client(Connection(("127.0.0.1:1",), timeout=8)), Future()
    answered.set_result("found")
    client.__dict__["admin"] = Silent()
    looks, answers = [], iter([Future(), Future(), answered])
    monkeypatch.setattr(client_module, "LATE_SECONDS", 0.01)
    monkeypatch.setattr(client, "_steer", lambda: looks.append(1) or True)
    assert client.steered(lambda _: {"orders": next(answers)})["orders"].result(0) == "found"
    assert len(looks) == 3


def test_what_is_only_slow_is_sent_once(monkeypatch):
    client, slow = Client(Connection(("127.0.0.1:1",))), Future()
    client.__dict__["admin"] = Silent()
    monkeypatch.setattr(client_module, "LATE_SECONDS", 0.01)
    monkeypatch.setattr(client, "_steer", lambda: False)
    asked = iter([slow])
    assert client.steered(lambda _: {"orders": next(asked)}) == {"orders": slow}


class Silent:
    def poll(self, _seconds):
        return 0

    def list_topics(self, timeout):
        return None


class Told:
    """Reports that no broker can be reached, and that one has answered."""

    def __init__(self, client, answer):
        self._client, self._answer = client, answer

    def poll(self, _seconds):
        self._client._on_error(KafkaError(KafkaError._ALL_BROKERS_DOWN))
        if not self._answer.done():
            self._answer.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
        return 1

"""Brokers that apply the metadata log one after another, and what is read from one that is behind."""

from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from kops.core.errors import BrokerDown, NotFound
from kops.core.models import NewTopic
from kops.core.plan import Item, Status
from kops.gateways.kafka import Kafka, cluster_details
from kops.gateways.kafka.cluster_details import ClusterDetails
from kops.gateways.kafka.topics import Topics
from kops.operations.state.internal_topics import TopicChange, change_topics


@pytest.fixture
def asked(monkeypatch):
    """Brokers whose answers are given in turn, by broker; lists which were asked."""
    monkeypatch.setattr(cluster_details, "HEARD_POLL_SECONDS", 0)
    rounds = []

    def asked(**answers):
        left = {int(name[1:]): list(some) for name, some in answers.items()}

        def ask(brokers, doing, request):
            rounds.append(list(brokers))
            return {broker: left[broker].pop(0) if len(left[broker]) > 1 else left[broker][0] for broker in brokers}

        details = object.__new__(ClusterDetails)
        details._client = SimpleNamespace(cluster=lambda: SimpleNamespace(brokers=[SimpleNamespace(id=broker) for broker in left]))
        details._wire = SimpleNamespace(brokers_or_errors=ask)
        details.heard_by_all()
        return rounds

    return asked


def test_those_that_are_behind_are_asked_until_they_are_where_the_first_was(asked):
    assert asked(b1=[7, 9], b2=[5, 6, 7], b3=[3, 8]) == [[1, 2, 3], [2, 3], [2]]


def test_one_that_does_not_answer_is_not_waited_for(asked):
    assert asked(b1=[7], b2=[BrokerDown("down")], b3=[6, BrokerDown("down")]) == [[1, 2, 3], [3]]


def test_one_that_stays_behind_is_waited_for_a_bounded_time(asked, monkeypatch):
    monkeypatch.setattr(cluster_details, "HEARD_SECONDS", 0.1)
    assert asked(b1=[7], b2=[5])[:2] == [[1, 2], [2]]


def test_a_broker_alone_is_not_asked(asked):
    assert asked(b1=[7]) == []


def test_where_it_cannot_be_asked_the_change_is_made_all_the_same():
    def refuses():
        raise BrokerDown("no broker answers")

    kafka = object.__new__(Kafka)
    kafka.details = SimpleNamespace(heard_by_all=refuses)
    kafka.heard_by_all()


class TwoBrokers:
    """Two brokers that answer in turn: the first has heard of all, the second of what was there when all were last waited for."""

    timeout = 5.0

    def __init__(self, **ids):
        self.now, self.behind = dict(ids), dict(ids)
        self.answers = 0
        self.admin = self

    def heard_by_all(self):
        self.behind = dict(self.now)

    def delete_topics(self, names, **_options):
        for name in names:
            del self.now[name]
        return dict.fromkeys(names, done())

    def create_topics(self, topics, **_options):
        names = [topic.topic for topic in topics]
        self.now |= dict.fromkeys(names, "new")
        return dict.fromkeys(names, done())

    def errors(self, futures, _doing):
        return dict.fromkeys(futures)

    def describe_topics(self, names):
        self.answers += 1
        shown = self.now if self.answers % 2 else self.behind
        return {name: described(name, shown[name]) if name in shown else NotFound(name) for name in names}


def done():
    future = Future()
    future.set_result(None)
    return future


def described(name, topic_id):
    node = SimpleNamespace(id=1)
    partition = SimpleNamespace(id=0, leader=node, replicas=[node], isr=[node])
    return SimpleNamespace(name=name, topic_id=topic_id, partitions=[partition], is_internal=False)


def test_a_topic_that_is_created_again_is_not_taken_for_the_one_before():
    """A broker that shows the old one still would have its id recorded, and undo would take the new one for somebody else's."""
    brokers = TwoBrokers(t="old")
    services = SimpleNamespace(kafka=SimpleNamespace(topics=Topics(brokers, brokers.heard_by_all)))
    change = TopicChange(NewTopic("t", 1, 1), NewTopic("t", 1, 1), "old")
    (result,) = change_topics(services, [change], {"t": Item("t", "replace")})
    assert (result.status, result.value) == (Status.DONE, {"topic_id": "new"})

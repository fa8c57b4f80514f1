"""Brokers that apply the metadata log one after another: which are asked how far they are, and until when."""

from types import SimpleNamespace

import pytest

from kops.core.errors import BrokerDown
from kops.gateways.kafka import Kafka, cluster_details
from kops.gateways.kafka.cluster_details import ClusterDetails


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

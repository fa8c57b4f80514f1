"""Topics that metadata leaves out without an error, found by the log directories; and whether there may be others."""

from types import SimpleNamespace

import pytest

from kops.config.connection import Connection
from kops.core.cluster.models import LogDir, ReplicaOnDisk
from kops.core.errors import AuthorizationFailed, BrokerDown, NotFound, SecurityDisabled, TimedOut
from kops.core.models import Broker, Cluster, TopicPartition
from kops.gateways.kafka import Kafka

LACKS = {"needs": "DESCRIBE on the cluster"}


@pytest.fixture
def kafka():
    """Two brokers in service: ``seen`` may be described, ``hidden`` and the offsets may not, ``gone`` is being deleted."""
    made = Kafka(Connection(("127.0.0.1:1",)))
    names = ("seen", "hidden", "gone", "__consumer_offsets")
    replicas = tuple(ReplicaOnDisk(TopicPartition(name, 0), 1) for name in names)
    answers = {1: (LogDir(1, "/data", replicas),), 2: ()}
    problems = {"gone": NotFound("there is no topic gone")}
    lacking = AuthorizationFailed("not allowed")
    made.__dict__.update(
        _cluster=Cluster("abc", 1, (Broker(1, "a", 1, None), Broker(2, "b", 2, None))),
        log_dirs=SimpleNamespace(answers=answers, describe_or_errors=lambda brokers: {broker: answers[broker] for broker in brokers}),
        topics=SimpleNamespace(names=lambda: ["seen"], problems=lambda names: {name: problems.get(name, lacking) for name in names}),
    )
    return made


def answering(kafka, monkeypatch, error):
    def matching(_):
        if error:
            raise error
        return []

    monkeypatch.setattr(kafka.acls, "matching", matching)


@pytest.mark.parametrize("error", [None, AuthorizationFailed("not allowed", **LACKS)])
def test_with_an_authorizer_what_was_not_looked_at_is_named(kafka, monkeypatch, error):
    answering(kafka, monkeypatch, error)
    assert kafka.hidden_topics() == (["hidden"], None)
    assert kafka.hidden_topics(internal=True) == (["__consumer_offsets", "hidden"], None)
    assert kafka.hidden_topics([1, 3])[1].message == "broker 3 is not in service"
    kafka.log_dirs.answers[2] = AuthorizationFailed("not allowed", **LACKS)
    assert kafka.hidden_topics([3])[1].details == LACKS


def test_a_topic_of_which_nothing_is_known_is_not_taken_for_a_deleted_one(kafka, monkeypatch):
    answering(kafka, monkeypatch, None)
    late = TimedOut("describe topic hidden: no answer within 30 s")
    kafka.topics.problems = lambda names: dict.fromkeys(names, late)
    assert kafka.hidden_topics() == ([], late)


def test_directories_that_were_asked_for_are_not_asked_for_again(kafka, monkeypatch):
    answering(kafka, monkeypatch, None)
    answers, kafka.log_dirs.describe_or_errors = kafka.log_dirs.answers, None
    assert kafka.hidden_topics(answers=answers) == (["hidden"], None)


def test_a_client_that_cannot_ask_says_why():
    kafka = Kafka(Connection(("127.0.0.1:1",), keystore_file="key.p12"))
    kafka.__dict__["_cluster"] = Cluster("abc", 1, (Broker(1, "a", 1, None),))
    hidden, unknown = kafka.hidden_topics()
    assert (hidden, "PKCS12" in unknown.message) == ([], True)


def test_without_one_nothing_is_hidden(kafka, monkeypatch):
    answering(kafka, monkeypatch, SecurityDisabled("no authorizer is configured"))
    kafka.log_dirs.answers.update({1: (), 2: BrokerDown("broker 2 at b:2 refuses connections")})
    assert kafka.hidden_topics([3]) == ([], None)

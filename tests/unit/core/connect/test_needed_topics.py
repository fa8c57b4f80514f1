"""Which topics a connector needs and lacks, as far as its configuration says."""

import pytest

from kops.core.connect.needed_topics import lacks_of, names_topics, needs_of

DLQ, REPLICAS = "errors.deadletterqueue.topic.name", "errors.deadletterqueue.topic.replication.factor"
CREATED = "topic.creation.default.replication.factor"


@pytest.mark.parametrize(
    ("kind", "config", "found"),
    [
        ("sink", {"topics": " a, b ,"}, [("a", "topics", None), ("b", "topics", None)]),
        ("sink", {"topics": "a", DLQ: "dead"}, [("a", "topics", None), ("dead", DLQ, 3)]),
        ("sink", {"topics": "a", DLQ: "dead", REPLICAS: "1"}, [("a", "topics", None), ("dead", DLQ, 1)]),
        ("sink", {"topics": "${env:T}", DLQ: "${env:D}"}, []),
        ("sink", {"topics": "a", "consumer.override.bootstrap.servers": "other:9092"}, []),
        ("source", {"topic": "a", "topics": "b", DLQ: "dead"}, [("a", "topic", None)]),
        ("source", {"kafka.topic": "a", CREATED: "-1"}, [("a", "kafka.topic", -1)]),
        ("source", {"topic": "sensors/#"}, []),
        ("source", {"topic.prefix": "shop"}, []),
    ],
)
def test_needs(kind, config, found):
    assert [(need.topic, need.setting, need.replicas) for need in needs_of(kind, config)] == found


def test_lacks():
    sink = {"topics": "a,b", DLQ: "dead"}
    found = list(lacks_of("sink", sink, {"a"}, brokers=1))
    assert [lack.setting for lack in found] == ["topics", DLQ]
    assert found[0].message == "topic b does not exist: unless the brokers create it, the connector runs and reads nothing"
    assert found[1].message == "topic dead does not exist, and Connect cannot create it with 3 replicas on 1 broker: the task will fail"
    assert found[1].hint == f"create it: kops topics create dead, or set {REPLICAS}=1"
    assert list(lacks_of("sink", sink, {"a", "b", "dead"}, brokers=1)) == []
    assert list(lacks_of("sink", sink, {"a", "b"}, brokers=3)) == []
    assert list(lacks_of("source", {"topic": "a", CREATED: "-1"}, (), brokers=1)) == []
    assert [lack.setting for lack in lacks_of("source", {"topic": "a", CREATED: "2"}, (), brokers=1)] == ["topic"]


def test_where_settings_do_not_say_all():
    assert names_topics("sink", {"topics": "a,b"})
    assert names_topics("sink", {"topics.regex": "a.*"})
    assert not names_topics("sink", {"topics": "a,${env:T}"})
    assert names_topics("source", {"topic": "a"})
    assert not names_topics("source", {"topic.prefix": "shop"})

"""Which topics a connector uses, and which of them it lacks, as far as its configuration says."""

import pytest

from kops.core.connect.topics import Brokers, lacks_of, matches_any, used_topics

DLQ, REPLICAS = "errors.deadletterqueue.topic.name", "errors.deadletterqueue.topic.replication.factor"
CREATED = "topic.creation.default.replication.factor"
FILE = {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector"}
TRANSFORM = {"transforms": "one", "transforms.one.type": "org.apache.kafka.connect.transforms."}
NO, YES, PERHAPS = Brokers(1, create=False), Brokers(1, create=True), Brokers(1, create=None)


@pytest.mark.parametrize(
    ("kind", "config", "found"),
    [
        ("sink", {"topics": " a, b ,"}, [("a", "topics", None), ("b", "topics", None)]),
        ("sink", {"topics": "a", DLQ: "dead"}, [("a", "topics", None), ("dead", DLQ, 3)]),
        ("sink", {"topics": "a", DLQ: "dead", REPLICAS: "1"}, [("a", "topics", None), ("dead", DLQ, 1)]),
        ("source", {**FILE, "topic": "a", "topics": "b", DLQ: "dead"}, [("a", "topic", None)]),
        ("source", {"kafka.topic": "a", "topic": "other", CREATED: "-1"}, [("a", "kafka.topic", -1)]),
        ("source", {**FILE, **TRANSFORM, "topic": "a", "transforms.one.type": f"{TRANSFORM['transforms.one.type']}InsertField$Value"},
         [("a", "topic", None)]),
    ],
)  # fmt: skip
def test_what_settings_say(kind, config, found):
    used = used_topics(kind, config)
    assert [(one.name, one.setting, one.replicas) for one in used.named] == found
    assert not used.unknown


@pytest.mark.parametrize(
    ("kind", "config", "reason"),
    [
        ("sink", {"topics": "${env:T}"}, "topics has a reference"),
        ("sink", {"topics": "a", DLQ: "${env:D}"}, f"{DLQ} has a reference"),
        ("sink", {"topics": "a", "consumer.override.bootstrap.servers": "other:9092"}, "leads to another Kafka cluster"),
        ("source", {"topic": "sensors/#"}, "only its plugin knows"),
        ("source", {"topic.prefix": "shop"}, "only its plugin knows"),
        ("source", {**FILE, **TRANSFORM, "topic": "a", "transforms.one.type": f"{TRANSFORM['transforms.one.type']}RegexRouter"},
         "its transform one may send"),
        ("source", {**FILE, **TRANSFORM, "topic": "a", "transforms.one.type": "com.example.InsertField"}, "its transform one may send"),
    ],
)  # fmt: skip
def test_where_settings_do_not_say_all(kind, config, reason):
    assert reason in used_topics(kind, config).unknown


def test_what_a_source_has_written_to_stands_in_for_its_settings():
    used = used_topics("source", {"topic.prefix": "shop"}, ["shop-b", "shop-a"])
    assert (used.unknown, [one.name for one in used.named]) == ("", ["shop-a", "shop-b"])
    (lack,) = lacks_of(used, {"shop-a"}, unmatched=False, brokers=NO)
    assert not lack.sure
    assert lack.text == (
        "it has written to shop-a, which does not exist now, and neither the brokers nor Connect create it:"
        " if it still writes there, nothing can be written there"
    )


def lacks(kind, config, *absent, brokers=NO, unmatched=False):
    return list(lacks_of(used_topics(kind, config), absent, unmatched=unmatched, brokers=brokers))


def test_what_a_sink_lacks():
    sink = {"topics": "a,b,c", DLQ: "dead"}
    topics, dead = lacks("sink", sink, "b", "c", "dead")
    assert (topics.setting, topics.text, topics.sure) == ("topics", "b, c do not exist: nothing is read from there", True)
    assert topics.hint == "create them: `kops topics create b c`"
    assert dead.text == f"its dead letter topic dead does not exist, and cannot be created with 3 replicas on 1 broker ({REPLICAS})"
    assert dead.hint == f"create it: `kops topics create dead --replication-factor 1`, or set {REPLICAS}=1"
    assert lacks("sink", sink) == []
    (created,) = lacks("sink", sink, "dead", brokers=Brokers(3, create=False))
    assert created.creatable
    (none,) = lacks("sink", {"topics.regex": "x.*"}, unmatched=True)
    assert (none.topics, none.setting) == ((), "topics.regex")


def test_what_a_source_lacks():
    assert lacks("source", {**FILE, "topic": "a", CREATED: "-1"}, "a") == []
    (few,) = lacks("source", {**FILE, "topic": "a", CREATED: "2"}, "a", brokers=YES)
    assert few.text == f"a does not exist, and cannot be created with 2 replicas on 1 broker ({CREATED})"
    (sure,) = lacks("source", {**FILE, "topic": "a"}, "a")
    assert (sure.sure, sure.text) == (True, "a does not exist, and neither the brokers nor Connect create it: nothing can be written")
    (unsure,) = lacks("source", {"topic": "a"}, "a")
    assert not unsure.sure
    assert unsure.text.endswith("if the connector writes there, nothing can be written")


def test_brokers_that_create_topics():
    assert lacks("sink", {"topics": "a"}, "a", brokers=YES) == lacks("source", {**FILE, "topic": "a"}, "a", brokers=YES) == []
    (dead,) = lacks("sink", {"topics": "a", DLQ: "dead"}, "a", "dead", brokers=YES)
    assert dead.topics == ("dead",)
    for kind, config in (("sink", {"topics": "a"}), ("source", {**FILE, "topic": "a"})):
        (lack,) = lacks(kind, config, "a", brokers=PERHAPS)
        assert not lack.sure
        assert "unless the brokers" in lack.text


def test_java_patterns():
    assert matches_any("shop-.*", ["shop-a"])
    assert matches_any("shop", ["shop-a"]) is False
    assert [matches_any(pattern, ["abc"]) for pattern in ("[a-z&&[^b]]+", r"\Qa.b\E", "(?<name>x)", "[a[bc]]+")] == [None] * 4

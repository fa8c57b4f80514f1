"""What the look at connectors' topics asks for, and what it says where an answer is missing: faults that a test's broker does not have."""

from collections import Counter
from types import SimpleNamespace

import pytest

from kops.core.connect.topics import used_topics
from kops.core.errors import AuthorizationFailed, NotFound, Unreachable
from kops.operations.connect.topics import TopicLook

THERE = ("a", "b")


@pytest.fixture
def made():
    """Services whose topics are ``THERE``; ``asked`` counts the requests, ``errors`` has one by topic, or by request."""
    asked, errors = Counter(), {}

    def answer(request, value):
        asked[request] += 1
        if request in errors:
            raise errors[request]
        return value

    topics = SimpleNamespace(
        names=lambda: answer("names", list(THERE)),
        problems=lambda names: answer("problems", {name: errors.get(name, NotFound(f"no topic {name}")) for name in names}),
        broker_settings=lambda _: answer("settings", {"auto.create.topics.enable": SimpleNamespace(value="false")}),
    )
    cluster = SimpleNamespace(cluster_id="one", brokers=[SimpleNamespace(id=1)])
    about = {"kafka_cluster_id": "one"}
    services = SimpleNamespace(
        connection=SimpleNamespace(bootstrap_servers=("127.0.0.1:9",)),
        kafka=SimpleNamespace(topics=topics, cluster=lambda: answer("cluster", cluster)),
        connect=SimpleNamespace(about=lambda: answer("about", about)),
    )
    return SimpleNamespace(services=services, asked=asked, errors=errors, about=about)


def sink(*topics):
    return used_topics("sink", {"topics": ",".join(topics)})


def test_one_request_where_every_topic_exists(made):
    look = TopicLook(made.services)
    assert [look.lacks(f"sink-{number}", sink("a", "b")) for number in range(200)] == [()] * 200
    assert (made.asked, look.notes) == ({"names": 1}, ())


def test_a_topic_that_may_not_be_described_is_not_called_missing(made):
    made.errors["hidden"] = AuthorizationFailed("not allowed to describe topic hidden")
    look = TopicLook(made.services)
    (lack,) = look.lacks("sink", sink("hidden", "absent"))
    assert lack.topics == ("absent",)
    assert look.notes == ("not every topic of sink is known: hidden cannot be described: not allowed to describe topic hidden",)
    assert look.lacks("other", sink("hidden")) == ()


def test_what_the_brokers_create_is_uncertain_where_they_may_not_be_described(made):
    made.errors["settings"] = AuthorizationFailed("not allowed")
    (lack,) = TopicLook(made.services).lacks("sink", sink("absent"))
    assert (lack.sure, lack.text) == (False, "absent does not exist: unless the brokers create it, nothing is read from there")


def test_topics_of_another_cluster_are_not_missed(made):
    made.about["kafka_cluster_id"] = "another"
    look = TopicLook(made.services)
    assert look.lacks("sink", sink("absent")) == ()
    assert "Connect belongs to another Kafka cluster" in look.notes[0]


def test_brokers_that_do_not_answer_are_asked_once(made):
    made.errors["names"] = Unreachable("no broker answers")
    look = TopicLook(made.services)
    assert [look.lacks(name, sink("a")) for name in ("one", "two")] == [(), ()]
    assert (made.asked["names"], look.notes) == (1, ("whether the connectors' topics exist is not known: no broker answers",))

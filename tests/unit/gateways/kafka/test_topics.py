"""A topic that is created again under the name of one that was deleted, with a broker that is behind."""

from concurrent.futures import Future
from types import SimpleNamespace

from kops.core.errors import NotFound
from kops.core.models import NewTopic
from kops.core.plan import Item, Status
from kops.gateways.kafka.topics import Topics
from kops.operations.state.internal_topics import TopicChange, change_topics


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

import pytest

from kops.core.errors import Refused
from kops.core.models import Bounds, NewTopic, TopicPartition
from kops.core.statefile import parse_state_file
from kops.operations.state.into import renamed, with_topics


def state_file(**store):
    body = {"from": {"topic": "in", "key": "string", "value": "long"}, "key_by": "value", "aggregate": {"count": True}, **store}
    return parse_state_file("f.yaml", {"application": "a", "stores": {"s": body}})


def test_a_state_file_for_another_application():
    (store,) = renamed(state_file(), "b").stores
    assert (store.changelog, store.repartition_topic, store.source.topic) == ("b-s-changelog", "b-s-repartition", "in")
    with pytest.raises(Refused, match="does not begin with a-"):
        renamed(state_file(changelog="mine"), "b")


class _Nothing:
    """A cluster without topics, which is asked only for what it has."""

    kafka = property(lambda self: self)
    topics = offsets = property(lambda self: self)

    def existing(self, names):
        assert list(names) == []
        return {}

    def settings(self, names):
        assert list(names) == []
        return {}


def test_topics_that_are_planned_are_there_and_empty():
    services = with_topics(_Nothing(), [NewTopic("new", 2, None, {"cleanup.policy": "compact"})])
    found = services.kafka.topics.existing(["new"])
    assert len(found["new"].partitions) == 2
    assert services.kafka.topics.settings(["new"])["new"]["cleanup.policy"].value == "compact"
    partitions = [TopicPartition("new", number) for number in range(2)]
    assert services.kafka.offsets.bounds(partitions, isolation="read_committed") == dict.fromkeys(partitions, Bounds(0, 0))

"""The arguments of the undo of a replay, as 0.1 wrote them too."""

from kops.core.models import TopicPartition
from kops.operations.replay.run import ReplayTruncation

BODY = {"below": {"orders-copy:0": 3, "orders-copy:1": 5}, "replay": "kops-replay-20261123T024200-abc123", "partitions": [0, 1]}


def test_arguments_are_read_back():
    found = ReplayTruncation.of_json(BODY)
    assert found.below == {TopicPartition("orders-copy", 0): 3, TopicPartition("orders-copy", 1): 5}
    assert found.partitions == (0, 1)
    assert found.as_json() == BODY

"""What is going to be read is shown before it is: records, and bytes as far as the brokers report them."""

from types import SimpleNamespace

import pytest

from kops.core.cluster.models import LogDir, ReplicaOnDisk
from kops.core.errors import AuthorizationFailed, Unreachable
from kops.core.models import Bounds, TopicPartition
from kops.operations.state.input_offsets import amount_text
from kops.spark.reading.ranges import TopicRange

INPUT = TopicRange("in", {0: (0, 1_000), 1: (500, 1_500), 2: (0, 0)})
CHANGELOG = TopicRange("changelog", {0: (0, 100)})


def services(answers, bounds):
    log_dirs = SimpleNamespace(describe_or_errors=lambda *_: answers)
    offsets = SimpleNamespace(bounds=lambda places: {place: bounds[place] for place in places})
    cluster = SimpleNamespace(brokers=[SimpleNamespace(id=broker) for broker in answers])
    return SimpleNamespace(kafka=SimpleNamespace(cluster=lambda: cluster, log_dirs=log_dirs, offsets=offsets))


def on_disk(broker, **sizes):
    places = {"in0": TopicPartition("in", 0), "in1": TopicPartition("in", 1), "changelog0": TopicPartition("changelog", 0)}
    return (LogDir(broker, "/data", tuple(ReplicaOnDisk(places[name], size) for name, size in sizes.items())),)


BOUNDS = {
    TopicPartition("in", 0): Bounds(0, 1_000),
    TopicPartition("in", 1): Bounds(0, 2_000),
    TopicPartition("changelog", 0): Bounds(0, 100),
}


def test_bytes_are_the_share_of_the_largest_replica():
    known = services({1: on_disk(1, in0=10_240, in1=20_480, changelog0=512), 2: on_disk(2, in0=10_000)}, BOUNDS)
    assert amount_text(known, [INPUT], [CHANGELOG]) == "2,000 records (about 20.0 KiB), and 100 (about 512 B) of changelogs"


@pytest.mark.parametrize(
    "answers",
    [{1: AuthorizationFailed("no DESCRIBE on the cluster")}, {1: on_disk(1, in0=10_240), 2: Unreachable("broker 2 is down")}],
    ids=["not allowed", "a broker is down"],
)
def test_bytes_that_are_not_known_are_left_out(answers):
    assert amount_text(services(answers, BOUNDS), [INPUT], [CHANGELOG]) == "2,000 records, and 100 of changelogs"


def test_an_empty_changelog_is_not_worth_a_word():
    known = services({1: on_disk(1, in0=1_024)}, BOUNDS)
    assert amount_text(known, [TopicRange("in", {0: (0, 500)})], [TopicRange("changelog", {0: (0, 0)})]) == "500 records (about 512 B)"

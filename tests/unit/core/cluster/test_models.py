"""Log directories: what a broker answers, and an answer that is a refusal. What is known of releases."""

import pytest

from kops.config.connection import Connection
from kops.core.cluster.models import METADATA_VERSIONS, NEWEST_KNOWN, LogDir, ReplicaOnDisk, oldest_release, release_of, sizes_by_replica
from kops.core.errors import AuthorizationFailed
from kops.core.models import TopicPartition
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.cluster_details import LogDirs


def part(number, size, **more):
    return {"partition_index": number, "partition_size": size, "offset_lag": 0, "is_future_key": False} | more


def described(*log_dirs):
    """Ask broker 7, whose answer is given."""
    gateway = LogDirs(Client(Connection(("127.0.0.1:1",))))
    gateway._wire.brokers_or_errors = lambda ids, doing, request: {7: {"results": list(log_dirs)}}
    return gateway.describe_or_errors([7])[7]


def test_an_answer():
    good = {"error_code": 0, "log_dir": "/a", "topics": [{"name": "t", "partitions": [part(1, 20), part(0, 10)]}], "total_bytes": 100}
    found = described(good | {"usable_bytes": -1}, {"error_code": 56, "log_dir": "/b", "topics": []})
    assert [(one.path, one.size, one.total_bytes, one.usable_bytes) for one in found] == [("/a", 30, 100, None), ("/b", 0, None, None)]
    assert [one.partition.partition for one in found[0].replicas] == [0, 1]
    assert found[0].problem == ""
    assert "disk" in found[1].problem.lower()


def test_an_empty_answer_is_a_refusal():
    assert isinstance(described(), AuthorizationFailed)


def test_sizes_leave_out_what_is_being_moved():
    place = TopicPartition("t", 0)
    one = LogDir(1, "/a", (ReplicaOnDisk(place, 10),))
    two = LogDir(2, "/b", (ReplicaOnDisk(place, 12),))
    moving = LogDir(2, "/c", (ReplicaOnDisk(place, 3, future=True),))
    assert sizes_by_replica([one, two, moving]) == {place: {1: 10, 2: 12}}


@pytest.mark.parametrize(
    ("level", "by_requests", "exact", "at_least"),
    [
        (30, "4.3", "4.3", "4.3"),  # 4.3.1
        (33, "4.3", None, "4.4"),  # 4.4.0, whose requests no release of kafka-python tells from those of 4.3
        (34, "4.3", None, "4.4"),  # what comes after it
        (31, "4.3", None, "4.3"),  # 4.3.1 with unstable.feature.versions.enable, which lets a level of 4.4 in
        (21, "3.9", "3.9", "3.9"),
        (None, "3.9", None, "3.9"),  # with ZooKeeper
        (21, "4.1", None, "4.1"),  # not Apache's: it has the requests of a newer one
        (2, "3.1", None, "3.1"),
    ],
)
def test_a_release_is_exact_only_where_the_next_one_supports_more(level, by_requests, exact, at_least):
    found = release_of(level, by_requests)
    assert (found.exact, found.at_least) == (exact, at_least)
    assert found.text == (exact or f"{at_least} or newer" + (", metadata.version up to 34" if level == 34 else ""))
    assert METADATA_VERSIONS[-1].startswith(NEWEST_KNOWN)


def test_what_is_known_of_all_brokers_together():
    one, other, newest = release_of(29, "4.2"), release_of(30, "4.3"), release_of(33, "4.3")
    assert oldest_release([]) is None
    assert oldest_release([other, other]) == other
    assert oldest_release([other, one]).text == "4.2 or newer"
    assert oldest_release([newest, one, other]).text == "4.2 or newer"

"""Archives of inputs: which offsets come from where, and what is refused before anything is read."""

from types import SimpleNamespace

import pytest

from kops.core.errors import UsageProblem
from kops.core.models import Bounds, Partition, Topic, TopicPartition
from kops.core.statefile import parse_state_file
from kops.operations.archive.manifest import Archive, Run
from kops.operations.archive.place import ArchivePlace
from kops.operations.state import archived_input
from kops.operations.state.archived_input import archived_findings, cleanup_policy, open_archives, with_archives
from kops.operations.state.from_archive import with_shares
from kops.operations.state.input_offsets import InputOffsets
from kops.spark.reading.archive import ArchivedTopic
from kops.spark.reading.ranges import TopicRange
from support.verdicts import DOUBT, kinds


def run(ranges, records):
    return Run("r", "", ranges, {number: {"records": count} for number, count in records.items()})


def archive(*runs, partitions=2, **changes):
    known = {"topic": "orders", "topic_id": "id", "cluster_id": "here", "replication_factor": 1, "settings": {}, "by": "day"}
    return Archive(**{**known, "partitions": partitions, "taken": "", "kops": "", "runs": runs, **changes})


TWO_RUNS = archive(run({0: (0, 10), 1: (0, 5)}, {0: 10, 1: 5}), run({0: (10, 20), 1: (5, 5)}, {0: 8}))


def state_file(guarantee="exactly_once_v2", **fields):
    store = {"from": {"topic": "orders", "key": "string", "value": "long"}, "aggregate": {"count": True}}
    return parse_state_file("f", {"application": "a", "streams": {"guarantee": guarantee, **fields}, "stores": {"s": store}})


@pytest.fixture
def opened(monkeypatch):
    """Open archives as they are given, of a topic with these bounds."""

    def run_it(given, logs, paths=("/archive",), cluster_id="here"):
        monkeypatch.setattr(archived_input, "open_archive", lambda _engine, path: (ArchivePlace(path), given))
        topic = Topic("orders", tuple(Partition(number, 1, (1,), (1,)) for number in logs), "id")
        bounds = {TopicPartition("orders", number): bound for number, bound in logs.items()}
        kafka = SimpleNamespace(
            cluster=lambda: SimpleNamespace(cluster_id=cluster_id),
            topics=SimpleNamespace(existing=lambda _names: {"orders": topic}),
            offsets=SimpleNamespace(bounds=lambda _places: bounds),
        )
        return open_archives(SimpleNamespace(services=SimpleNamespace(kafka=kafka)), state_file(), paths), bounds

    return run_it


def test_what_is_read_of_the_archive_and_what_of_the_topic():
    some = ArchivedTopic("orders", (), {0: 20, 1: 5})
    old, tail = some.divided(TopicRange("orders", {0: (0, 30), 1: (2, 4), 2: (7, 9)}))
    assert (old.ranges, tail.ranges) == ({0: (0, 20), 1: (2, 4), 2: (7, 7)}, {0: (20, 30), 1: (4, 4), 2: (7, 9)})
    after, alone = some.divided(TopicRange("orders", {0: (25, 30)}))
    assert (after.records, alone.ranges) == (0, {0: (25, 30)})


def test_the_topic_counts_as_if_it_had_what_the_archive_has(opened):
    found, bounds = opened(TWO_RUNS, {0: Bounds(20, 40), 1: Bounds(3, 40)})
    assert with_archives(bounds, found) == {TopicPartition("orders", 0): Bounds(0, 40), TopicPartition("orders", 1): Bounds(0, 40)}
    assert found["orders"].without_record == 2
    assert not list(archived_findings(state_file(), state_file().stores[0], found))
    loose = state_file("at_least_once")
    (judged,) = archived_findings(loose, loose.stores[0], found)
    assert (kinds([judged]), "2 offsets of orders have no record" in judged.summary) == ([DOUBT], True)
    assert cleanup_policy("delete", found["orders"]) == "delete"


def test_a_topic_that_has_more_than_its_archive_is_read_alone(opened):
    found, bounds = opened(archive(run({0: (5, 10)}, {0: 5})), {0: Bounds(0, 40), 1: Bounds(0, 40)})
    assert with_archives(bounds, found) == bounds
    assert ["orders:0 itself has more" in note for note in found["orders"].notes] == [True, False]
    assert "orders:1 is not in the archive" in found["orders"].notes[1]


@pytest.mark.parametrize(
    ("given", "logs", "said"),
    [
        (archive(topic="sales"), {0: Bounds(0, 1)}, "of which no store is made"),
        (archive(cluster_id="there"), {0: Bounds(0, 1), 1: Bounds(0, 1)}, "of cluster there, and this is here"),
        (archive(topic_id="other"), {0: Bounds(0, 1), 1: Bounds(0, 1)}, "deleted and recreated"),
        (archive(), {0: Bounds(0, 1)}, "with 2 partitions, and it has 1"),
        (TWO_RUNS, {0: Bounds(0, 15), 1: Bounds(0, 9)}, "up to offset 20, and it ends at 15"),
    ],
)
def test_an_archive_of_something_else_is_refused(opened, given, logs, said):
    with pytest.raises(UsageProblem, match=said):
        opened(given, logs)


def test_two_archives_of_one_topic_are_refused(opened):
    with pytest.raises(UsageProblem, match="/b and /a are both archives of orders"):
        opened(TWO_RUNS, {0: Bounds(0, 40), 1: Bounds(0, 40)}, paths=("/a", "/b"))


@pytest.mark.parametrize(
    ("given", "starts", "said"),
    [
        (TWO_RUNS, (22, 0), "orders:0 from offset 20 to 22"),
        (archive(run({0: (0, 10)}, {0: 10}), run({0: (12, 30)}, {0: 18})), (25, 0), "orders:0 from offset 10 to 12"),
    ],
    ids=["behind the archive", "in the archive"],
)
def test_a_gap_before_the_cut_is_refused(opened, given, starts, said):
    found, _ = opened(given, {number: Bounds(start, 40) for number, start in enumerate(starts)})
    cut = InputOffsets({TopicPartition("orders", 0): 35, TopicPartition("orders", 1): 2}, {})
    with pytest.raises(UsageProblem, match=said) as refused:
        with_shares(SimpleNamespace(), found, cut, SimpleNamespace(), {TopicPartition("orders", 0): 11})
    assert len(refused.value.details["gaps"]) == 1

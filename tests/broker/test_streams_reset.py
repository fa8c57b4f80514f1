"""`kops streams reset` where the cluster moves, beside neighbours, interrupted. The applications here are groups and topics alone."""

import json
from dataclasses import dataclass

import pytest

from kops.cli.frame.session import Session
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.plan import Status, plan_of_document
from kops.operations.streams.mutation import RESET
from support.consumer_groups import member
from support.programs import Record
from support.streams_apps import wait_for

pytestmark = pytest.mark.broker

STREAM_TIME = "AgAAAAAAAACC"
"""What Kafka Streams stores with an offset: stream time 130."""


@dataclass(frozen=True)
class Left:
    """What an application left behind."""

    cluster: object
    name: str

    @property
    def internal(self):
        return {f"{self.name}-counts-changelog", f"{self.name}-counts-repartition"}

    @property
    def topic(self):
        return f"{self.name}-input"

    def topics(self):
        return set(self.cluster.topics(self.name))


@pytest.fixture
def left(cluster, groups, unique):
    name = unique()
    made = Left(cluster, name)
    cluster.create_all({made.topic: 2, f"{name}-counts-changelog": 2, f"{name}-counts-repartition": 2})
    wait_for("the broker to know them", lambda: made.topics() >= {*made.internal, made.topic})
    records = [Record(b"k", b"v", 1_700_000_000_000 + at, partition=at % 2) for at in range(20)]
    cluster.produce_all({made.topic: records, f"{name}-counts-changelog": records[:4]})
    cluster.commit(name, {(made.topic, 0): 7, (made.topic, 1): 5, (f"{name}-counts-repartition", 0): 0})
    yield made
    groups.delete([name, f"{name}-v2"])
    cluster.delete_all(cluster.topics(name))


def test_a_neighbour_with_a_group_is_not_even_doubted(left, kops):
    neighbour = f"{left.name}-v2-counts-changelog"
    left.cluster.create(neighbour)
    left.cluster.commit(f"{left.name}-v2", {(left.topic, 0): 3})
    done = kops("streams", "reset", left.name, "--confirm", left.name, "-o", "json").ok().json
    assert {item["target"] for item in done["items"]} == {*left.internal, f"{left.topic}:0", f"{left.topic}:1"}
    assert left.topics() == {left.topic, neighbour}
    assert left.cluster.committed(left.name) == {(left.topic, 0): 0, (left.topic, 1): 0}
    assert left.cluster.committed(f"{left.name}-v2") == {(left.topic, 0): 3}


def test_a_neighbour_without_a_group_ends_the_command_until_the_topics_are_named(left, kops):
    neighbour = f"{left.name}-v2-counts-changelog"
    left.cluster.create(neighbour)
    refused = kops("streams", "reset", left.name, "--confirm", left.name)
    assert (refused.code, f"{left.name}-v2, whose group is gone" in refused.err) == (5, True)
    named = ",".join(sorted(left.internal))
    kops("streams", "reset", left.name, "--internal-topics", named, "--confirm", left.name).ok()
    assert left.topics() == {left.topic, neighbour}


def test_only_the_named_partitions_and_topics_are_reset(left, kops):
    arguments = ("--input-topic", f"{left.topic}:1", "--to-offset", "3", "--internal-topic", f"{left.name}-counts-changelog")
    kops("streams", "reset", left.name, *arguments, "--confirm", left.name).ok()
    assert left.topics() == {left.topic, f"{left.name}-counts-repartition"}
    assert left.cluster.committed(left.name) == {(left.topic, 0): 7, (left.topic, 1): 3, (f"{left.name}-counts-repartition", 0): 0}


@pytest.mark.parametrize(
    "wrong", [("--internal-topic", "no-such-topic"), ("--internal-topic", "{topic}"), ("--input-topic", "no-such-topic")]
)
def test_topics_that_are_not_its_own_are_refused(left, kops, wrong):
    refused = kops("streams", "reset", left.name, *(word.format(topic=left.topic) for word in wrong), "--confirm", left.name)
    assert refused.code in (1, 5), refused.err
    assert left.internal <= left.topics()


def test_two_strategies_are_refused(left, kops):
    refused = kops("streams", "reset", left.name, "--to-offset", "0", "--to-latest", "--confirm", left.name)
    assert (refused.code, "exclude each other" in refused.err) == (2, True)
    named_twice = kops("streams", "reset", left.name, "--application-id", left.name, "--confirm", left.name)
    assert named_twice.code == 2
    plan = kops("streams", "reset", left.name, "--to-offset", "0", "--dry-run", "-o", "json").ok().json
    assert [item["reason"] for item in plan["items"] if ":" in item["target"]] == ["", ""]


def test_what_moved_since_the_plan_ends_it_before_any_change(left, kops, tmp_path):
    for number, move in enumerate(
        (
            lambda: left.cluster.commit(left.name, {(left.topic, 0): 8}),
            lambda: left.cluster.recreate(f"{left.name}-counts-changelog"),
        )
    ):
        plan = tmp_path / f"{number}.json"
        kops("streams", "reset", left.name, "--plan-out", plan).ok()
        move()
        refused = kops("apply", plan, "--confirm", left.name)
        assert (refused.code, "since the plan was made" in refused.err) == (5, True), refused.err
        assert left.internal <= left.topics()
        assert left.cluster.committed(left.name)[left.topic, 0] == 8


def test_a_member_that_joins_meanwhile_keeps_everything(left, kops, tmp_path):
    plan = tmp_path / "plan.json"
    kops("streams", "reset", left.name, "--plan-out", plan).ok()
    with member(left.cluster.servers, left.name, left.topic):
        refused = kops("apply", plan, "--confirm", left.name)
        assert refused.code == 5
        assert left.internal <= left.topics()


def test_only_topics_are_left(left, kops, groups):
    groups.delete([left.name])
    shown = kops("streams", "describe", left.name, "-o", "json").ok().json
    assert (shown["state"], {one["topic"] for one in shown["internal_topics"]}) == ("GONE", left.internal)
    done = kops("streams", "reset", left.name, "--confirm", left.name, "-o", "json").ok()
    assert left.topics() == {left.topic}
    refused = kops("undo", done.json["journal_id"], "--yes")
    assert (refused.code, "their records are gone" in refused.err) == (5, True)


def test_stream_time_is_forgotten_and_comes_back_with_undo(left, kops, groups):
    at = TopicPartition(left.topic, 0)
    assert groups.commit(left.name, {at: CommittedOffset(0, STREAM_TIME)}) == {at: None}
    done = kops("streams", "reset", left.name, "--confirm", left.name, "-o", "json").ok().json
    assert groups.committed([left.name])[left.name][at] == CommittedOffset(0, "")
    kops("undo", done["journal_id"], "--yes").ok()
    assert groups.committed([left.name])[left.name][at] == CommittedOffset(0, STREAM_TIME)


def test_a_reset_that_was_interrupted_is_finished(left, kops, broker, tmp_path):
    path = tmp_path / "plan.json"
    kops("streams", "reset", left.name, "--plan-out", path).ok()
    plan = RESET.typed(plan_of_document(json.loads(path.read_text())))
    with Session({"bootstrap_server": broker.bootstrap_servers, "quiet": True}) as session, session.permit.granted():
        begun = RESET.apply(session, plan)
        assert [next(begun).status for _ in range(2)] == [Status.DONE, Status.DONE]
        begun.close()  # the offsets are moved, and nothing is deleted yet
        rest = RESET.resume(session, plan)
        assert {item.target for item in rest.changes} == left.internal
        RESET.check(session, rest)
        results = RESET.verify(session, rest, list(RESET.apply(session, rest)))
        assert {result.target: result.status for result in results} == dict.fromkeys(left.internal, Status.DONE)
    assert left.topics() == {left.topic}


def test_a_group_of_plain_consumers_is_named_as_such(left, kops, cluster):
    cluster.delete(*left.internal)
    plan = kops("streams", "reset", left.name, "--dry-run").ok()
    assert "a group of plain consumers looks the same" in plan.err
    with member(left.cluster.servers, left.name, left.topic):
        refused = kops("streams", "describe", left.name)
        assert (refused.code, "not a Kafka Streams application" in refused.err) == (5, True)

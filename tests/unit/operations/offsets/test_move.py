"""One mover for one group and for many: refused, partly done, read back, in a cluster in memory."""

import json
from types import SimpleNamespace

import pytest

from kops.core.errors import GroupActive, OperationFailed, TimedOut
from kops.core.models import CommittedOffset, TopicPartition
from support.groups_in_memory import GroupsInMemory

AT_FIVE = {"orders:0": [5, "", None], "orders:1": [5, "", None]}
STREAM_TIME = "AgAAAAAAAACC"


@pytest.fixture
def cluster(monkeypatch):
    bounds = {"orders:0": (0, 10), "orders:1": (0, 10)}
    made = GroupsInMemory.of_json(bounds, {"a": AT_FIVE, "b": AT_FIVE}, "cluster-1")
    monkeypatch.setattr("kops.gateways.kafka.Kafka", lambda *_, **__: made)
    return made


@pytest.fixture
def kops(run_kops):
    return lambda *words: run_kops(*words, "-B", "127.0.0.1:9")


@pytest.fixture
def plan_file(kops, tmp_path):
    """Save the plan of a reset to the earliest offsets."""

    def save(*groups):
        file = tmp_path / "plan.json"
        kops("offsets", "reset", *groups, "--topic", "orders", "--to-earliest", "--plan-out", file).ok()
        return file

    return save


def offsets(cluster, group):
    return [cluster.commits[group][TopicPartition("orders", number)].offset for number in (0, 1)]


def statuses(kops):
    return [entry["status"] for entry in kops("journal", "list", "-o", "json").ok().json]


def test_active_group_is_refused_before_an_entry_is_written(kops, cluster, plan_file):
    file = plan_file("a")
    cluster.members.add("a")
    refused = kops("apply", file, "--yes", "-o", "json")
    assert (refused.code, statuses(kops), offsets(cluster, "a")) == (5, [], [5, 5])


def test_group_that_committed_since_is_refused_before_an_entry_is_written(kops, cluster, plan_file):
    file = plan_file("a")
    cluster.commits["a"][TopicPartition("orders", 1)] = CommittedOffset(6)
    assert (kops("apply", file, "--yes").code, statuses(kops), offsets(cluster, "a")) == (5, [], [5, 6])


def test_of_many_the_idle_ones_are_moved(kops, cluster, plan_file):
    file = plan_file("a", "b")
    cluster.members.add("a")
    partial = kops("apply", file, "--yes", "-o", "json")
    assert (partial.code, partial.json["status"]) == (6, "partial")
    assert {error["target"].split()[0]: error["code"] for error in partial.json["errors"]} == {"a": "group_active"}
    assert (offsets(cluster, "a"), offsets(cluster, "b")) == ([5, 5], [0, 0])


@pytest.mark.parametrize("groups", [("a",), ("a", "b")])
def test_group_joined_after_the_check_is_refused_by_the_broker(kops, cluster, plan_file, groups, monkeypatch):
    file = plan_file(*groups)
    refusal = GroupActive("group has members")
    monkeypatch.setattr(cluster, "begin_commit", lambda *_: SimpleNamespace(errors=lambda: refusal), raising=False)
    assert (kops("apply", file, "--yes").code, statuses(kops)) == (5, ["refused"])


@pytest.mark.parametrize(
    ("groups", "error", "status", "code"),
    [
        (("a",), OperationFailed("no"), "failed", 6),
        (("a", "b"), OperationFailed("no"), "failed", 6),
        (("a",), TimedOut("late"), "unknown", 6),
    ],
)
def test_partition_that_fails_does_not_hide_the_others(kops, cluster, plan_file, monkeypatch, groups, error, status, code):
    file = plan_file(*groups)
    commit = cluster.begin_commit

    def partly(name, wanted):
        ((topic, pairs),) = wanted.items()
        commit(name, {topic: [(number, offset) for number, offset in pairs if number]})
        return SimpleNamespace(errors=lambda: {TopicPartition(topic, 0): error})

    monkeypatch.setattr(cluster, "begin_commit", partly, raising=False)
    partial = kops("apply", file, "--yes", "-o", "json")
    assert partial.code == code
    assert {item["target"].rpartition(":")[2]: item["status"] for item in partial.json["items"]} == {"0": status, "1": "done"}
    monkeypatch.undo()
    assert offsets(cluster, "a") == [5, 0]


@pytest.mark.parametrize("groups", [("a",), ("a", "b")])
def test_commit_that_did_not_happen_is_seen_when_read_back(kops, cluster, plan_file, monkeypatch, groups):
    file = plan_file(*groups)
    monkeypatch.setattr(cluster, "begin_commit", lambda *_: SimpleNamespace(errors=dict), raising=False)
    failed = kops("apply", file, "--yes", "-o", "json")
    assert (failed.code, {error["code"] for error in failed.json["errors"]}) == (1, {"verification_failed"})


def test_lost_connection_leaves_the_outcome_of_one_group_unknown(kops, cluster, plan_file, monkeypatch):
    file = plan_file("a")
    monkeypatch.setattr(cluster, "begin_commit", lambda *_: SimpleNamespace(errors=lambda: TimedOut("no answer")), raising=False)
    lost = kops("apply", file, "--yes")
    assert (lost.code, statuses(kops)) == (4, ["unknown"])


def test_metadata_that_something_else_wrote_is_seen_when_read_back(kops, cluster, plan_file, monkeypatch):
    file = plan_file("a")

    def commit(name, wanted):
        for topic, pairs in wanted.items():
            cluster.commits[name] |= {TopicPartition(topic, number): CommittedOffset(offset, "text") for number, offset in pairs}
        return SimpleNamespace(errors=dict)

    monkeypatch.setattr(cluster, "begin_commit", commit, raising=False)
    failed = kops("apply", file, "--yes", "-o", "json")
    assert {error["code"] for error in failed.json["errors"]} == {"verification_failed"}


def test_stream_time_is_kept_forward_and_dropped_backward(kops, cluster):
    cluster.commits["a"] = {TopicPartition("orders", number): CommittedOffset(5, STREAM_TIME) for number in (0, 1)}
    kops("offsets", "seek", "a", "orders:0=7", "orders:1=3", "--yes").ok()
    assert [cluster.commits["a"][TopicPartition("orders", number)] for number in (0, 1)] == [
        CommittedOffset(7, STREAM_TIME),
        CommittedOffset(3),
    ]


def test_deletion_that_cannot_be_undone_says_so_first(kops, cluster):
    cluster.commits["empty"] = {}
    planned = kops("groups", "delete", "empty", "--dry-run").ok()
    assert planned.err.startswith("warning: this cannot be undone\n")
    assert planned.err.count("cannot be undone") == 1
    assert kops("groups", "delete", "empty", "--dry-run", "-o", "json").ok().json["warnings"] == ["this cannot be undone"]
    assert "cannot be undone" not in kops("groups", "delete", "a", "--dry-run").ok().err
    assert "this cannot be undone" not in kops("groups", "delete", "a", "--dry-run", "-o", "json").ok().json["warnings"]


def test_saved_plan_and_entry_say_that_it_cannot_be_undone(kops, cluster, tmp_path):
    cluster.commits["empty"] = {}
    kops("groups", "delete", "empty", "--plan-out", tmp_path / "plan").ok()
    done = kops("apply", tmp_path / "plan", "--confirm", "empty").ok()
    assert done.err.count("warning: this cannot be undone\n") == 1
    assert kops("journal", "show", "last", "-o", "json").ok().json["plan"]["warnings"] == ["this cannot be undone"]


def test_long_plan_says_what_it_skips_in_all(kops, cluster):
    for number in range(60):
        cluster.commits[f"many-{number}"] = {TopicPartition("orders", at): CommittedOffset(5) for at in (0, 1)}
    shown = kops("offsets", "reset", "many-*", "--all-topics", "--to-latest", "--yes").ok()
    assert "skips 600 unread offsets" in shown.err
    plan = kops("offsets", "reset", "many-*", "--all-topics", "--to-earliest", "--dry-run", "-o", "json").ok().json
    assert (len(plan["items"]), json.dumps(plan["arguments"]).count('"group"')) == (120, 60)

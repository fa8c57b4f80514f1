"""One mover for one group and for many: refused, partly done, read back, in a cluster in memory."""

import json
from types import SimpleNamespace

import pytest

from kops.core.errors import GroupActive, OperationFailed, TimedOut
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.plan import Plan, plan_document
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


@pytest.mark.parametrize("options", [("a",), ("a", "b"), ("[ab]",)])
def test_plans_of_one_group_and_of_many_have_one_format(kops, cluster, options):
    plan = kops("offsets", "reset", *options, "--topic", "orders", "--to-earliest", "-n", "-o", "json").ok().json
    assert (plan["operation"], set(plan["arguments"]), set(plan["guard"])) == ("offsets.move", {"moves", "within_log"}, {"groups"})
    topic = {"topic": "orders", "partitions": [0, 1], "before": {"offsets": [5, 5]}, "after": {"offsets": [0, 0]}, "reasons": ["log start"]}
    assert {json.dumps(moves["topics"]) for moves in plan["arguments"]["moves"]} == {json.dumps([topic])}
    named = options == ("a",)
    assert plan["items"][0]["target"] == ("orders:0" if named else "a orders:0")
    assert [moves.get("alone", False) for moves in plan["arguments"]["moves"]] == ([True] if named else [False, False])


def test_several_strategies_of_one_group_are_a_plan_of_one_group(kops, cluster):
    mixed = ("--topic", "orders:0", "--to-earliest", "--topic", "orders:1", "--to-latest")
    plan = kops("offsets", "reset", "a", *mixed, "-n", "-o", "json").ok().json
    assert plan["summary"] == "reset group a: orders:0,1"
    assert [(item["target"], item["after"]) for item in plan["items"]] == [("orders:0", 0), ("orders:1", 10)]


def test_plan_in_the_earlier_format_of_one_group_is_refused_in_a_line(kops, cluster, tmp_path):
    plan = Plan("offsets.move", "s", "cluster-1", "x", (), arguments={"group": "a", "write": {}, "prior": {}, "new_group": False})
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan_document(plan)))
    refused = kops("apply", file, "--yes")
    assert (refused.code, refused.err) == (
        2,
        "kops: error: this kops cannot carry out offsets in the format of this plan\nhint: make the plan again\n",
    )


def test_undo_warns_of_offsets_that_the_log_no_longer_has_for_one_group_and_for_many(kops, cluster):
    for groups in (("a",), ("a", "b")):
        kops("offsets", "reset", *groups, "--topic", "orders", "--to-latest", "--yes").ok()
        cluster.ends = dict.fromkeys(cluster.ends, (7, 10))
        warned = kops("undo", "last", "--dry-run").ok().err
        assert warned.count("the log has 7 to 10, not 5: consumers will follow auto.offset.reset") == 2
        cluster.ends = dict.fromkeys(cluster.ends, (0, 10))
        kops("undo", "last", "--yes").ok()


def test_undo_of_many_groups_goes_on_without_a_partition_that_is_gone(kops, cluster):
    kops("offsets", "reset", "a", "b", "--topic", "orders", "--to-latest", "--yes").ok()
    del cluster.ends[TopicPartition("orders", 1)]
    assert "there is no partition orders:1: its offsets cannot be committed" in kops("undo", "last", "--dry-run").ok().err


def test_what_is_written_wrong_in_a_file_is_found_before_a_group_is_looked_at(kops, cluster, tmp_path):
    file = tmp_path / "offsets.csv"
    file.write_text("b,orders,0,1\n")
    cluster.members.add("a")
    refused = kops("offsets", "reset", "a", "--from-file", file, "--yes")
    assert (refused.code, f"{file} has no offsets of group a" in refused.err) == (2, True)

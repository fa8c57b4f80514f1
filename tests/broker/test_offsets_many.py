"""Many groups moved by one plan on the real broker: patterns, mixes, files; what is left alone, refused, and undone."""

import contextlib
import json
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace

import pytest
from confluent_kafka.admin import AdminClient

from kops.config.connection import Connection
from kops.core.errors import UndecodableRecord
from kops.core.models import CommittedOffset, TopicPartition
from kops.gateways.kafka import Kafka
from kops.gateways.kafka import client as client_module
from support.consumer_groups import STREAM_TIME_130, member, visible, visitor
from support.patience import HANG_SECONDS
from support.programs import Record

pytestmark = pytest.mark.broker


@pytest.fixture
def name(unique, groups):
    """A beginning of names; the groups that begin so are deleted."""
    prefix = unique("many")
    yield prefix
    groups.delete([group for group in groups.ids() if group.startswith(prefix)])


@pytest.fixture
def world(name, topic, cluster):
    """Two topics of two partitions with ten records each; three groups at 5 in the first, two of them also in the second."""
    make = topic
    one, two = make(name=f"{name}-one", partitions=2), make(name=f"{name}-two", partitions=2)
    times = range(1_000_000, 1_000_010)
    cluster.produce_all({one: [Record(None, b"x", at, partition=p) for p in (0, 1) for at in times]})
    cluster.produce_all({two: [Record(None, b"x", at, partition=p) for p in (0, 1) for at in times]})
    for group, topics in (("a", (one, two)), ("b", (one, two)), ("c", (one,))):
        cluster.commit(f"{name}-{group}", {(topic, partition): 5 for topic in topics for partition in (0, 1)})
    return name


def offsets(cluster, group):
    """What a group has committed, by the last word of the topic and the partition."""
    return {f"{topic.rpartition('-')[2]}:{partition}": offset for (topic, partition), offset in cluster.committed(group).items()}


BEFORE = {"a": {"one:0": 5, "one:1": 5, "two:0": 5, "two:1": 5}, "c": {"one:0": 5, "one:1": 5}}
BEFORE["b"] = BEFORE["a"]


def standing(cluster, world):
    return {group: offsets(cluster, f"{world}-{group}") for group in "abc"}


def test_groups_and_topics_by_globs_are_one_plan_and_one_undo(kops, cluster, world):
    done = kops("offsets", "reset", f"{world}-[ab]", "--topic", f"{world}-t*:1", "--to-earliest", "--yes", "-o", "json").ok().json
    assert done["status"] == "done"
    assert [item["target"] for item in done["items"]] == [f"{world}-a {world}-two:1", f"{world}-b {world}-two:1"]
    assert [item["value"] for item in done["items"]] == [0, 0]
    moved = {**BEFORE["a"], "two:1": 0}
    assert standing(cluster, world) == {"a": moved, "b": moved, "c": BEFORE["c"]}
    shown = kops("journal", "show", "last", "-o", "csv").ok().out.splitlines()
    assert shown[1:] == [f"{world}-{group} {world}-two:1,move,5,0,done" for group in "ab"]
    kops("undo", "last", "--yes").ok()
    assert standing(cluster, world) == BEFORE


def test_a_pattern_moves_no_group_in_a_topic_that_it_has_not_read(kops, cluster, world):
    by_name = kops("offsets", "reset", f"{world}-*", "--topic", f"{world}-two", "--to-latest", "-n", "-o", "json").ok().json
    assert {item["target"].split()[0] for item in by_name["items"]} == {f"{world}-a", f"{world}-b"}
    everything = (
        kops("offsets", "reset", f"{world}-.", "--regex", "--topic", f"{world}-(one|two):0", "--to-latest", "-n", "-o", "json").ok().json
    )
    assert len(everything["items"]) == 5
    every = kops("offsets", "reset", f"{world}-*", "--all-topics", "--to-latest", "-n", "-o", "json").ok().json
    assert len(every["items"]) == 10
    named = kops("offsets", "reset", f"{world}-b", f"{world}-c", "--topic", f"{world}-two", "--to-latest", "-n", "-o", "json").ok().json
    assert len(named["items"]) == 4


def test_each_topic_moves_by_its_own_strategy(kops, cluster, world):
    mix = ["--topic", f"{world}-one:0", "--to-earliest", "--topic", f"{world}-one:1", "--to", "@1970-01-01T00:16:40.007"]
    kops("offsets", "reset", f"{world}-a", *mix, "--topic", f"{world}-two", "--shift-by", "-2", "--yes").ok()
    assert offsets(cluster, f"{world}-a") == {"one:0": 0, "one:1": 7, "two:0": 3, "two:1": 3}
    kops("offsets", "reset", f"{world}-*", *mix, "--yes").ok()
    assert offsets(cluster, f"{world}-c") == {"one:0": 0, "one:1": 7}
    twice = kops("offsets", "reset", f"{world}-a", *mix, "--topic", f"{world}-o*", "--to-latest", "--yes")
    assert (twice.code, "is named twice" in twice.err) == (2, True)


def test_files_move_several_groups(kops, cluster, world, tmp_path):
    positions = tmp_path / "positions.yaml"
    positions.write_text(
        f"- {{topic: {world}-one, partitions: 0, position: 9}}\n"
        f"- {{group: {world}-a, topic: {world}-two, position: '@1970-01-01T00:16:40.001'}}\n"
    )
    exported = tmp_path / "exported.csv"
    exported.write_text(kops("offsets", "export", f"{world}-*").ok().out)
    kops("offsets", "reset", f"{world}-*", "--from-file", positions, "--yes").ok()
    assert standing(cluster, world) == {
        "a": {"one:0": 9, "one:1": 5, "two:0": 1, "two:1": 1},
        "b": {**BEFORE["b"], "one:0": 9},
        "c": {**BEFORE["c"], "one:0": 9},
    }
    kops("offsets", "reset", f"{world}-*", "--from-file", exported, "--topic", f"{world}-one", "--yes").ok()
    assert standing(cluster, world) == BEFORE | {"a": {**BEFORE["a"], "two:0": 1, "two:1": 1}}
    kops("offsets", "reset", f"{world}-a", "--from-file", exported, "--yes").ok()
    assert standing(cluster, world) == BEFORE


def test_groups_with_members_are_left_alone_and_reported_when_a_pattern_found_them(kops, cluster, broker, world):
    command = ["offsets", "reset", f"{world}-*", "--all-topics", "--to-earliest", "--yes", "-o", "json"]
    with member(broker.bootstrap_servers, f"{world}-b", f"{world}-one"):
        partial = kops(*command)
        assert (partial.code, partial.json["status"]) == (6, "partial")
        assert [(error["target"], error["code"]) for error in partial.json["errors"]] == [(f"{world}-b", "group_active")]
        assert f"warning: left alone, as they have members or cannot be read: {world}-b" in partial.err
        zero = dict.fromkeys(BEFORE["a"], 0)
        assert standing(cluster, world) == {"a": zero, "b": BEFORE["b"], "c": {"one:0": 0, "one:1": 0}}
        kops("undo", partial.json["journal_id"], "--yes").ok()
        assert standing(cluster, world) == BEFORE
        named = kops("offsets", "reset", f"{world}-a", f"{world}-b", "--all-topics", "--to-earliest", "--yes")
        assert (named.code, f"group {world}-b has 1 member" in named.err or "has members" in named.err) == (5, True)
        alone = kops("offsets", "reset", f"{world}-[b]", "--all-topics", "--to-earliest", "--yes")
        assert alone.code == 5
        assert standing(cluster, world) == BEFORE


def test_groups_with_members_that_read_something_else_are_not_in_the_way(kops, cluster, broker, world):
    def reset(groups, *how):
        return kops("offsets", "reset", f"{world}-{groups}", "--topic", f"{world}-two", *how, "--yes", "-o", "json")

    with member(broker.bootstrap_servers, f"{world}-c", f"{world}-one"):
        moved = reset("*", "--to-earliest").ok()
        assert (f"{world}-c" in moved.out + moved.err, standing(cluster, world)["c"]) == (False, BEFORE["c"])
        nothing = reset("[c]", "--to-earliest").ok()
        assert "has members" not in nothing.out + nothing.err
    with member(broker.bootstrap_servers, f"{world}-c", f"{world}-two"):  # what it commits next is of the topic that is reset
        for how in (["--to-latest"], ["--to-offset", "1", "--wait-empty", "1ms"]):
            partial = reset("*", *how)
            assert (partial.code, [error["target"] for error in partial.json["errors"]]) == (6, [f"{world}-c"])


def test_of_a_member_without_an_assignment_it_is_not_known_what_it_reads(kops, broker, world):
    """An assignment that cannot be decoded looks as empty as that of one member more than there are partitions."""
    with contextlib.ExitStack() as members:
        for _ in range(3):
            members.enter_context(member(broker.bootstrap_servers, f"{world}-c", f"{world}-one"))
        partial = kops("offsets", "reset", f"{world}-*", "--topic", f"{world}-two", "--to-latest", "--yes", "-o", "json")
    assert (partial.code, [error["target"] for error in partial.json["errors"]]) == (6, [f"{world}-c"])


def test_one_group_that_moved_since_the_plan_does_not_hold_up_the_others(kops, cluster, world, tmp_path):
    file = tmp_path / "plan.json"
    kops("offsets", "reset", f"{world}-*", "--all-topics", "--to-earliest", "--plan-out", file).ok()
    assert len(json.loads(file.read_text())["items"]) == 10
    cluster.commit(f"{world}-b", {(f"{world}-one", 0): 6})
    partial = kops("apply", file, "--yes", "-o", "json")
    assert partial.code == 6
    assert {error["code"] for error in partial.json["errors"]} == {"state_moved"}
    assert {error["target"].split()[0] for error in partial.json["errors"]} == {f"{world}-b"}
    assert offsets(cluster, f"{world}-b") == {**BEFORE["b"], "one:0": 6}
    assert offsets(cluster, f"{world}-c") == {"one:0": 0, "one:1": 0}
    again = kops("apply", file, "--yes")
    assert (again.code, "changed since the plan was made" in again.err) == (5, True)
    kops("undo", partial.json["journal_id"], "--yes").ok()
    assert standing(cluster, world) == BEFORE | {"b": {**BEFORE["b"], "one:0": 6}}


def test_a_group_that_a_member_joined_since_the_plan_is_refused(kops, cluster, broker, world, tmp_path):
    file = tmp_path / "plan.json"
    kops("offsets", "reset", f"{world}-[ab]", "--all-topics", "--to-earliest", "--plan-out", file).ok()
    with member(broker.bootstrap_servers, f"{world}-a", f"{world}-one"):
        partial = kops("apply", file, "--yes", "-o", "json")
        assert partial.code == 6
        assert {error["code"] for error in partial.json["errors"]} == {"group_active"}
    assert offsets(cluster, f"{world}-a") == BEFORE["a"]


def test_a_plan_is_refused_when_the_log_was_trimmed_since(kops, cluster, world, tmp_path):
    file = tmp_path / "plan.json"
    kops("offsets", "reset", f"{world}-*", "--topic", f"{world}-one", "--to-offset", "1", "--plan-out", file).ok()
    cluster.trim(f"{world}-one", {1: 3})
    refused = kops("apply", file, "--yes")
    assert (refused.code, f"{world}-one:1 no longer has offset 1, it has 3 to 10" in refused.err) == (5, True)
    assert standing(cluster, world) == BEFORE


def test_what_was_committed_comes_back_with_its_metadata(kops, groups, world):
    before = {
        TopicPartition(f"{world}-one", 0): CommittedOffset(5, STREAM_TIME_130, 2),
        TopicPartition(f"{world}-one", 1): CommittedOffset(5, "other"),
    }
    groups.commit(f"{world}-c", before)
    kops("offsets", "reset", f"{world}-*", "--topic", f"{world}-one", "--to-offset", "7", "--yes").ok()
    assert groups.committed([f"{world}-c"])[f"{world}-c"] == {
        TopicPartition(f"{world}-one", 0): CommittedOffset(7, STREAM_TIME_130),
        TopicPartition(f"{world}-one", 1): CommittedOffset(7),
    }
    kops("undo", "last", "--yes").ok()
    assert groups.committed([f"{world}-c"])[f"{world}-c"] == before


def test_groups_that_are_new_go_again_with_undo(kops, cluster, groups, world):
    new = [f"{world}-new1", f"{world}-new2"]
    assert kops("offsets", "reset", *new, "--topic", f"{world}-one", "--to-latest", "--yes").code == 5
    kops("offsets", "reset", *new, "--topic", f"{world}-one", "--to-latest", "--new-group", "--yes").ok()
    assert [offsets(cluster, group) for group in new] == [{"one:0": 10, "one:1": 10}] * 2
    kops("undo", "last", "--yes").ok()
    assert not set(new) & set(groups.ids())


def test_wait_empty_waits_for_several_groups(kops, cluster, broker, world):
    with visitor(broker.bootstrap_servers, f"{world}-a", f"{world}-one"):
        kops("offsets", "reset", f"{world}-*", "--all-topics", "--to-latest", "--wait-empty", "30s", "--yes").ok()
    assert offsets(cluster, f"{world}-a") == dict.fromkeys(BEFORE["a"], 10)


def test_commits_that_did_not_happen_are_failures(kops, cluster, world, monkeypatch):
    from kops.gateways.kafka.groups.committed import CommittedOffsets

    commit = CommittedOffsets.begin_commit

    def partly(self, group_id, wanted):
        return SimpleNamespace(errors=dict) if group_id.endswith("-b") else commit(self, group_id, wanted)

    with monkeypatch.context() as patch:
        patch.setattr(CommittedOffsets, "begin_commit", partly)
        partial = kops("offsets", "reset", f"{world}-*", "--all-topics", "--to-earliest", "--yes", "-o", "json")
    assert (partial.code, partial.json["status"]) == (6, "partial")
    assert {(error["target"].split()[0], error["code"]) for error in partial.json["errors"]} == {(f"{world}-b", "verification_failed")}
    kops("undo", "last", "--yes").ok()
    assert standing(cluster, world) == BEFORE


def test_an_interrupted_plan_is_finished_from_where_it_stopped(kops, cluster, broker, world):
    from kops.cli.frame.session import Session
    from kops.core.errors import StateMoved
    from kops.core.plan import plan_of_document
    from kops.operations.offsets.move import MOVE

    body = kops("offsets", "reset", f"{world}-*", "--topic", f"{world}-one:0", "--to-earliest", "-n", "-o", "json").ok().json
    plan = MOVE.typed(plan_of_document(body))
    with Session({"bootstrap_server": broker.bootstrap_servers}) as session:
        cluster.commit(f"{world}-a", {(f"{world}-one", 0): 0})
        assert [item.target for item in MOVE.resume(session, plan).changes] == [f"{world}-{group} {world}-one:0" for group in "bc"]
        cluster.commit(f"{world}-b", {(f"{world}-one", 0): 9})
        with pytest.raises(StateMoved, match="moved on since"):
            MOVE.resume(session, plan)


def test_of_two_kops_at_once_one_wins_and_one_is_refused(kops, kops_process, cluster, broker, world, tmp_path):
    for pattern, first, second in ((f"{world}-a", 1, 2), (f"{world}-[bc]", 3, 4)):
        files = [tmp_path / f"{first}.json", tmp_path / f"{second}.json"]
        for file, offset in zip(files, (first, second), strict=True):
            kops("offsets", "reset", pattern, "--topic", f"{world}-one", "--to-offset", offset, "--plan-out", file).ok()
        running = [kops_process("apply", file, "--yes", "-B", broker.bootstrap_servers) for file in files]
        said = [process.communicate(timeout=HANG_SECONDS)[1] for process in running]
        codes = [process.returncode for process in running]
        assert sorted(codes) == [0, 5], said
        refused = said[codes.index(5)]
        assert "changed since the plan was made" in refused or "another kops is moving" in refused
        winner = (first, second)[codes.index(0)]
        for group in ("a",) if first == 1 else ("b", "c"):
            assert {offsets(cluster, f"{world}-{group}")[place] for place in ("one:0", "one:1")} == {winner}


def test_a_reset_without_groups_is_refused(kops, world):
    assert kops("offsets", "reset", "--all-topics", "--to-earliest").code == 2
    assert kops("offsets", "reset", f"{world}-a", "--all-groups", "--all-topics", "--to-earliest").code == 2
    assert kops("offsets", "reset", f"{world}-*", "--to-earliest").code == 2
    nothing = kops("offsets", "reset", f"{world}-nothing-*", "--all-topics", "--to-earliest", "--yes").ok()
    assert "nothing to do" in nothing.err


def test_many_items_are_summed_up_for_people_and_whole_for_programs(kops, cluster, world, topic):
    wide = topic(name=f"{world}-wide", partitions=50)
    visible(lambda: wide, cluster)()
    cluster.produce(wide, [Record(None, b"x", 1_000_000, partition=number) for number in range(50)])
    cluster.commit(f"{world}-a", {(wide, number): 0 for number in range(50)})
    cluster.commit(f"{world}-b", {(wide, number): 0 for number in range(50)})
    command = ["offsets", "reset", f"{world}-[ab]", "--topic", f"{world}-wi*", "--topic", f"{world}-one", "--to-offset", "99"]
    refused = kops(*command)
    assert refused.code == 5
    assert f"{world}-a  {world}-wide  50 of 50  99 is past the log end: clamped" in refused.err
    assert "104 partitions in all" in refused.err
    assert len(kops(*command, "-n", "-o", "csv").ok().out.splitlines()) == 105


def by_librdkafka(monkeypatch):
    """Read as over a connection that kafka-python cannot make."""
    monkeypatch.setattr("kops.gateways.kafka.groups.committed.can_express", lambda connection: False)


def test_a_read_that_is_not_answered_is_made_once_more(broker, world, monkeypatch):
    monkeypatch.setattr(client_module, "AGAIN_SECONDS", 0.2)
    by_librdkafka(monkeypatch)
    kafka = Kafka(Connection((broker.bootstrap_servers,), timeout=20))
    stale, ask = kafka.client.admin._admin, AdminClient.list_consumer_group_offsets
    unanswered = []

    def list_offsets(self, request, **options):
        if self is not stale:
            return ask(self, request, **options)
        unanswered.append(request[0].group_id)
        return {request[0].group_id: Future()}

    monkeypatch.setattr(AdminClient, "list_consumer_group_offsets", list_offsets)
    found = kafka.groups.committed([f"{world}-a", f"{world}-b"])
    assert [len(found[f"{world}-{group}"]) for group in "ab"] == [4, 4]
    assert unanswered == [f"{world}-a", f"{world}-b"]
    assert [len(answer.offsets) for _, answer in kafka.groups.read_offsets([f"{world}-a"])] == [2]


def test_groups_read_in_one_request_are_those_read_one_by_one(broker, cluster, groups, world, monkeypatch):
    groups.commit(
        f"{world}-c",
        {TopicPartition(f"{world}-one", 0): CommittedOffset(5, STREAM_TIME_130, 2), TopicPartition(f"{world}-two", 1): CommittedOffset(7)},
    )
    names = [f"{world}-{group}" for group in ("a", "b", "c", "none")]
    kafka = Kafka(Connection((broker.bootstrap_servers,), timeout=20))
    one_by_one = dict(kafka.groups.read_offsets(names))
    assert one_by_one[f"{world}-c"].metadata == {f"{world}-one": {0: STREAM_TIME_130}}
    kafka.client.close()
    kafka.groups.listed()
    with monkeypatch.context() as patch:
        patch.setattr(AdminClient, "list_consumer_group_offsets", None)
        for stable in (False, True):
            assert list(kafka.groups.read_offsets(names, stable=stable)) == list(one_by_one.items())
        patch.setattr("kops.gateways.kafka.groups.offsets_fetch.GROUPS_AT_ONCE", 3)
        assert list(kafka.groups.read_offsets(names)) == list(one_by_one.items())

    def garbled(data):
        raise UndecodableRecord("cut off")

    by_librdkafka(monkeypatch)
    without = {
        name: replace(found, metadata={topic: dict.fromkeys(texts) for topic, texts in found.metadata.items()})
        for name, found in one_by_one.items()
    }
    for instead in (garbled, lambda data: dict.fromkeys(names, 16)):
        monkeypatch.setattr("kops.gateways.kafka.groups.offsets_fetch.read_answer", instead)
        assert dict(kafka.groups.read_offsets(names)) == without
    kafka.close()

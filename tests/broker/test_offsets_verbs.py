"""Copying, editing, deleting and skipping offsets on the real broker."""

import stat

import pytest
from confluent_kafka import Producer

from kops.core.models import CommittedOffset, TopicPartition
from support.consumer_groups import STREAM_TIME_130, member
from support.patience import HANG_SECONDS
from support.programs import Record

pytestmark = pytest.mark.broker


@pytest.fixture
def topics(topic, cluster):
    """A topic with ten records in each of two partitions, a second apart, and another one whose records lie half a second later."""
    made = [topic(name, partitions=2) for name in ("orders", "mirror")]
    for name, later, before in ((made[0], 0, 0), (made[1], 500, 3)):
        times = [1_000_000 + 1000 * (at - before) + later for at in range(10 + before)]
        cluster.produce(name, [Record(None, b"x", at, partition=partition) for partition in (0, 1) for at in times])
    return made


@pytest.fixture
def group(unique, cluster, topics, groups):
    """A group at offset 5 and 7 of the first topic."""
    name = unique("g")
    cluster.commit(name, {(topics[0], 0): 5, (topics[0], 1): 7})
    yield name
    groups.delete([one for one in groups.ids() if one.startswith(name)])


def offsets(cluster, group, topic):
    return {partition: offset for (name, partition), offset in cluster.committed(group).items() if name == topic}


# copy


def test_a_copy_of_a_group_is_the_same_commits(kops, groups, group, topics):
    before = {TopicPartition(topics[0], 0): CommittedOffset(5, STREAM_TIME_130, 2), TopicPartition(topics[0], 1): CommittedOffset(7)}
    groups.commit(group, before)
    refused = kops("offsets", "copy", group, f"{group}-2", "--yes")
    assert (refused.code, "--new-group" in refused.err) == (5, True)
    kops("offsets", "copy", group, f"{group}-2", "--new-group", "--yes").ok()
    assert groups.committed([f"{group}-2"])[f"{group}-2"] == before
    again = kops("offsets", "copy", group, f"{group}-2", "--yes").ok()
    assert "nothing to do" in again.err
    kops("undo", "last", "--yes").ok()
    assert f"{group}-2" not in groups.ids()


def test_offsets_are_copied_to_another_topic_by_offset_and_by_time(kops, cluster, group, topics):
    orders, mirror = topics
    kops("offsets", "copy", group, "--rename", f"{orders}={mirror}", "--yes").ok()
    assert offsets(cluster, group, mirror) == {0: 5, 1: 7}
    kops("offsets", "copy", group, "--rename", f"{orders}={mirror}", "--by", "time", "--yes").ok()
    assert offsets(cluster, group, mirror) == {0: 8, 1: 10}
    assert offsets(cluster, group, orders) == {0: 5, 1: 7}
    cluster.commit(group, {(orders, 0): 10, (orders, 1): 0})
    kops("offsets", "copy", group, f"{group}-2", "--rename", f"{orders}={mirror}", "--by", "time", "--new-group", "--yes").ok()
    assert offsets(cluster, f"{group}-2", mirror) == {0: 13, 1: 3}


def test_only_the_named_partitions_are_copied(kops, cluster, group, topics):
    kops("offsets", "copy", group, f"{group}-2", "--topic", f"{topics[0]}:1", "--new-group", "--yes").ok()
    assert cluster.committed(f"{group}-2") == {(topics[0], 1): 7}
    kops("offsets", "copy", group, f"{group}-2", "--topic", f"{topics[0][:8]}*:0", "--yes").ok()
    assert offsets(cluster, f"{group}-2", topics[0]) == {0: 5, 1: 7}


def test_what_cannot_be_copied_is_refused(kops, cluster, broker, group, topics):
    orders, mirror = topics
    assert kops("offsets", "copy", group, group, "--yes").code == 2
    assert kops("offsets", "copy", f"{group}-none", group, "--yes").code == 5
    assert kops("offsets", "copy", group, "--rename", f"{mirror}={orders}", "--yes").code == 5
    assert kops("offsets", "copy", group, "--rename", f"{orders}={orders}-none", "--yes").code == 5
    assert kops("offsets", "copy", group, "--rename", orders, "--yes").code == 2
    cluster.commit(group, {(mirror, 0): 1})
    assert kops("offsets", "copy", group, f"{group}-2", "--rename", f"{mirror}={orders}", "--topic", "*", "--new-group").code == 2
    with member(broker.bootstrap_servers, f"{group}-2", mirror):
        active = kops("offsets", "copy", group, f"{group}-2", "--yes")
        assert (active.code, "has 1 member" in active.err) == (5, True)


# edit


@pytest.fixture
def editor(tmp_path, monkeypatch):
    """Let the editor be a script: ``editor("s/5/8/")`` runs sed on the file."""
    monkeypatch.delenv("VISUAL", raising=False)

    def use(*expressions):
        script = tmp_path / "editor"
        script.write_text("#!/bin/sh\n" + f'cp "$1" {tmp_path}/seen\n' + "".join(f"sed -i '{one}' \"$1\"\n" for one in expressions))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("EDITOR", str(script))
        return tmp_path / "seen"

    return use


def test_what_was_edited_is_planned_approved_and_undone(kops, cluster, group, topics, editor):
    seen = editor("s/  0: 5 /  0: 8 /", "s/  1: 7 /  1: skip:2 /")
    refused = kops("offsets", "edit", group)
    assert (refused.code, offsets(cluster, group, topics[0])) == (5, {0: 5, 1: 7})
    assert "  0: 5  # the log has 0 to 10\n  1: 7  # the log has 0 to 10\n" in seen.read_text()
    kops("offsets", "edit", group, "--yes").ok()
    assert offsets(cluster, group, topics[0]) == {0: 8, 1: 9}
    kops("undo", "last", "--yes").ok()
    assert offsets(cluster, group, topics[0]) == {0: 5, 1: 7}


def test_a_file_that_was_not_changed_does_nothing(kops, cluster, group, topics, editor):
    for expressions in ((), ("/  0:/d",), ("s/5/5/",), ("s/$/ /",)):
        editor(*expressions)
        done = kops("offsets", "edit", group, "--yes").ok()
        assert "nothing to do" in done.err
    assert offsets(cluster, group, topics[0]) == {0: 5, 1: 7}


def test_a_partition_that_was_added_is_committed(kops, cluster, group, topics, editor):
    editor(f'$a "{topics[1]}":\\n  1: end')
    kops("offsets", "edit", group, "--topic", f"{topics[0]}:0", "--yes").ok()
    assert offsets(cluster, group, topics[1]) == {1: 13}


@pytest.mark.parametrize(
    ("expression", "says", "code"),
    [
        ("s/  0: 5 /  0: x5 /", "line 5 of the edited file: 'x5' is not a valid position", 2),
        ("s/  0: 5 /  0: -1 /", "line 5 of the edited file: '-1' is not a valid position", 2),
        ("s/  1: 7 /  0: 7 /", "line 6 of the edited file", 2),
        ("s/  1: 7 /  one: 7 /", "line 6 of the edited file", 2),
        ("s/  1: 7 /  1: [7] /", "line 6 of the edited file: a position is one word", 2),
        ("s/  1: 7 / 1 7 /", "line 6 of the edited file", 2),
        ("s/  0: 5 /  0: 11 /", "offset 11 is past the log end", 2),
        ("s/  1: 7 /  9: 7 /", "there is no partition", 5),
        ("1,$s/.*/x/", "line 1 of the edited file", 2),
    ],
)
def test_a_broken_file_names_the_line_and_changes_nothing(kops, cluster, group, topics, editor, expression, says, code):
    editor(expression)
    broken = kops("offsets", "edit", group, "--yes")
    assert (broken.code, says in broken.err) == (code, True), broken.err
    assert offsets(cluster, group, topics[0]) == {0: 5, 1: 7}


def test_an_edit_is_refused_when_offsets_moved_meanwhile(kops, cluster, broker, group, topics, editor, monkeypatch):
    import click

    def edited(text, **_options):
        cluster.commit(group, {(topics[0], 0): 6})
        return text.replace("0: 5", "0: 9")

    monkeypatch.setattr(click, "edit", edited)
    refused = kops("offsets", "edit", group, "--yes")
    assert (refused.code, "has moved from 5 to 6 while you edited" in refused.err) == (5, True)
    with member(broker.bootstrap_servers, group, topics[0]):
        assert kops("offsets", "edit", group, "--yes").code == 5


def test_an_editor_that_does_not_exist_is_reported(kops, group, monkeypatch):
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "/none/editor")
    assert kops("offsets", "edit", group, "--yes").code == 1


# delete


def test_offsets_of_a_topic_are_deleted_and_come_back(kops, groups, cluster, group, topics):
    partition = TopicPartition(topics[0], 0)
    groups.commit(group, {partition: CommittedOffset(5, "text", 3)})
    cluster.commit(group, {(topics[1], 0): 1})
    assert kops("offsets", "delete", group, "--topic", topics[0], "--yes").code == 5
    assert kops("offsets", "delete", group, "--topic", topics[0], "--confirm", "other").code == 5
    kops("offsets", "delete", group, "--topic", f"{topics[0]}:0", "--confirm", group).ok()
    assert cluster.committed(group) == {(topics[0], 1): 7, (topics[1], 0): 1}
    kops("undo", "last", "--yes").ok()
    assert groups.committed([group])[group][partition] == CommittedOffset(5, "text", 3)
    kops("offsets", "delete", group, "--topic", "*", "--confirm", group).ok()
    assert cluster.committed(group) == {}
    kops("undo", "last", "--yes").ok()
    assert cluster.committed(group) == {(topics[0], 0): 5, (topics[0], 1): 7, (topics[1], 0): 1}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_may_read_other_topics_than_those_deleted(kops, cluster, broker, group, topics, protocol):
    with member(broker.bootstrap_servers, group, topics[1], group_protocol=protocol):
        kops("offsets", "delete", group, "--topic", f"{topics[0]}:0", "--confirm", group).ok()
        assert cluster.committed(group) == {(topics[0], 1): 7}
        cluster_wide = kops("undo", "last", "--yes")
        assert (cluster_wide.code, "has 1 member" in cluster_wide.err) == (5, True)
    kops("undo", "last", "--yes").ok()
    with member(broker.bootstrap_servers, group, topics[0], group_protocol=protocol):
        refused = kops("offsets", "delete", group, "--topic", topics[0], "--confirm", group)
        assert (refused.code, f"a member of group {group} reads {topics[0]}" in refused.err) == (5, True)
    assert cluster.committed(group) == {(topics[0], 0): 5, (topics[0], 1): 7}


def test_what_cannot_be_deleted_is_refused(kops, cluster, group, topics, tmp_path):
    assert kops("offsets", "delete", group, "--confirm", group).code == 2
    assert kops("offsets", "delete", group, "--topic", topics[1], "--confirm", group).code == 5
    assert kops("offsets", "delete", f"{group}-none", "--topic", topics[0], "--confirm", f"{group}-none").code == 5
    file = tmp_path / "plan.json"
    kops("offsets", "delete", group, "--topic", f"{topics[0]}:0", "--plan-out", file).ok()
    cluster.commit(group, {(topics[0], 0): 6})
    moved = kops("apply", file, "--confirm", group)
    assert (moved.code, "changed since the plan was made" in moved.err) == (5, True)
    assert offsets(cluster, group, topics[0]) == {0: 6, 1: 7}


# skip


def test_skipping_counts_records_and_not_the_gaps_of_transactions(kops, broker, cluster, group, topic, unique):
    """Offsets: records 0 and 1, a marker, aborted 3 and 4, a marker, records 6 and 7, a marker, an open transaction from 9 on."""
    name = topic("tx")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": unique("tx")})
    producer.init_transactions(30)
    for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction, None):
        producer.begin_transaction()
        for _ in range(2):
            producer.produce(name, b"x", partition=0)
        producer.flush(HANG_SECONDS)
        if end:
            end(30)
    cluster.commit(group, {(name, 0): 0})
    expected = {1: 1, 2: 2, 3: 7, 4: 8}
    for count, offset in expected.items():
        plan = kops("offsets", "seek", group, f"{name}:0=skip:{count}", "-n", "-o", "json").ok().json
        assert [item["after"] for item in plan["items"]] == [offset]
    refused = kops("offsets", "seek", group, f"{name}:0=skip:5", "--yes")
    assert (refused.code, "transaction" in refused.err) == (5, True)
    kops("offsets", "seek", group, f"{name}:0=skip:3", "--yes").ok()
    assert offsets(cluster, group, name) == {0: 7}
    producer.abort_transaction(30)
    refused = kops("offsets", "seek", group, f"{name}:0=skip:2", "--yes")
    assert (refused.code, f"{name}:0 has 1 record from offset 7 on, not 2" in refused.err) == (2, True)


def test_skipping_begins_at_the_log_start_and_needs_a_commit(kops, cluster, group, topics):
    cluster.trim(topics[0], {0: 7})
    kops("offsets", "seek", group, f"{topics[0]}:0=skip:2", f"{topics[0]}:1=skip:1", "--yes").ok()
    assert offsets(cluster, group, topics[0]) == {0: 9, 1: 8}
    refused = kops("offsets", "seek", group, f"{topics[1]}:0=skip:1", "--yes")
    assert (refused.code, "no committed offset to skip from" in refused.err) == (2, True)

"""``kops topics diff`` and ``apply``: what they leave alone, and a plan that ended in the middle."""

import pytest

from kops.core.plan import ItemResult, Status
from kops.operations.protocol.journal import EntryStatus, Journal
from kops.operations.protocol.journal_actions import read_plan
from support.patience import HANG_SECONDS
from support.topics import body_of, commit

pytestmark = pytest.mark.broker


@pytest.fixture
def file(tmp_path):
    def write(*documents):
        path = tmp_path / "topics.yaml"
        path.write_text("\n---\n".join(documents), encoding="utf-8")
        return path

    return write


def own(topics, name):
    return {setting["name"]: setting["value"] for setting in body_of(topics, name)["settings"] if setting["source"] == "topic"}


def rows(outcome):
    return [(row["topic"], row["field"], row["actual"], row["declared"], row["action"]) for row in outcome.json]


def test_what_no_file_mentions_is_shown_and_left(topics, topic, file):
    name = topic(config={"segment.ms": "60000", "retention.ms": "70000"})
    path = file(f"name: {name}\nconfig: {{retention.ms: 70000}}")
    shown = topics("diff", path, "-o", "json").ok()
    assert rows(shown) == [(name, "segment.ms", "60000", None, "unmanaged")]
    applied = topics("apply", path, "--yes").ok()
    assert f"{name}: segment.ms=60000 is set there and in no file" in applied.err
    assert own(topics, name) == {"segment.ms": "60000", "retention.ms": "70000"}
    assert topics("diff", path, "--reset-unmanaged").code == 1
    topics("apply", path, "--reset-unmanaged", "--yes").ok()
    assert own(topics, name) == {"retention.ms": "70000"}
    assert topics("diff", path, "--reset-unmanaged", "-o", "json").ok().json == []


def test_nothing_shrinks_and_replicas_stay(topics, topic, file):
    name = topic(partitions=3)
    path = file(f"name: {name}\npartitions: 2\nreplication_factor: 2\nconfig: {{retention.ms: 70000}}")
    different = topics("diff", path, "-o", "json")
    assert different.code == 1
    assert rows(different)[:2] == [(name, "partitions", 3, 2, "cannot"), (name, "replication_factor", 1, 2, "cannot")]
    done = topics("apply", path, "--yes").ok()
    assert f"{name}: partitions 3 stays, not 2: Kafka cannot shrink" in done.err
    assert len(body_of(topics, name)["partitions"]) == 3
    again = topics("apply", path, "--yes", "-o", "json").ok()
    assert again.json["status"] == "unchanged"
    assert "different, which cannot be changed here" in again.err


def test_pruning_spares_what_is_not_owned_and_what_kafka_streams_made(topics, topic, unique, file, admin):
    prefix = unique("p")
    kept, extra, other = topic(name=f"{prefix}-kept"), topic(name=f"{prefix}-extra"), topic(name=unique("other"))
    changelog = topic(name=f"{prefix}-app-totals-changelog")
    declared = f"name: {kept}"
    refused = topics("apply", file(declared), "--prune", "--yes")
    assert refused.code == 2
    assert "owns: [shop-*]" in refused.err
    path = file(declared, f"owns: [{prefix}-*, {prefix}-not-there-yet]")
    assert topics("diff", path).code == 0
    shown = topics("diff", path, "--prune", "-o", "json")
    assert (shown.code, rows(shown)) == (1, [(extra, "(topic)", None, None, "delete")])
    assert f"{changelog} is not pruned" in shown.err
    assert topics("apply", path, "--prune", "--yes").code == 5
    topics("apply", path, "--prune", "--confirm", extra).ok()
    assert {kept, other, changelog} <= set(admin.list_topics(timeout=HANG_SECONDS).topics)
    assert extra not in admin.list_topics(timeout=HANG_SECONDS).topics


def test_a_topic_of_kafka_streams_does_not_grow(topics, topic, broker, unique, file, admin):
    group = unique("app")
    name, _ = topic(), topic(name=f"{group}-totals-changelog")
    commit(broker, name, group, offset=0)
    path = file(f"name: {name}\npartitions: 2")
    refused = topics("apply", path, "--yes")
    assert refused.code == 5
    assert f"{name} is read by the Kafka Streams application {group}" in refused.err
    topics("apply", path, "--yes", "--allow-streams").ok()
    admin.delete_consumer_groups([group])[group].result(HANG_SECONDS)


def test_some_fail_and_only_the_others_are_taken_back(topics, topic, unique, file, run_kops, tmp_path, admin):
    """A name that is taken between plan and apply by one that collides with it: the broker takes the rest."""
    base, plan = unique("part"), tmp_path / "plan.json"
    there = topic(config={"segment.ms": "60000"})
    path = file(f"name: {base}.x", f"name: {base}-y\npartitions: 2", f"name: {there}\nconfig: {{segment.ms: 70000}}")
    topics("apply", path, "--plan-out", plan).ok()
    topic(name=f"{base}_x")
    result = run_kops("apply", plan, "--yes", "-o", "json")
    assert (result.code, result.json["status"]) == (6, "partial")
    assert {item["target"]: item["status"] for item in result.json["items"]} == {f"{base}.x": "failed", f"{base}-y": "done", there: "done"}
    assert own(topics, there) == {"segment.ms": "70000"}
    run_kops("undo", result.json["journal_id"], "--confirm", f"{base}-y").ok()
    assert own(topics, there) == {"segment.ms": "60000"}
    assert f"{base}-y" not in admin.list_topics(timeout=HANG_SECONDS).topics
    assert f"{base}_x" in admin.list_topics(timeout=HANG_SECONDS).topics


@pytest.fixture
def interrupted(topics, topic, unique, file, home, tmp_path):
    """A plan of which the topic was created and the setting was not: its journal entry says that it was interrupted."""
    new, there = unique("new"), topic(config={"segment.ms": "60000"})
    path = file(f"name: {new}\npartitions: 1", f"name: {there}\npartitions: 2\nconfig: {{segment.ms: 70000}}")
    saved = tmp_path / "plan.json"
    topics("apply", path, "--plan-out", saved).ok()
    plan = read_plan(saved)
    topics("create", new, "--partitions", "1", "--yes").ok()
    journal = Journal(home / "state" / "kops" / "journal")
    entry = journal.open(plan)
    journal.close(entry, EntryStatus.INTERRUPTED, [ItemResult(new, Status.DONE)])
    return entry.id, new, there


def test_an_interrupted_plan_is_finished(topics, interrupted, run_kops):
    entry, _, there = interrupted
    finished = run_kops("journal", "finish", entry, "--yes", "-o", "json").ok().json
    assert [item["target"] for item in finished["items"]] == [there]
    assert own(topics, there) == {"segment.ms": "70000"}
    assert len(body_of(topics, there)["partitions"]) == 2


def test_an_interrupted_plan_is_taken_back(topics, interrupted, run_kops, admin):
    entry, new, there = interrupted
    run_kops("undo", entry, "--confirm", new).ok()
    assert new not in admin.list_topics(timeout=HANG_SECONDS).topics
    assert own(topics, there) == {"segment.ms": "60000"}

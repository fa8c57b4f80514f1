"""Plans and journal entries of topics that kops 0.1 wrote: shown, carried out, finished and undone by this one.

What ``older/topics`` keeps is moved to the cluster and the topics of the test; nothing else of it is changed.
"""

import hashlib
import json
from pathlib import Path

import pytest

from kops.gateways.kafka import Kafka
from support.patience import HANG_SECONDS
from support.topics import body_of, produce

pytestmark = pytest.mark.broker

OLDER = Path(__file__).parent / "older" / "topics"
CLUSTER = "FHkjQ-ozQA2m5yqttBRibA"
IDS = {
    "a": "VoW35NqTSPCDXjvTzQafJQ",
    "b": "iRUoMJYtTRmSIi9d73XDnQ",
    "alter": "LwkaTl0uRga2c8nzN1gNNg",
    "old": "6qcSfWOYRjWis4nPYC917A",
    "new": "20Ej9U_lSIS7GsJ_N1kuNg",
    "there": "mUHG4IejSYiOyVzFT1DVQg",
}
TABLE = ("--partitions", "2", "--compacted", "--config", "segment.ms=70000", "--yes")
"""How 0.1 created a and b."""


class Older:
    """What was kept, for topics of one test.

    :param prefix: of their names, in place of ``kept``
    """

    def __init__(self, kafka, prefix, home, tmp_path):
        self.kafka, self.prefix, self.home, self.tmp_path = kafka, prefix, home, tmp_path

    def __getitem__(self, name):
        return f"{self.prefix}-{name}"

    def existing(self):
        found = self.kafka.topics.existing(self[name] for name in IDS)
        return {name: found[self[name]] for name in IDS if self[name] in found}

    def read(self, name):
        text = (OLDER / name).read_text().replace("kept-", f"{self.prefix}-").replace(CLUSTER, self.kafka.cluster().cluster_id)
        for one, topic in self.existing().items():
            text = text.replace(IDS[one], topic.topic_id)
        return json.loads(text)

    def plan(self, kind):
        body = self.read(f"{kind}.plan.json")
        del body["digest"]
        digest = hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        path = self.tmp_path / f"{kind}.json"
        path.write_text(json.dumps({**body, "digest": f"sha256:{digest}"}))
        return path

    def entry(self, kind):
        body = self.read(f"{kind}.json")
        journal = self.home / "state" / "kops" / "journal"
        journal.mkdir(parents=True, exist_ok=True)
        (journal / f"{body['id']}.json").write_text(json.dumps(body))
        return body["id"]


@pytest.fixture
def older(topics, topic, unique, broker, home, tmp_path, admin):
    prefix = unique("older")
    yield Older(Kafka(_connection(broker)), prefix, home, tmp_path)
    left = [name for name in admin.list_topics(timeout=HANG_SECONDS).topics if name.startswith(f"{prefix}-")]
    for future in (admin.delete_topics(left, operation_timeout=HANG_SECONDS) if left else {}).values():
        future.result(HANG_SECONDS)


def _connection(broker):
    from kops.config.connection import Connection

    return Connection((broker.bootstrap_servers,))


def own(topics, name):
    return {setting["name"]: setting["value"] for setting in body_of(topics, name)["settings"] if setting["source"] == "topic"}


def test_an_older_plan_and_entries_of_create_are_understood(older, topics, run_kops):
    a, b = older["a"], older["b"]
    topics("create", older["there"], "--partitions", "1", "--yes").ok()
    result = run_kops("apply", older.plan("create"), "--yes", "-o", "json").ok().json
    assert {item["target"]: item["status"] for item in result["items"]} == {a: "done", b: "done"}
    assert own(topics, b) == {"cleanup.policy": "compact", "segment.ms": "70000"}
    assert run_kops("apply", older.plan("create"), "--yes").code == 5  # they exist now
    run_kops("undo", result["journal_id"], "--confirm", "2 topics").ok()
    assert set(older.existing()) == {"there"}

    topics("create", a, *TABLE).ok()
    interrupted = older.entry("create.interrupted")
    assert a in run_kops("journal", "show", interrupted).ok().out
    finished = run_kops("journal", "finish", interrupted, "--yes", "-o", "json").ok().json
    assert [item["target"] for item in finished["items"] if item["status"] == "done"] == [b]
    done = older.entry("create.done")
    run_kops("undo", done, "--confirm", "2 topics").ok()
    assert set(older.existing()) == {"there"}


def test_an_older_plan_and_entries_of_delete_are_understood(older, topics, run_kops, broker):
    a, b = older["a"], older["b"]
    topics("create", a, b, *TABLE).ok()
    plan = older.plan("delete")
    assert run_kops("apply", plan, "--yes").code == 5
    result = run_kops("apply", plan, "--confirm", "2 topics", "-o", "json").ok().json
    assert not older.existing()
    assert run_kops("apply", plan, "--confirm", "2 topics").code == 5  # gone: not as planned
    done = older.entry("delete.done")
    assert f"delete {a}" in run_kops("journal", "show", done).ok().out
    undone = run_kops("undo", done, "--yes").ok()
    assert f"the records that were deleted do not come back: {a} (3)" in undone.err
    assert own(topics, a) == own(topics, b) == {"cleanup.policy": "compact", "segment.ms": "70000"}
    assert run_kops("undo", result["journal_id"], "--yes").code == 5  # they exist

    interrupted = older.entry("delete.interrupted")
    topics("delete", a, "--confirm", a).ok()
    produce(broker, b, 2)
    finished = run_kops("journal", "finish", interrupted, "--confirm", b, "-o", "json").ok().json
    assert [item["target"] for item in finished["items"]] == [b]
    assert not older.existing()


@pytest.fixture
def before(older, topics):
    """The topics of the plan ``change``, as they were before it."""
    topics("create", older["old"], "--partitions", "1", "--yes").ok()
    settings = ("--config", "segment.ms=60000", "--config", "retention.ms=3600000")
    topics("create", older["alter"], "--partitions", "1", *settings, "--yes").ok()


def test_an_older_plan_and_entries_of_change_are_understood(older, before, topics, run_kops):
    new, alter, old = older["new"], older["alter"], older["old"]
    interrupted, plan = older.read("change.interrupted.json"), older.plan("change")
    topics("create", new, "--partitions", "2", "--compacted", "--yes").ok()
    assert run_kops("apply", plan, "--confirm", old).code == 5  # new exists
    journal = older.home / "state" / "kops" / "journal" / f"{interrupted['id']}.json"
    journal.write_text(json.dumps(interrupted))
    finished = run_kops("journal", "finish", interrupted["id"], "--confirm", old, "-o", "json").ok().json
    assert {item["target"]: item["status"] for item in finished["items"]} == {alter: "done", old: "done"}
    assert own(topics, alter) == {"segment.ms": "70000"}
    assert set(older.existing()) == {"new", "alter"}
    done = older.entry("change.done")
    assert f"add partitions to the topic {alter}" in run_kops("journal", "show", done).ok().err
    undone = run_kops("undo", done, "--confirm", new).ok()
    assert "the partitions that were added stay" in undone.err
    assert own(topics, alter) == {"retention.ms": "3600000", "segment.ms": "60000"}
    assert len(body_of(topics, alter)["partitions"]) == 3
    assert set(older.existing()) == {"old", "alter"}


def test_an_older_plan_of_change_is_carried_out(older, before, run_kops):
    done = run_kops("apply", older.plan("change"), "--confirm", older["old"], "-o", "json").ok().json
    assert {item["status"] for item in done["items"]} == {"done"}
    assert set(older.existing()) == {"new", "alter"}


def test_an_older_plan_and_entry_of_truncate_are_understood(older, topics, run_kops, broker):
    there = older["there"]
    topics("create", there, "--partitions", "1", "--yes").ok()
    produce(broker, there, 5)
    done = run_kops("apply", older.plan("truncate"), "--confirm", there, "-o", "json").ok().json
    assert [(item["target"], item["value"]) for item in done["items"]] == [(f"{there}:0", 3)]
    entry = older.entry("truncate.done")
    assert f"{there}:0" in run_kops("journal", "show", entry).ok().out
    refused = run_kops("undo", entry, "--yes")
    assert (refused.code, "cannot be undone" in refused.err) == (5, True)

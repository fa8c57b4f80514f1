"""Every verb that shows what a broker holds: names of groups and members, keys, values, headers and exceptions, all of them hostile."""

import json
from types import SimpleNamespace

import pytest
from confluent_kafka import Consumer, TopicPartition

from support.consumer_groups import member
from support.programs import Record
from support.strangers import EVIL, HOSTILE, ON_BROKERS, SCHEMA, assert_harmless, hostile_registry, hostile_server

pytestmark = [pytest.mark.broker, pytest.mark.spark]

START = 1_760_000_000_000
LETTER = {
    "original-topic": b"{origin}",
    "original-partition": bytes(4),
    "exception-fqcn": EVIL.encode(),
    "exception-message": EVIL.encode(),
}


@pytest.fixture(scope="module")
def held(broker, cluster, spark, tmp_path_factory, run_kops_alone):
    """Topics, groups, a member, an archive and a snapshot of strangers."""
    import uuid

    prefix, folder = f"strangers-{uuid.uuid4().hex[:8]}", tmp_path_factory.mktemp("files")
    names = {each: f"{prefix}-{each}" for each in ("queue", "origin", "input", "restored", "application")}
    names |= {"group": f"{prefix}{EVIL}", "busy": f"{prefix}-busy{EVIL}", "other": f"{prefix}-other{EVIL}", "evil": EVIL, "folder": folder}
    names["changelog"] = f"{names['application']}-totals-changelog"
    cluster.create_all({names["queue"]: 1, names["origin"]: 1, names["input"]: 1}, {"retention.ms": "-1"})
    cluster.create(names["changelog"], 1, {"cleanup.policy": "compact"})
    letter = tuple((f"kafka_dlt-{name}", data.replace(b"{origin}", names["origin"].encode())) for name, data in LETTER.items())
    text = EVIL.encode()
    cluster.produce_all({
        names["queue"]: [Record(text, text, START + at, ((EVIL, text), *letter), 0) for at in range(3)],
        names["input"]: [Record(text, text, START, (), 0), Record(b"lost", text, START, (), 0)],
        names["changelog"]: [Record(text, b"\0" * 7 + b"\2", START, (), 0)],
    })  # fmt: skip
    cluster.commit(names["application"], {(names["input"], 0): 2})
    for group in ("group", "busy"):
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": names[group]})
        for offset in (2, 1):
            consumer.commit(offsets=[TopicPartition(names["queue"], 0, offset, EVIL)], asynchronous=False)
        consumer.close()
    store = {"from": {"topic": names["input"], "key": "string", "value": "string"}, "aggregate": {"count": True}}
    state = {"application": names["application"], "stores": {"totals": store}}
    (folder / "state.yaml").write_text(json.dumps(state))
    (folder / "topics.yaml").write_text(json.dumps({"name": names["queue"], "partitions": 1, "config": {"retention.ms": EVIL}}))
    (folder / "schema.avsc").write_text(SCHEMA)
    names |= {"kept": folder / "archived", "snapshot": folder / "taken"}
    at = ("-B", broker.bootstrap_servers)
    run_kops_alone("replay", "archive", names["queue"], "--to", names["kept"], *at).ok()
    run_kops_alone("state", "snapshot", folder / "state.yaml", "--to", names["snapshot"], *at).ok()
    with member(broker.bootstrap_servers, names["busy"], names["queue"], client_id=HOSTILE):
        yield SimpleNamespace(names=names, at=at)
    cluster.delete_all(cluster.topics(prefix))


@pytest.fixture
def journalled(held, run_kops):
    """An entry of the journal of this test that moved offsets of a stranger's group, and a plan to move them once more."""
    group, topic = held.names["group"], held.names["queue"]
    for offset in (2, 0):
        run_kops("offsets", "seek", group, f"{topic}:0={offset}", "--yes", *held.at).ok()
    plan = held.names["folder"] / "plan.json"
    plan.unlink(missing_ok=True)
    run_kops("offsets", "seek", group, f"{topic}:0=1", "--plan-out", plan, *held.at).ok()


@pytest.mark.parametrize("verb", ON_BROKERS)
def test_what_is_shown(held, verb, request, monkeypatch):
    if verb in ("apply", "journal finish", "replay resume", "undo"):
        request.getfixturevalue("journalled")
    monkeypatch.setenv("EDITOR", "true")
    with hostile_server(hostile_registry) as registry:
        monkeypatch.setenv("KOPS_REGISTRY_URL", registry)
        for run in ON_BROKERS[verb]:
            arguments = [word.format(**held.names) for word in run.line.split()]
            how = {"seen": run.seen, "lines": run.lines, "as_json": run.json, "piped": False}
            assert_harmless([*verb.split(), *arguments, *held.at], typed=run.typed, **how)

"""What else `kops state` does by an application's own program: one application that ran once, whose changelogs are lost again and again."""

import json
import shlex
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from support import processes
from support.captured import built_agent
from support.own_apps import FIRST_MS, App, records, without_expired
from support.programs import Record
from support.streams_apps import wait_for

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

PINNED = yaml.safe_load((Path(__file__).parent / "json_keys.yaml").read_text(encoding="utf-8"))
STORES = ("texts", "windows", "letters")
PARTITIONS, COUNT, KEYS = 3, 3000, 2000
SLOW, SMALL_BATCHES = 500, ("-X", "message.max.bytes=2000")
"""Bytes a second that the broker takes of the kops that is to be killed, and of a request; it has at most five of them on the way."""


@contextmanager
def stopped(cluster, application, folder, run_kops):
    """Run an application until it has processed all; give it, what its changelogs hold, and its capture."""
    built_agent()
    app = App(cluster, "texts", application, folder / "app")
    cluster.create_all({app.topic("in"): PARTITIONS, app.topic("out"): PARTITIONS})
    cluster.produce(app.topic("in"), records(COUNT, keys=KEYS))
    app.run()
    capture = folder / "capture.json"
    run_kops("streams", "capture", "--out", capture, "--", *app.command).ok()
    held = {store: app.view(store) for store in STORES}
    yield SimpleNamespace(app=app, capture=capture, held=held, committed=cluster.committed(app.application))
    cluster.delete_all(cluster.topics(app.application))


@pytest.fixture(scope="module")
def texts(cluster, tmp_path_factory, run_kops_alone):
    folder = tmp_path_factory.mktemp("texts")
    with stopped(cluster, f"verbs-{folder.parent.name}", folder, run_kops_alone) as made:
        yield made


@pytest.fixture
def state(run_kops, cluster, texts):
    """Run a verb of `kops state` by the program: ``state("rebuild", "--store", "texts")``."""

    def run(verb, *arguments, of=texts):
        return run_kops("state", verb, "--app", of.capture, *arguments, "-B", cluster.servers)

    return run


def state_file(texts, folder, **changes):
    """Write what a state file says of two of its stores, with these changes."""
    source = {"topic": texts.app.topic("in"), "key": "string", "value": "string"}
    stores = {
        "letters": {"from": source, "key_by": "substring(value, 1, 1)", "aggregate": {"count": True}},
        "windows": {
            "from": source,
            "type": "window",
            "window": {"size": "30s", "grace": "10s", "retention": "40s"},
            "aggregate": {"count": True},
        },
    }
    for name, change in changes.items():
        stores[name] |= change
    file = folder / "state.yaml"
    file.write_text(json.dumps({"application": texts.app.application, "streams": {"version": "4.3"}, "stores": stores}))
    return file


def held_count(texts, letter):
    return int.from_bytes(texts.held["letters"][letter].value, "big")


def test_diagnose_compares_the_cluster_with_the_program(texts, run_kops, cluster):
    def findings():
        words = ("diagnose", texts.app.application, "--capture", texts.capture, "--history", "0s", "--sample", "0s")
        done = run_kops(*words, "-o", "json", "-B", cluster.servers)
        return {each["check"]: each for each in done.json["findings"] if each["check"].startswith(("program_", "not_in", "wall", "custom"))}

    assert findings() == {}
    topic = texts.app.topic("texts-changelog")
    run_kops("topics", "alter", topic, "--config", "cleanup.policy=delete", "--yes", "-B", cluster.servers).ok()
    found = findings()["program_settings"]
    assert (found["severity"], found["facts"]["store"], found["facts"]["cluster"]) == ("critical", "texts", "delete")
    (repair,) = found["commands"]
    run_kops(*shlex.split(repair)[1:], *([] if "-B" in repair else ["-B", cluster.servers]), "--yes").ok()
    assert findings() == {}


@pytest.mark.long
def test_a_rebuild_that_was_killed_is_finished_and_undone(texts, state, run_kops, kops_process, cluster, tmp_path):
    changelog, client = texts.app.topic("texts-changelog"), f"{texts.app.application}-slow"
    cluster.empty(changelog)
    cluster.produce(changelog, [Record(b"key-1", b"wrong", FIRST_MS, (), 0)])
    state("rebuild", "--store", "texts", "--damaged", "texts", "--plan-out", tmp_path / "plan.json").ok()
    cluster.slow_down(client, SLOW)
    process = kops_process("apply", tmp_path / "plan.json", "-B", cluster.servers, "--yes", "-X", f"client.id={client}", *SMALL_BATCHES)

    def writes() -> bool:
        assert process.poll() is None, process.communicate()
        return len(texts.app.view("texts")) > 1

    wait_for("the first records of the changelog", writes)
    processes.end(process)
    cluster.hear_out(client)
    entry = run_kops("journal", "list", "-o", "json").ok().json[0]
    assert (entry["operation"], entry["status"]) == ("state.rebuild", "crashed")
    assert 1 < len(texts.app.view("texts")) < len(texts.held["texts"])
    run_kops("journal", "finish", entry["id"], "-B", cluster.servers, "--yes").ok()
    assert texts.app.view("texts") == texts.held["texts"]
    assert cluster.committed(texts.app.application) == texts.committed
    run_kops("undo", "last", "-B", cluster.servers, "--yes").ok()
    assert {key: entry.value for key, entry in texts.app.view("texts").items() if entry.value is not None} == {b"key-1": b"wrong"}


@pytest.mark.long
def test_changelogs_are_recreated_with_the_programs_settings(texts, state, run_kops, cluster):
    topics = {store: texts.app.topic(f"{store}-changelog") for store in STORES}
    settings = {store: cluster.config(topic) for store, topic in topics.items()}
    cluster.empty(topics["texts"])
    cluster.delete(topics["windows"])
    refused = state("rebuild", "--yes")
    assert (refused.code, "--write replace" in refused.err) == (2, True)
    state("rebuild", "--write", "replace", "--accept-doubtful", "--confirm", texts.app.application).ok()
    assert {store: cluster.config(topic) for store, topic in topics.items()} == settings
    assert cluster.topics(topics["windows"])[topics["windows"]] == PARTITIONS
    assert texts.app.view("texts") == texts.held["texts"]
    assert texts.app.view("windows") == without_expired(texts.held["windows"])
    assert "up to date" in state("rebuild", "--accept-doubtful", "--yes").ok().err
    run_kops("undo", "last", "-B", cluster.servers, "--confirm", texts.app.application).ok()
    assert topics["windows"] not in cluster.topics(topics["windows"])
    assert not {key for key, entry in texts.app.view("texts").items() if entry.value is not None}
    state("rebuild", "--write", "replace", "--accept-doubtful", "--confirm", texts.app.application).ok()


@pytest.mark.long
def test_another_application_gets_the_state(texts, state, run_kops, cluster, prefix):
    other = f"{prefix}-other"
    state("rebuild", "--store", "texts", "--store", "letters", "--accept-doubtful", "--yes").ok()
    state("rebuild", "--into", other, "--accept-doubtful", "--yes").ok()
    view = {store: App(cluster, "texts", other, texts.app.folder).view(store) for store in STORES}
    assert view == {**texts.held, "windows": without_expired(texts.held["windows"])}
    assert {place: end for place, end in cluster.committed(other).items() if place[0] == texts.app.topic("in")} == {
        place: end for place, end in texts.committed.items() if place[0] == texts.app.topic("in")
    }
    same = state("diff", "--against", other, "--store", "texts", "--store", "letters")
    assert (same.code, "hold the same: letters, texts" in same.err) == (0, True)
    assert cluster.committed(texts.app.application) == texts.committed


@pytest.mark.long
def test_the_application_is_moved_to_the_end(cluster, prefix, state, run_kops, tmp_path):
    with stopped(cluster, prefix, tmp_path, run_kops) as made:  # its own, since its commits say later that it was moved
        move_to_the_end(made, state, cluster)


def move_to_the_end(texts, state, cluster):
    behind = {place: offset - 40 if place[0] == texts.app.topic("in") else offset for place, offset in texts.committed.items()}
    cluster.commit(texts.app.application, behind)
    for store in ("texts", "letters"):
        cluster.empty(texts.app.topic(f"{store}-changelog"))
    state("rebuild", "--store", "texts", "--store", "letters", "--at", "end", "--accept-doubtful", "--yes", of=texts).ok()
    assert {store: texts.app.view(store) for store in ("texts", "letters")} == {store: texts.held[store] for store in ("texts", "letters")}
    assert cluster.committed(texts.app.application) == texts.committed
    past = state("query", "--store", "letters", "--all", "--from", "input", "--at", f"@{FIRST_MS + 100_000}", "-o", "json", of=texts).ok()
    early = records(COUNT, keys=KEYS)[:100]
    assert {row["key"]: row["value"] for row in past.json} == Counter(record.value[:1].decode() for record in early)
    assert state("query", "a", "--store", "letters", "-o", "json", of=texts).ok().json[0]["value"] == held_count(texts, b"a")


@pytest.mark.long
def test_archives_count_before_the_topic(cluster, prefix, state, run_kops, tmp_path):
    with stopped(cluster, prefix, tmp_path, run_kops) as made:
        archive_and_trim(made, state, run_kops, cluster, tmp_path)


def archive_and_trim(texts, state, run_kops, cluster, tmp_path):
    topic = texts.app.topic("in")
    ends = {number: high for number, (_, high) in cluster.ends(topic).items()}
    run_kops("replay", "archive", topic, "--to", tmp_path / "archive", "-B", cluster.servers).ok()
    cluster.trim(topic, {0: ends[0], 1: ends[1] // 2})
    for store in ("texts", "letters"):
        cluster.empty(texts.app.topic(f"{store}-changelog"))
    some = ("--store", "texts", "--store", "letters")
    refused = state("rebuild", *some, "--yes", of=texts)
    assert (refused.code, f"{topic}:0 begins at offset {ends[0]}: older records are gone" in refused.err) == (5, True), refused.err
    state("rebuild", *some, "--from-archive", tmp_path / "archive", "--accept-doubtful", "--yes", of=texts).ok()
    assert {store: texts.app.view(store) for store in ("texts", "letters")} == {store: texts.held[store] for store in ("texts", "letters")}


@pytest.mark.long
def test_a_snapshot_stands_for_the_changelogs(texts, state, run_kops, cluster, tmp_path):
    cluster.empty(texts.app.topic("texts-changelog"))
    state("rebuild", "--store", "texts", "--yes").ok()
    run_kops("state", "snapshot", texts.app.application, "--to", tmp_path / "kept", "-B", cluster.servers).ok()
    cluster.empty(texts.app.topic("texts-changelog"))
    same = state("verify", "--store", "texts", "--snapshot", tmp_path / "kept", "-o", "json").ok().json[0]
    assert (same["verdict"], same["keys"]) == ("proven", len(texts.held["texts"]))
    assert state("verify", "--store", "texts").code == 1
    state("rebuild", "--store", "texts", "--yes").ok()


@pytest.mark.long
def test_a_topology_class_without_a_network(texts, run_kops, cluster, tmp_path):
    """Captured by a method in place of its main; run in a network of its own."""
    string = "org.apache.kafka.common.serialization.Serdes$StringSerde"
    settings = {"application.id": texts.app.application, "bootstrap.servers": cluster.servers, "auto.offset.reset": "earliest"}
    settings |= {"default.key.serde": string, "default.value.serde": string, "commit.interval.ms": "100"}
    file, out = tmp_path / "app.properties", tmp_path / "class.json"
    file.write_text("\n".join(f"{name}={value}" for name, value in settings.items()))
    words = ("--topology-class", "Apps::topology", "--class-path", texts.app.path, "--properties", file)
    run_kops("streams", "capture", "--out", out, *words).ok()
    some = ("--app", out, "--store", "texts", "--store", "windows", "-B", cluster.servers)
    rows = run_kops("state", "verify", *some, "--no-network", "-o", "json").ok().json
    assert [(row["store"], row["verdict"]) for row in rows] == [("texts", "proven"), ("windows", "proven")]


@pytest.mark.long
def test_a_program_goes_on_from_a_snapshot(cluster, prefix, run_kops, state, tmp_path):
    """Its input of before is gone; the application ran on after the snapshot, and then lost its changelogs."""
    with stopped(cluster, prefix, tmp_path, run_kops) as made:
        app, topic = made.app, made.app.topic("in")
        run_kops("state", "snapshot", app.application, "--to", tmp_path / "kept", "-B", cluster.servers).ok()
        then = {number: high for number, (_, high) in cluster.ends(topic).items()}
        cluster.produce(topic, records(COUNT + 300, keys=KEYS)[COUNT:])
        app.run()
        held, committed = {store: app.view(store) for store in STORES}, cluster.committed(app.application)
        assert all(held[store] != made.held[store] for store in STORES)
        cluster.trim(topic, then)
        for store in STORES:
            cluster.empty(app.topic(f"{store}-changelog"))
        start = ("--from-snapshot", tmp_path / "kept")
        done = state("rebuild", *start, "--accept-doubtful", "--yes", of=made).ok()
        assert "comes from" in done.err
        assert {store: app.view(store) for store in ("texts", "letters")} == {store: held[store] for store in ("texts", "letters")}
        assert app.view("windows").items() <= held["windows"].items()
        assert without_expired(held["windows"]).items() <= app.view("windows").items()
        assert cluster.committed(app.application) == committed
        same = state("verify", *start, "--store", "texts", "-o", "json", of=made).ok().json[0]
        assert (same["verdict"], same["keys"]) == ("proven", len([entry for entry in held["texts"].values() if entry.value is not None]))
        assert same["records"] == 300

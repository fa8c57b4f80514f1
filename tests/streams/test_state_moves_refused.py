"""Snapshots, restores, moves and questions that cannot be: one clear error, and nothing is changed. And a kill in the middle."""

import json
import signal
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from kops.gateways.machine import worker_locks
from kops.operations.engine.state_files import read_state_file
from support import processes
from support.patience import HANG_SECONDS
from support.programs import Program, Record, Window
from support.streams import Entry, compacted_view
from support.streams_apps import Cluster, wait_for
from support.streams_cases import START

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

COUNT = Program("count", "long", value="bytes")
ONE = struct.pack(">q", 1)
KEYS, OLD, NEW = 3000, 4, 12
"""Keys 21, foobar and the like hash below zero (Kafka's UtilsTest); the test's own producer puts all where Java would."""
NAMES = [b"21", b"foobar", *(b"key-%d" % at for at in range(KEYS - 2))]


class Scene:
    """An application that counted each key once and was stopped, without having run: its topics, and its commits."""

    def __init__(self, cluster: Cluster, prefix: str, folder: Path, run) -> None:
        self.cluster, self.program, self.run, self.folder = cluster, COUNT.named(prefix), run, folder
        cluster.create_all({self.program.topic: OLD, f"{self.program.topic}-{NEW}": NEW})
        cluster.create(self.program.changelog, OLD, {"cleanup.policy": "compact"})
        cluster.produce_all(
            {
                self.program.topic: [Record(key, b"x", START + at) for at, key in enumerate(NAMES)],
                self.program.changelog: [Record(key, ONE, START + at) for at, key in enumerate(NAMES)],
            }
        )
        cluster.set_config(self.program.changelog, max_message_bytes="20000")
        self.ends = {(self.program.topic, number): high for number, (_low, high) in cluster.ends(self.program.topic).items()}
        cluster.commit(self.program.application, self.ends)
        self.file = folder / "state.yaml"
        self.file.write_text(json.dumps(self.program.state_file()), encoding="utf-8")

    @property
    def move(self) -> tuple[str, ...]:
        return ("--partitions", str(NEW), "--input", f"{self.program.topic}={self.program.topic}-{NEW}")

    def kops(self, verb: str, *arguments: object):
        return self.run("state", verb, *arguments, "-B", self.cluster.servers)

    def repartition(self, *arguments: object):
        return self.kops("repartition", self.file, *arguments, "--confirm", self.program.application)

    def view(self) -> dict[bytes, Entry]:
        return compacted_view(self.cluster.read(self.program.changelog))

    def values(self) -> dict[bytes, tuple[bytes | None, int]]:
        return {key: (entry.value, entry.timestamp) for key, entry in self.view().items()}

    def refused(self, outcome, *said: str, code: int = 5) -> None:
        assert outcome.code == code, (outcome.code, outcome.err)
        assert "Traceback" not in outcome.err
        assert outcome.err.count("kops: error:") == 1
        assert "hint:" in outcome.err
        for words in said:
            assert words in outcome.err, outcome.err


EXPECTED = {key: (ONE, START + at) for at, key in enumerate(NAMES)}


@pytest.fixture
def scene(cluster, prefix, tmp_path, run_kops):
    return Scene(cluster, prefix, tmp_path, run_kops)


def last(scene: Scene) -> str:
    return scene.run("journal", "list", "-o", "json").ok().json[0]["id"]


def slowly(kops_process, scene: Scene, *arguments: object) -> subprocess.Popen:
    """Start kops so that there is a middle of writing."""
    client = f"slow-{scene.program.application}"
    scene.cluster.slow_down(client, 2_000)
    options = ("-B", scene.cluster.servers, "-X", f"client.id={client}", "-X", "message.max.bytes=5000")
    return kops_process("state", *arguments, *options)


def killed_while_it_writes(scene: Scene, process: subprocess.Popen) -> str:
    """Kill kops once the first record is in the new changelog; return the journal entry that it left open."""

    def begun() -> bool:
        assert process.poll() is None, process.communicate()
        there = scene.cluster.topics(scene.program.changelog)
        return (
            bool(there)
            and there[scene.program.changelog] == NEW
            and sum(high for _, high in scene.cluster.ends(scene.program.changelog).values()) > 0
        )

    wait_for("the first record of the new changelog", begun)
    started = processes.descendants({process.pid})
    with processes.stopped(started, "kops.spark.python_daemon"):
        process.send_signal(signal.SIGKILL)
        process.wait(HANG_SECONDS)
        entry = scene.run("journal", "list", "-o", "json").ok().json[0]
        assert entry["status"] == "crashed"
        refused = scene.run("journal", "finish", entry["id"], "--confirm", scene.program.application, "-B", scene.cluster.servers)
        scene.refused(refused, f"Spark workers of process {process.pid}", "still running")
    processes.wait_until_gone(started)
    scene.cluster.hear_out(f"slow-{scene.program.application}")
    assert process.returncode == -signal.SIGKILL
    assert len(scene.values()) < KEYS
    return entry["id"]


def test_repartition_killed_while_it_writes_is_finished_undone_and_confirmed(scene, kops_process, monkeypatch):
    monkeypatch.setattr(worker_locks, "WAIT_SECONDS", 0.2)
    confirm = ("--confirm", scene.program.application)
    process = slowly(kops_process, scene, "repartition", scene.file, *scene.move, *confirm)
    entry = killed_while_it_writes(scene, process)
    finished = scene.run("journal", "finish", entry, *confirm, "-B", scene.cluster.servers)
    while finished.code == 5 and "since the plan was made" in finished.err:  # the broker still took what the dead one had sent
        finished = scene.run("journal", "finish", entry, *confirm, "-B", scene.cluster.servers)
    finished.ok()
    assert scene.values() == EXPECTED
    assert scene.cluster.topics(scene.program.changelog) == {scene.program.changelog: NEW}
    placed = {key: entry.partition for key, entry in scene.view().items()}
    scene.cluster.produce(f"{scene.program.topic}-{NEW}", [Record(key, b"x", START) for key in NAMES[:200]])
    where = {record.key: record.partition for record in scene.cluster.read(f"{scene.program.topic}-{NEW}")}
    assert {key: placed[key] for key in where} == where
    assert scene.cluster.committed(scene.program.application)[f"{scene.program.topic}-{NEW}", 0] == 0

    undo = ("undo", last(scene), *confirm, "-B", scene.cluster.servers)
    undone = scene.run(*undo)
    if undone.code == 5 and "more records of" in undone.err:  # a broker may write what it had read of the dead one's after the finish
        undone = scene.run(*undo, "--accept-loss")
    undone.ok()
    assert scene.values() == EXPECTED
    assert scene.cluster.topics(scene.program.changelog) == {scene.program.changelog: OLD}
    committed = scene.cluster.committed(scene.program.application)
    assert {place: offset for place, offset in committed.items() if place[0] == scene.program.topic} == scene.ends
    assert scene.cluster.config(scene.program.changelog) == {"cleanup.policy": "compact", "max.message.bytes": "20000"}

    assert scene.kops("repartition", scene.file, "--confirm-done").ok().out == ""
    scene.refused(scene.kops("repartition", scene.file, "--confirm-done"), "nothing is kept")


def test_repartition_that_does_not_fit_is_refused(scene):
    topic, application = scene.program.topic, scene.program.application
    before = scene.view()
    scene.refused(scene.repartition("--partitions", NEW), f"{topic} has {OLD} partitions", "--grow-inputs", f"--input {topic}=NEW")
    scene.refused(scene.repartition("--partitions", NEW, "--keep-inputs"), f"{topic} has {OLD} partitions")
    scene.refused(scene.repartition("--partitions", NEW, "--input", f"{topic}={topic}"), f"{topic} has {OLD} partitions, not {NEW}")
    scene.refused(scene.repartition("--partitions", NEW, "--input", "other=x"), "other is not an input topic", code=2)
    scene.refused(scene.repartition("--partitions", OLD), f"have {OLD} partitions already", code=2)
    scene.refused(scene.kops("snapshot", scene.file, "--to", scene.folder), "exists already")
    scene.refused(scene.kops("snapshot", f"{application}-nobody", "--to", scene.folder / "s"), "has no changelog topics", code=1)
    scene.refused(scene.kops("restore", scene.folder), "is not a snapshot", code=2)
    scene.refused(scene.kops("rebuild", scene.file, "--into", application, "--yes"), "is the application that", code=2)
    scene.refused(scene.kops("query", scene.file, "k", "--at", "start"), "a store cannot be queried at 'start'", code=2)
    scene.refused(scene.kops("query", scene.file, "--all", "--at", "7"), "an offset is of one partition", code=2)
    scene.refused(scene.kops("diff", scene.file, "--against", "nobody"), "there is no topic nobody-totals-changelog", code=1)
    assert scene.kops("query", scene.file).code == 2
    scene.cluster.produce(topic, [Record(b"new", b"x", START)])
    left = "that were not processed"
    scene.refused(scene.repartition(*scene.move), left)
    scene.refused(scene.repartition("--partitions", NEW, "--grow-inputs"), left)
    assert scene.view() == before


def test_snapshot_is_restored_elsewhere_and_a_damaged_one_is_refused(scene):
    application, there = f"{scene.program.application}-2", scene.folder / "snapshot"
    taken = scene.kops("snapshot", scene.program.application, "--to", there, "-o", "json").ok().json
    assert taken["stores"] == [
        {"store": "totals", "type": "key-value", "changelog": scene.program.changelog, "partitions": OLD, "records": KEYS}
    ]
    scene.kops("restore", there, "--application", application, "--yes").ok()
    other = scene.program.changelog.replace(scene.program.application, application)
    assert compacted_view(scene.cluster.read(other)) == scene.view()
    assert scene.cluster.config(other) == scene.cluster.config(scene.program.changelog)
    assert scene.cluster.committed(application) == scene.ends
    assert scene.kops("restore", there, "--application", application, "--yes").ok().err.count("nothing to do") == 1
    made = last(scene)
    wrong = b"\x00" * 8
    scene.cluster.produce(other, [Record(b"foobar", wrong, START, (), scene.view()[b"foobar"].partition)])
    scene.kops("restore", there, "--application", application, "--yes").ok()
    assert compacted_view(scene.cluster.read(other)) == scene.view()
    scene.run("undo", last(scene), "--yes", "-B", scene.cluster.servers).ok()
    assert compacted_view(scene.cluster.read(other))[b"foobar"].value == wrong
    scene.refused(scene.run("undo", made, "--confirm", application, "-B", scene.cluster.servers), f"{other} has 3 more records of 1 key")
    scene.run("undo", made, "--confirm", application, "--accept-loss", "-B", scene.cluster.servers).ok()
    assert other not in scene.cluster.topics(application)
    assert scene.cluster.committed(application) == {}

    manifest = json.loads((there / "manifest.json").read_text())
    manifest["stores"][0]["contents"]["0"]["low"] += 1
    (there / "manifest.json").write_text(json.dumps(manifest))
    scene.refused(scene.kops("restore", there, "--application", application, "--yes"), "is not what was written there", code=2)
    (there / "manifest.json").unlink()
    scene.refused(scene.kops("restore", there, "--yes"), "is not a snapshot", code=2)


def test_suppress_buffer_moves_with_its_headers_and_is_undone(cluster, prefix, tmp_path, run_kops):
    """As the real one logs them: the key, a window's start, and the header that says the version of the value."""
    program = replace(COUNT, window=Window("window", 100, grace=100, suppress="closed")).named(prefix)
    file = tmp_path / "state.yaml"
    file.write_text(json.dumps(program.state_file()), encoding="utf-8")
    buffer = next(store.window.buffer for store in read_state_file(str(file)).stores)
    by_key = f"{prefix}-by-key"
    cluster.create_all({program.topic: OLD, f"{program.topic}-{NEW}": NEW, by_key: OLD})
    for topic in (program.changelog, buffer):
        cluster.create(topic, OLD, {"cleanup.policy": "compact"})
    cluster.produce(by_key, [Record(key, b"x", START) for key in NAMES[:100]])
    where = {record.key: record.partition for record in cluster.read(by_key)}
    start = START.to_bytes(8, "big")
    kept = [Record(key + start, b"value", START, (("v", b"\x03"),), where[key]) for key in NAMES[:100]]
    stored = [Record(key + start + bytes(4), ONE, START, (), where[key]) for key in NAMES[:100]]
    cluster.produce_all({buffer: kept, program.changelog: stored})
    cluster.commit(program.application, {(program.topic, number): 0 for number in range(OLD)})
    before = {topic: compacted_view(cluster.read(topic)) for topic in (buffer, program.changelog)}
    move = ("--partitions", NEW, "--input", f"{program.topic}={program.topic}-{NEW}", "--confirm", program.application)
    run_kops("state", "repartition", file, *move, "-B", cluster.servers).ok()
    cluster.produce(f"{program.topic}-{NEW}", [Record(key, b"x", START) for key in NAMES[:100]])
    there = {record.key: record.partition for record in cluster.read(f"{program.topic}-{NEW}")}
    for topic, suffix in ((buffer, 8), (program.changelog, 12)):
        after = compacted_view(cluster.read(topic))
        placed = {key: entry.partition for key, entry in after.items()}
        assert {key: replace(entry, partition=placed[key]) for key, entry in before[topic].items()} == after
        assert {key[:-suffix]: partition for key, partition in placed.items()} == there
    entry = run_kops("journal", "list", "-o", "json").ok().json[0]["id"]
    run_kops("undo", entry, "--confirm", program.application, "-B", cluster.servers).ok()
    assert {topic: compacted_view(cluster.read(topic)) for topic in before} == before

    snapshot = tmp_path / "snapshot"
    run_kops("state", "snapshot", program.application, "--to", snapshot, "-B", cluster.servers).ok()
    cluster.produce(buffer, [Record(b"stray", b"", START, (), 0)])
    refused = run_kops("state", "restore", snapshot, "--yes", "-B", cluster.servers)
    assert refused.code == 5, refused
    assert "have headers" in refused.err
    cluster.delete(buffer)
    run_kops("state", "restore", snapshot, "--yes", "-B", cluster.servers).ok()
    assert {topic: compacted_view(cluster.read(topic)) for topic in before} == before


@pytest.mark.long
def test_versions_that_came_too_late_for_their_store_do_not_move(cluster, prefix, tmp_path, run_kops):
    """``RocksDBVersionedStore.put`` takes none that is older than the newest one before it by more than the history; the log has it."""
    history, table = 1000, f"{prefix}-table"
    body = {
        "application": prefix,
        "stores": {
            "it": {"type": "versioned", "history_retention": f"{history}ms", "from": {"topic": table, "key": "bytes", "value": "bytes"}}
        },
    }
    (tmp_path / "state.yaml").write_text(json.dumps(body), encoding="utf-8")
    changelog = f"{prefix}-it-changelog"
    cluster.create_all({table: OLD, f"{table}-{NEW}": NEW})
    cluster.create(changelog, OLD, {"cleanup.policy": "compact", "min.compaction.lag.ms": str(history + 86_400_000)})
    late = {0: 0, 1: 5000, 2: 4000, 3: 3999, 4: 5000 - history - 1, 5: 6000}
    taken = [START + late[at] for at in (0, 1, 2, 5)]
    versions = [Record(key, b"%d" % at, START + time) for key in NAMES[:50] for at, time in late.items()]
    cluster.produce(changelog, [version for at in late for version in versions if version.value == b"%d" % at])
    cluster.commit(prefix, {(table, number): 0 for number in range(OLD)})
    move = ("--partitions", NEW, "--input", f"{table}={table}-{NEW}", "--confirm", prefix)
    run_kops("state", "repartition", tmp_path / "state.yaml", *move, "-B", cluster.servers).ok()

    def held():
        found: dict[bytes, list[int]] = {}
        for record in cluster.read(changelog):
            found.setdefault(record.key, []).append(record.timestamp)
        return found

    assert held() == dict.fromkeys(NAMES[:50], taken_in_order := sorted(taken))
    assert {record.partition for record in cluster.read(changelog)} - set(range(OLD))
    entry = run_kops("journal", "list", "-o", "json").ok().json[0]["id"]
    run_kops("undo", entry, "--confirm", prefix, "-B", cluster.servers).ok()
    assert held() == dict.fromkeys(NAMES[:50], taken_in_order)


def test_reports_say_what_was_wrong_what_was_written_and_what_was_read_back(scene):
    place, wrong = scene.view()[b"foobar"].partition, b"\x00" * 8
    strange = [Record(b"foobar", wrong, START, (), place), Record(b"<script>alert(1)</script>", ONE, START, (), 0)]
    scene.cluster.produce(scene.program.changelog, strange)
    looked, rebuilt = scene.folder / "verify.html", scene.folder / "rebuild.html"
    assert scene.kops("verify", scene.file, "--report", looked).code == 1
    scene.kops("rebuild", scene.file, "--damaged", scene.program.store, "--yes", "--report", rebuilt).ok()
    assert scene.values() == EXPECTED
    for file, said in (
        (looked, "2 keys of the changelogs are wrong"),
        (rebuilt, "2 records written, and verified by reading them back. Keys that were wrong: "),
    ):
        text = file.read_text(encoding="utf-8")
        assert said in text
        assert "foobar" in text
        assert "&lt;script&gt;" in text
        assert "<script" not in text
        assert "1 unexpected" in text
        assert file.stat().st_mode & 0o777 == 0o600
    assert f"kops undo {last(scene)}" in rebuilt.read_text(encoding="utf-8")
    scene.refused(scene.kops("verify", scene.file, "--report", looked), "exists already", code=2)


def test_repartition_with_a_custom_partitioner_is_refused(cluster, prefix, tmp_path, run_kops):
    scene = Scene(cluster, prefix, tmp_path, run_kops)
    wrong = (scene.view()[b"foobar"].partition + 1) % OLD
    cluster.produce(scene.program.changelog, [Record(b"foobar", ONE, START, (), wrong)])
    before = cluster.ends(scene.program.changelog)
    scene.refused(scene.repartition(*scene.move), f"1 of {KEYS:,} keys are not where a default partitioner puts them")
    assert cluster.ends(scene.program.changelog) == before

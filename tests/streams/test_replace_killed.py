"""kops killed while it recreates a changelog: finished from the journal, or by the same command, with the topic's own settings."""

import contextlib
import json
import struct

import pytest
from confluent_kafka import KafkaException

from support import processes
from support.programs import Program, Record
from support.streams import Entry, compacted_view
from support.streams_apps import wait_for
from support.streams_cases import START

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

KEYS, PARTITIONS = 20_000, 2
COUNT = Program("count", "long", value="bytes")
ONE = struct.pack(">q", 1)
SETTINGS = {"cleanup.policy": "compact", "max.message.bytes": "20000", "min.cleanable.dirty.ratio": "0.9"}
SLOW = 2_000
"""Bytes a second that the broker takes of the kops that is to be killed: writing it all would take more than a minute."""
SLOWLY = ("-X", "message.max.bytes=15000")


def test_replacement_killed_after_deletion_is_finished(cluster, prefix, tmp_path, run_kops, kops_process):
    program = COUNT.named(prefix)
    changelog, wrong = program.changelog, Record(b"key-1", b"wrong", START, (), 0)
    cluster.create(program.topic, PARTITIONS)
    cluster.create(changelog, PARTITIONS - 1, SETTINGS)
    cluster.produce(changelog, [wrong])
    cluster.produce(program.topic, (Record(b"key-%d" % at, b"x", START + at, (), at % PARTITIONS) for at in range(KEYS)))
    cluster.commit(program.application, {(program.topic, at): KEYS // PARTITIONS for at in range(PARTITIONS)})
    file = tmp_path / "state.yaml"
    file.write_text(json.dumps(program.state_file()), encoding="utf-8")
    damaged = ("--damaged", program.store)
    command = ("state", "rebuild", str(file), "-B", cluster.servers, *damaged, "--write", "replace", "--confirm", changelog)
    cluster.slow_down(prefix, SLOW)
    process = kops_process(*command, "-X", f"client.id={prefix}", *SLOWLY)

    def deleted() -> bool:
        assert process.poll() is None, process.communicate()
        return cluster.topics(changelog).get(changelog) != PARTITIONS - 1

    wait_for("the changelog to be deleted", deleted)
    processes.end(process)
    cluster.hear_out(prefix)
    entry = run_kops("journal", "list", "-o", "json").ok().json[0]
    assert (entry["operation"], entry["status"]) == ("state.replace", "crashed")
    with contextlib.suppress(KafkaException):  # kops made it, or asked for it just before it ended
        cluster.create(changelog)
    cluster.delete(changelog)  # as if it had been killed before it made the topic
    missing = run_kops("state", "verify", str(file), "-B", cluster.servers)
    assert missing.code == 2
    assert "--write replace" in missing.err
    assert [row["id"] for row in run_kops("journal", "list", "--unfinished", "-o", "json").ok().json] == [entry["id"]]
    run_kops(*command).ok()
    right(cluster, program)
    assert run_kops("journal", "list", "--unfinished", "-o", "json").ok().json == []
    assert run_kops("journal", "finish", entry["id"], "-B", cluster.servers, "--confirm", changelog).code == 5
    run_kops("undo", "last", "-B", cluster.servers, "--confirm", program.application).ok()
    assert [(record.key, record.value) for record in cluster.read(changelog)] == [(b"key-1", b"wrong")], "what it held at first"
    assert cluster.topics(changelog)[changelog] == PARTITIONS - 1
    assert cluster.config(changelog) == SETTINGS


def right(cluster, program: Program) -> None:
    """See that the changelog is as if nothing had ever happened."""
    changelog = program.changelog
    assert compacted_view(cluster.read(changelog)) == {b"key-%d" % at: Entry(ONE, START + at, (), at % PARTITIONS) for at in range(KEYS)}
    assert cluster.topics(changelog)[changelog] == PARTITIONS
    assert cluster.config(changelog) == SETTINGS
    assert cluster.committed(program.application) == {(program.topic, at): KEYS // PARTITIONS for at in range(PARTITIONS)}

"""kops killed while it moves an application to another number of partitions: finished from the journal, the state is all there."""

import json
import struct

import pytest

from support import processes
from support.programs import Program, Record
from support.streams import Entry, compacted_view
from support.streams_apps import wait_for
from support.streams_cases import START

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

KEYS, OLD, NEW = 10_000, 2, 3
COUNT = Program("count", "long", value="bytes")
ONE = struct.pack(">q", 1)
SETTINGS = {"cleanup.policy": "compact", "max.message.bytes": "20000", "min.cleanable.dirty.ratio": "0.9"}
SLOW = 2_000
"""Bytes a second that the broker takes of the kops that is to be killed: writing it all would take more than a minute."""
SLOWLY = ("-X", "message.max.bytes=15000")


def test_repartition_killed_between_its_steps_is_finished(cluster, prefix, tmp_path, run_kops, kops_process):
    program, by_key = COUNT.named(prefix), cluster.create(f"{prefix}-by-key", NEW)
    changelog, servers = program.changelog, ("-B", cluster.servers)
    cluster.create(program.topic, OLD)
    cluster.create(changelog, OLD)
    records = [Record(b"key-%d" % at, b"x", START + at) for at in range(KEYS)]
    counted = [Record(record.key, ONE, record.timestamp) for record in records]
    cluster.produce_all({program.topic: records, changelog: counted, by_key: counted})
    cluster.set_config(changelog, **{name.replace(".", "_"): value for name, value in SETTINGS.items()})
    cluster.commit(program.application, {(program.topic, at): high for at, (_, high) in cluster.ends(program.topic).items()})
    before = cluster.committed(program.application)
    file = tmp_path / "state.yaml"
    file.write_text(json.dumps(program.state_file()), encoding="utf-8")
    confirm = ("--confirm", program.application, *servers)
    command = ("state", "repartition", str(file), "--partitions", str(NEW), "--grow-inputs", *confirm)
    cluster.slow_down(prefix, SLOW)
    process = kops_process(*command, "-X", f"client.id={prefix}", *SLOWLY)

    def begun() -> bool:
        assert process.poll() is None, process.communicate()
        return cluster.topics(changelog).get(changelog) == NEW and any(high for _, high in cluster.ends(changelog).values())

    wait_for("the first record of the new changelog", begun)
    processes.end(process)
    cluster.hear_out(prefix)
    assert sum(high for _, high in cluster.ends(changelog).values()) < KEYS
    assert cluster.topics(program.topic)[program.topic] == OLD, "inputs grow last: that alone cannot be undone"
    assert cluster.committed(program.application) == before
    entry = run_kops("journal", "list", "-o", "json").ok().json[0]
    assert (entry["operation"], entry["status"]) == ("state.repartition", "crashed")
    cluster.delete(changelog)  # as if it had been killed before it made the topic
    run_kops("journal", "finish", entry["id"], *confirm, *SLOWLY).ok()

    places = {record.key: record.partition for record in cluster.read(by_key)}
    expected = {record.key: Entry(ONE, record.timestamp, (), places[record.key]) for record in records}
    assert compacted_view(cluster.read(changelog)) == expected
    assert cluster.config(changelog) == SETTINGS
    assert cluster.topics(prefix) == {program.topic: NEW, changelog: NEW, by_key: NEW}
    assert cluster.committed(program.application) == before | {(program.topic, at): 0 for at in range(OLD, NEW)}
    assert {entry["status"] for entry in run_kops("journal", "list", "-o", "json").ok().json} <= {"finished", "done"}

"""kops killed while it writes, and the broker killed while kops reads and while it writes: run again, the same end."""

import json
import signal
import struct
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from support import processes
from support.patience import HANG_SECONDS
from support.programs import Program, Record
from support.streams import Entry, compacted_view
from support.streams_apps import Cluster, wait_for
from support.streams_cases import START

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

KEYS = 24_000
PARTITIONS = 2
COUNT = Program("count", "long", value="bytes")
ONE = struct.pack(">q", 1)


@pytest.fixture
def kops(run_kops, kops_process):
    return SimpleNamespace(run=run_kops, start=kops_process)


GUARANTEES = ("at_least_once", "exactly_once_v2")
SLOW = 4_000
"""Bytes a second that the broker takes of a kops that is to be ended: writing it all would take more than a minute."""
SMALL_BATCHES = ("-X", "message.max.bytes=15000")
"""So that there is a middle of writing: both writers would send all of it in a request or two."""


def stage(cluster: Cluster, prefix: str, guarantee: str, folder: Path) -> tuple[Program, str]:
    """Make the topics of an application that counted many keys once, and lost its changelog."""
    program = COUNT.named(prefix)
    cluster.create(program.topic, PARTITIONS)
    cluster.create(program.changelog, PARTITIONS, {"cleanup.policy": "compact", "max.message.bytes": "20000"})
    cluster.produce(program.topic, (Record(b"key-%d" % at, b"x", START + at, (), at % PARTITIONS) for at in range(KEYS)))
    cluster.commit(program.application, {(program.topic, at): KEYS // PARTITIONS for at in range(PARTITIONS)})
    file = folder / "state.yaml"
    file.write_text(json.dumps(program.state_file(guarantee)), encoding="utf-8")
    return program, str(file)


def expected() -> dict[bytes, Entry]:
    """What `count` holds, as the oracle has it for one record a key."""
    return {b"key-%d" % at: Entry(ONE, START + at, (), at % PARTITIONS) for at in range(KEYS)}


def written(cluster: Cluster, topic: str) -> int:
    return sum(high - low for low, high in cluster.ends(topic).values())


def wait_until_it_writes(cluster: Cluster, topic: str, process: subprocess.Popen) -> None:
    def begun() -> bool:
        assert process.poll() is None, process.communicate()
        return written(cluster, topic) > 0

    wait_for("the first record of the changelog", begun)


@pytest.mark.parametrize(
    ("end", "guarantee", "status", "then"),
    [
        (signal.SIGKILL, "at_least_once", "crashed", "rebuild"),
        (signal.SIGKILL, "exactly_once_v2", "crashed", "finish"),
        (signal.SIGINT, "at_least_once", "interrupted", "rebuild"),
    ],
)
def test_rebuild_ended_while_it_writes_is_completed_later(cluster, prefix, tmp_path, kops, end, guarantee, status, then):
    program, file = stage(cluster, prefix, guarantee, tmp_path)
    cluster.slow_down(prefix, SLOW)
    process = kops.start("state", "rebuild", file, "-B", cluster.servers, "--yes", "-X", f"client.id={prefix}", *SMALL_BATCHES)
    wait_until_it_writes(cluster, program.changelog, process)
    said = processes.end(process, end)
    cluster.hear_out(prefix)
    assert process.returncode == (130 if end == signal.SIGINT else -signal.SIGKILL), said
    entry = kops.run("journal", "list", "-o", "json").ok().json[0]
    assert entry["status"] == status, entry
    assert written(cluster, program.changelog) < KEYS
    again = ("state", "rebuild", file) if then == "rebuild" else ("journal", "finish", entry["id"])
    done = kops.run(*again, "-B", cluster.servers, "--yes", *SMALL_BATCHES)
    done.ok()
    assert compacted_view(cluster.read(program.changelog)) == expected()
    assert cluster.committed(program.application) == {(program.topic, at): KEYS // PARTITIONS for at in range(PARTITIONS)}


def test_ctrl_c_while_it_computes_changes_nothing(cluster, prefix, tmp_path, kops):
    program, file = stage(cluster, prefix, "at_least_once", tmp_path)
    said = tmp_path / "said"
    with said.open("w") as stderr:
        process = kops.start("state", "rebuild", file, "-B", cluster.servers, "--yes", stderr=stderr)
    wait_for("kops to begin", lambda: f"computing {program.store}" in said.read_text())
    process.send_signal(signal.SIGINT)
    assert process.wait(HANG_SECONDS) == 130
    assert "no plan was being carried out" in said.read_text()
    assert "Traceback" not in said.read_text()
    assert written(cluster, program.changelog) == 0
    assert kops.run("journal", "list", "-o", "json").ok().json == []


@pytest.mark.parametrize(("moment", "guarantee"), [("reads", GUARANTEES[0]), ("writes", GUARANTEES[1])])
def test_rebuild_survives_a_killed_broker_or_fails_honestly(own_broker, tmp_path, kops, moment, guarantee):
    own = own_broker()
    cluster = Cluster(own.bootstrap_servers)
    program, file = stage(cluster, "own", guarantee, tmp_path)
    cluster.slow_down("slow", 160_000)
    said = tmp_path / "said"
    with said.open("w") as stderr:
        process = kops.start(
            "state", "rebuild", file, "-B", cluster.servers, "--yes", "-X", "client.id=slow", *SMALL_BATCHES, stderr=stderr
        )
    if moment == "writes":
        wait_until_it_writes(cluster, program.changelog, process)
    else:
        wait_for("kops to begin", lambda: f"computing {program.store}" in said.read_text())
    own.kill()
    own.start()
    process.wait(HANG_SECONDS)
    if process.returncode:  # an honest failure is allowed; a wrong state, or a false success, is not
        assert "kops: error:" in said.read_text()
        assert "Traceback" not in said.read_text()
        kops.run("state", "rebuild", file, "-B", cluster.servers, "--yes", *SMALL_BATCHES).ok()
    assert compacted_view(cluster.read(program.changelog)) == expected()

"""Groups that other clients can make and no tool expects: none of them hides the others."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata, TopicPartition

from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams_apps import wait_for

pytestmark = pytest.mark.broker

RAW = Path(__file__).parent.parent / "support" / "raw_group.py"


def string(data):
    return struct.pack(">h", len(data)) + data


def assignment(*topics):
    """Return an assignment of the consumer protocol: partition 0 of each topic."""
    listed = b"".join(string(topic) + struct.pack(">ii", 1, 0) for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + listed + struct.pack(">i", -1)


@pytest.fixture
def joined(broker, group):
    """Join a group with any bytes as the member's metadata and assignment, until the test ends."""
    started = []

    def join(assigned, topic):
        metadata = struct.pack(">hi", 0, 1) + string(topic.encode()) + struct.pack(">i", -1)
        line = [sys.executable, str(RAW), broker.bootstrap_servers, group, "consumer", metadata.hex(), assigned.hex()]
        started.append(subprocess.Popen(line, stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout.readline() == "joined\n"

    yield join
    for process in started:
        process.terminate()  # it leaves the group: a member that was killed would stay in it for 45 s
        assert process.wait(HANG_SECONDS) == 0
        process.stdout.close()


BAD = {
    "not UTF-8": lambda topic: assignment(topic, b"bad\xff\xfe"),
    "no topic name": lambda topic: assignment(topic, b"a/b c", b""),
    "too short": lambda topic: assignment(topic)[:-7],
    "nothing": lambda _: b"",
    "random": lambda _: os.urandom(200),
    "claims much": lambda _: struct.pack(">hi", 0, 1 << 30),
}


@pytest.mark.parametrize("bad", BAD)
def test_the_bytes_of_one_member_hide_nothing_else(run_kops, broker, cluster, topic, group, unique, joined, bad):
    name, other = topic(), unique("other")
    cluster.produce(name, [Record(None, b"x", 1_000_000, partition=0)])
    cluster.commit(other, {(name, 0): 0})
    joined(BAD[bad](name.encode()), name)
    for command in (
        ["groups", "describe", group, other],
        ["groups", "lag", group, other],
        ["groups", "lag", "*"],
        ["topics", "describe", name],
        ["topics", "delete", name, "--dry-run"],
        ["topics", "truncate", name, "--to", "end", "--dry-run"],
        ["streams", "list"],
        ["diagnose", group, other, "--sample", "0s"],
    ):
        found = run_kops(*command, "-B", broker.bootstrap_servers)
        assert (found.code in (0, 1, 6), "bug:" in found.err) == (True, False), (command, found.code, found.err)
    rows = {row["group"]: row for row in run_kops("groups", "describe", group, other, "-o", "json", "-B", broker.bootstrap_servers).json}
    assert (rows[group]["state"], rows[other]["state"]) == ("STABLE", "EMPTY")
    if bad == "not UTF-8":
        assert [one["topic"] for one in rows[group]["members"][0]["assignment"]] == [r"bad\xff\xfe", name]
    lag = run_kops("groups", "lag", group, other, "-o", "json", "-B", broker.bootstrap_servers).json
    assert [row["lag"] for row in lag if row["group"] == other] == [1]


@pytest.fixture
def unnamed(broker, cluster, topic):
    """A topic with two records, of which the group "" has read one."""
    name = topic()
    cluster.produce(name, [Record(None, b"x", 1_000_000, partition=0), Record(None, b"y", 1_000_000, partition=0)])
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)

    def commit():
        try:
            answer = admin.alter_group_offsets("", {TopicPartition(name, 0): OffsetAndMetadata(1, "", -1)})
        except KafkaError:  # the topic of commits is created by the first one
            return False
        return all(not error.errno for error in answer.values())

    wait_for("the commit", commit)
    yield name
    admin.delete_groups([""])
    admin.close()


def test_the_group_without_a_name_is_one_of_many(run_kops, broker, cluster, unique, unnamed):
    other = unique("other")
    cluster.commit(other, {(unnamed, 0): 0})

    def kops(*arguments):
        return run_kops(*arguments, "-B", broker.bootstrap_servers)

    assert "" in [row["group"] for row in kops("groups", "list", "-o", "json").ok().json]
    described = {row["group"]: row for row in kops("groups", "describe", "*", "-o", "json").ok().json}
    assert (described[""]["state"], described[""]["members"], described[other]["state"]) == ("EMPTY", [], "EMPTY")
    lag = [row for row in kops("groups", "lag", "*", "-o", "json").ok().json if row["topic"] == unnamed]
    assert [(row["group"], row["lag"]) for row in lag] == [("", 1), (other, 2)]
    shown = kops("offsets", "show", "", "-o", "json").ok().json
    assert [(row["topic"], row["partition"], row["offset"]) for row in shown] == [(unnamed, 0, 1)]
    deleted = kops("groups", "delete", "", "--confirm", "1 groups")
    assert deleted.code == 0, deleted.err
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    assert "" not in [each["group_id"] for each in admin.list_groups()]
    admin.close()


def test_a_name_that_reads_like_a_glob_hides_no_other(run_kops, broker, cluster, topic, unique):
    name, stem = topic(), unique("team")
    cluster.produce(name, [Record(None, b"x", 1_000_000, partition=0) for _ in range(10)])
    cluster.commit(f"{stem}*", {(name, 0): 10})
    cluster.commit(f"{stem}-a", {(name, 0): 0})
    found = run_kops("groups", "lag", f"{stem}*", "--max-lag", "5", "-o", "json", "-B", broker.bootstrap_servers)
    assert sorted({row["group"] for row in found.json}) == [f"{stem}*", f"{stem}-a"]
    assert found.code == 1

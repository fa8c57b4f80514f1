"""Apache's own console tools beside kops: what one writes the other reads, and keys land in the same partitions."""

import json
import subprocess

import pytest

from kops.core.times import time_text
from support.patience import HANG_SECONDS
from support.streams import java_command
from support.streams_apps import Cluster
from support.topics import commit

pytestmark = pytest.mark.broker

KEYS = ["", "a", "ab", "abc", "abcd", "key-17", "schlüssel", "日本", "x" * 300, *(f"{n}" for n in range(40))]


@pytest.fixture
def apache(broker, jdk):
    """Run a tool of kafka-tools: ``apache("ConsoleProducer", "--topic", ..., lines="...")`` gives its output."""

    def run(tool, *arguments, lines=""):
        command = [*java_command(f"org.apache.kafka.tools.{tool}"), "--bootstrap-server", broker.bootstrap_servers]
        done = subprocess.run([*command, *arguments], input=lines.encode(), capture_output=True, timeout=HANG_SECONDS, check=False)
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        return done.stdout

    return run


def test_keys_land_where_the_java_producer_puts_them(apache, broker, run_kops, topic):
    java, ours, cluster = topic("java", partitions=7), topic("ours", partitions=7), Cluster(broker.bootstrap_servers)
    lines = "".join(f"{key}\tvalue of {key}\n" for key in KEYS)
    reader = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=\t")
    apache("ConsoleProducer", "--topic", java, *reader, lines=lines)
    run_kops("records", "produce", ours, "--key-separator", "\t", "-B", broker.bootstrap_servers, input=lines).ok()
    theirs = {(record.partition, record.key, record.value) for record in cluster.read(java)}
    assert len(theirs) == len(KEYS)
    assert {(record.partition, record.key, record.value) for record in cluster.read(ours)} == theirs
    written = run_kops("records", "consume", java, "start..", "--format", "%k\t%s\n", "-B", broker.bootstrap_servers).ok()
    assert sorted(written.out.splitlines(keepends=True)) == sorted(lines.splitlines(keepends=True))


def test_the_console_consumer_reads_what_kops_wrote_as_kops_does(apache, broker, run_kops, topic):
    name = topic(partitions=2)
    lines = "k1:one\nk2:NULL\nNULL:three\nk4:\n"
    flags = ("--key-separator", ":", "--null", "NULL", "--header", "h=1", "--header", "i=x", "--timestamp", "@2026-11-20T14:05")
    run_kops("records", "produce", name, *flags, "-B", broker.bootstrap_servers, input=lines).ok()
    shown = ("timestamp", "partition", "offset", "headers", "key")
    properties = [part for field in shown for part in ("--formatter-property", f"print.{field}=true")]
    printed = apache("consumer.ConsoleConsumer", "--topic", name, "--from-beginning", "--max-messages", "4", *properties).decode()
    template = "CreateTime:%T\tPartition:%p\tOffset:%o\t%h\t%k\t%s\n"
    ours = run_kops("records", "consume", name, "start..", "--format", template, "-B", broker.bootstrap_servers).ok().out
    # Apache writes null for what is not there and a colon in headers.
    expected = [line.replace("\tnull", "\t").replace("h:1,i:x", "h=1,i=x") for line in printed.splitlines()]
    assert sorted(ours.splitlines()) == sorted(expected)


def test_commits_are_shown_as_apaches_formatter_shows_them(apache, broker, run_kops, topic, unique):
    name, group = topic(partitions=1), unique("group")
    run_kops("records", "produce", name, "--value", "a", "-B", broker.bootstrap_servers).ok()
    commit(broker, name, group)
    arguments = ("__consumer_offsets", "start..", "--filter", f"key.group={group}", "--filter", "key.type=offset_commit", "-o", "json")
    out = run_kops("records", "consume", *arguments, "-B", broker.bootstrap_servers).ok().out
    ours = json.loads(out.splitlines()[-1])
    formatter = ("--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter", "--timeout-ms", "240000")
    place = ("--partition", str(ours["partition"]), "--offset", str(ours["offset"]), "--max-messages", "1")
    printed = apache("consumer.ConsoleConsumer", "--topic", "__consumer_offsets", *place, *formatter).decode()
    theirs = json.loads(printed[printed.index("{") :])
    assert ours["key"] == {"type": "offset_commit", **theirs["key"]["data"]}
    held = theirs["value"]["data"]
    assert (ours["value"]["offset"], ours["value"]["metadata"]) == (held["offset"], held["metadata"])
    assert ours["value"]["leader_epoch"] == (None if held["leaderEpoch"] == -1 else held["leaderEpoch"])
    assert ours["value"]["committed_at"] == time_text(held["commitTimestamp"])

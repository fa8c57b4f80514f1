"""A replay ended in the middle (SIGKILL, Ctrl-C, a record that the target does not take, a broker that is away), then resumed."""

import json
import os
import random
import signal
import threading

import pytest

from support import processes
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams_apps import Cluster, wait_for, without_offsets

pytestmark = [pytest.mark.broker, pytest.mark.spark]

START = 1_760_000_000_000
QUOTA, AT_MOST = 200_000, 800
"""Bytes a second, and records after which a replay is killed at the latest: it cannot end before, however slow this machine is."""

ENDS = (signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)


def records(count, size=1000, partitions=2):
    return (Record(b"key-%d" % n, (b"%d-" % n).ljust(size, b"v"), START + n, (("h", b"x"),), n % partitions) for n in range(count))


def sent(cluster, topic):
    return sum(high - low for low, high in cluster.ends(topic).values())


@pytest.mark.parametrize(("how", "times"), [((), 2), (("--where", "offset >= 0"), 1), ((), 4)])
def test_killed_at_random_moments(scene, kops, kops_process, broker, unique, how, times):
    """Whole batches, resumed and killed again, and rows; the broker slows the writer down, so that there are several transactions."""
    source, target = scene.topic("source"), scene.topic("target")
    scene.cluster.produce(source, records(24_000))
    scene.cluster.slow_down(slow := unique("slow"), QUOTA)
    everything = scene.read(source)
    for time_ in range(times):
        before = sent(scene.cluster, target)
        what = ("resume", "last") if time_ else ("run", source, "--to", target, *how)
        process = kops_process("replay", *what, "--yes", "-B", broker.bootstrap_servers, "-X", f"client.id={slow}")
        enough = before + random.randrange(AT_MOST)
        wait_for("it to send", lambda enough=enough, it=process: it.poll() is not None or sent(scene.cluster, target) > enough)
        number, code = ENDS[time_ % 2]
        processes.end(process, number)
        assert process.returncode == code
        seen = scene.read(target)
        for number in range(2):
            part = [record for record in seen if record.partition == number]
            assert part == [record for record in everything if record.partition == number][: len(part)]
    replay = kops("journal", "show", "last", "-o", "json").ok().json["plan"]["arguments"]["replay"]
    for deleted in scene.cluster.admin.delete_consumer_groups([f"{replay}-{number}" for number in range(2)]).values():
        deleted.result(HANG_SECONDS)  # what the groups knew is in kops-progress too
    seen = len(scene.read(target))
    done = kops("replay", "resume", "last", "--yes").ok()
    assert (f"{seen:,} record" in done.err, "sent before" in done.err, "proven: 24,000 records" in done.err) == (True, True, True)
    assert scene.read(target) == everything
    again = kops("replay", "resume", "last", "--yes")
    assert (again.code, "done already" in again.err) == (5, True)


def test_sparks_jvm_is_killed(scene, kops, kops_process, broker, unique):
    """As the kernel does where memory runs out."""
    source, target = scene.topic("source"), scene.topic("target")
    scene.cluster.produce(source, records(24_000))
    scene.cluster.slow_down(slow := unique("slow"), QUOTA)
    options = ("--yes", "-B", broker.bootstrap_servers, "-X", f"client.id={slow}", "-o", "json")
    process = kops_process("replay", "run", source, "--to", target, *options)
    wait_for("it to send", lambda: process.poll() is not None or sent(scene.cluster, target) > 0)
    (jvm,) = processes.named(processes.descendants({process.pid}), "org.apache.spark.deploy.SparkSubmit")
    os.kill(jvm, signal.SIGKILL)
    out, err = process.communicate(timeout=HANG_SECONDS)
    said = json.loads(out or err.splitlines()[-1])["errors"][0]["message"]
    assert said == "could not run the tasks of a replay: Spark's JVM was ended by SIGKILL; was it out of memory?", err
    assert process.returncode == 1
    kops("replay", "resume", "last", "--yes").ok()
    assert scene.read(target) == scene.read(source)


def test_a_record_that_is_too_large(scene, kops, as_pinned):
    source, target = scene.topic("source"), scene.topic("target", max_message_bytes="50000")
    large = Record(b"large", b"x" * 200_000, START, (), 1)
    scene.cluster.produce(source, [*records(2000, 100), large, *records(2000, 100)])
    failed = kops("replay", "run", source, "--to", target, "--yes", "-o", "json")
    assert failed.code == 6
    errors = failed.json["errors"]
    assert [error["details"] for error in errors] == [{"partition": 1, "offset": 1000}]
    everything = scene.read(source)
    safe = [record for record in everything if record.partition == 0]
    assert scene.read(target) == safe + [record for record in everything if record.partition == 1][:1000]
    scene.cluster.set_config(target, max_message_bytes="300000")
    as_pinned("kops replay resume", kops("replay", "resume", failed.json["journal_id"], "--yes", "-o", "json").ok())
    assert scene.read(target) == everything


def test_two_at_once_into_one_topic(scene, kops, kops_process, broker):
    source, target = scene.topic("source"), scene.topic("target")
    scene.cluster.produce(source, records(4000, 100))
    other = kops_process("replay", "run", source, "--to", target, "--rate", "700", "--yes", "-B", broker.bootstrap_servers)
    wait_for("it to send", lambda: other.poll() is not None or sent(scene.cluster, target) > 0)
    code = kops("replay", "run", source, "--to", target, "--yes")
    _, said = other.communicate(timeout=HANG_SECONDS)
    outcomes = [(code.code, code.err), (other.returncode, said)]
    assert all(done == 0 and "proven: 4,000 records" in text for done, text in outcomes), outcomes
    order = sorted(scene.read(target), key=lambda record: (record.partition, record.timestamp))
    twice = [record for record in scene.read(source) for _ in range(2)]
    assert order == sorted(twice, key=lambda record: (record.partition, record.timestamp))


def test_to_another_cluster_whose_broker_restarts(second_broker, scene, run_kops, broker):
    own = second_broker
    source, elsewhere = scene.topic("source"), Cluster(own.bootstrap_servers)
    elsewhere.create("target", 2, {"retention.ms": "-1"})
    scene.cluster.produce(source, records(8000, 500))
    for name, servers in (("here", broker.bootstrap_servers), ("there", own.bootstrap_servers)):
        run_kops("context", "add", name, "--bootstrap-servers", servers).ok()

    def restart():
        wait_for("it to send", lambda: sent(elsewhere, "target") > 0)
        own.kill()
        own.start()

    restarting = threading.Thread(target=restart)
    restarting.start()
    done = run_kops("replay", "run", source, "-c", "here", "--to", "target", "--to-context", "there", "--rate", "1000", "--yes")
    restarting.join()
    assert "proven: 8,000 records" in done.ok().err
    assert without_offsets(elsewhere.read("target")) == scene.read(source)

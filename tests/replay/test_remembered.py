"""What replays and redrives remember when the brokers have forgotten their committed offsets and transactional ids."""

import signal

import pytest

from kops.sandbox import brokers
from support import processes
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams_apps import Cluster, wait_for, without_offsets

pytestmark = [pytest.mark.broker, pytest.mark.spark]

START = 1_760_000_000_000
FORGETFUL = {
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "1000",
    "transactional.id.expiration.ms": "30000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
}
PROGRESS = "kops-progress"
COUNT, SIZE, SLOW = 6000, 1000, 150_000
"""Bytes a second that the broker takes of a replay that is to be killed: far less than it has to send."""


@pytest.fixture(scope="module")
def forgetful(own_brokers):
    """A broker that forgets committed offsets after a minute."""
    with pytest.MonkeyPatch.context() as patch:
        plain = brokers.server_settings
        patch.setattr(brokers, "server_settings", lambda *at, **options: plain(*at, **options) | FORGETFUL)
        yield own_brokers()


@pytest.fixture
def kops(run_kops, forgetful, spark):
    return lambda *arguments: run_kops(*arguments, "-B", forgetful.bootstrap_servers)


def records():
    return [Record(b"k%d" % n, (b"%d-" % n).ljust(SIZE, b"v"), START + n, (), n % 2) for n in range(COUNT)]


def letters(origin):
    back = (("__streams.errors.topic", origin.encode()), ("__streams.errors.partition", b"0"), ("__streams.errors.message", b"late"))
    return [Record(b"k%d" % n, b"v%d" % n, START + n, back, n % 2) for n in range(40)]


def killed(kops_process, cluster, target, *how):
    """Start a replay, end it by SIGKILL once some of its records are committed, and return how many are."""
    send = ("replay", "run", "source", "--to", target, "--yes", "-B", cluster.servers, "-X", "client.id=slow")
    process = kops_process(*send, *how)
    wait_for("it to commit", lambda: process.poll() is not None or cluster.read(target))
    processes.end(process)
    assert process.returncode == -signal.SIGKILL
    return len(cluster.read(target))


def test_nothing_is_sent_twice_after_a_minute(forgetful, kops, kops_process):
    """A redrive that is repeated, a replay that is resumed, one that only had its groups; then a topic that somebody deleted."""
    cluster = Cluster(forgetful.bootstrap_servers)
    for topic in ("source", "exact", "least", "origin", "queue"):
        cluster.create(topic, 2, {"retention.ms": "-1"})
    cluster.produce("source", records())
    cluster.produce("queue", letters("origin"))
    cluster.slow_down("slow", SLOW)
    assert "creates kops-progress" in kops("replay", "run", "source", "--to", "exact", "--dry-run").ok().err
    assert "proven: 40 records" in kops("replay", "redrive", "queue", "--to-topics", "origin", "--yes").ok().err
    assert 0 < killed(kops_process, cluster, "exact") < COUNT
    exact = kops("journal", "list", "-o", "json").ok().json[0]["id"]
    assert 0 < killed(kops_process, cluster, "least", "--guarantee", "at-least-once") < COUNT
    least = kops("journal", "list", "-o", "json").ok().json[0]["id"]
    assert exact != least
    known = kops("replay", "run", "source", "--to", "least", "--guarantee", "at-least-once", "--dry-run").ok()
    assert "for 1m (offsets.retention.minutes) after the last commit" in known.err

    def groups():
        return [group.group_id for group in cluster.admin.list_consumer_groups().result().valid if group.group_id.startswith("kops-")]

    wait_for("the brokers to forget", lambda: not groups())
    again = kops("replay", "redrive", "queue", "--yes", "-o", "json").ok().json
    assert ({item["status"] for item in again["items"]}, len(cluster.read("origin"))) == ({"unchanged"}, 40)

    before = cluster.read("least")
    refused = kops("replay", "resume", least, "--yes")
    assert (refused.code, "is no longer known" in refused.err, f"least grew by {len(before):,} offsets" in refused.err) == (5, True, True)
    assert cluster.read("least") == before

    sent = len(cluster.read("exact"))
    done = kops("replay", "resume", exact, "--yes").ok()
    assert (f"{sent:,} records were sent before" in done.err, f"proven: {COUNT:,} records" in done.err) == (True, True), done.err
    assert without_offsets(cluster.read("exact")) == without_offsets(cluster.read("source"))

    cluster.create("other", 2, {"retention.ms": "-1"})
    assert 0 < killed(kops_process, cluster, "other") < COUNT
    cluster.delete_all([PROGRESS])
    for gone in cluster.admin.delete_consumer_groups(groups()).values():
        gone.result(HANG_SECONDS)
    assert not groups()
    before = cluster.read("other")
    refused = kops("replay", "resume", "last", "--yes")
    assert (refused.code, "is no longer known" in refused.err, cluster.read("other") == before) == (5, True, True)
    refused = kops("replay", "redrive", "queue", "--to-topics", "origin", "--yes")
    assert (refused.code, "kops-progress no longer has it" in refused.err, len(cluster.read("origin"))) == (5, True, 40)
    assert "proven: 40 records" in kops("replay", "redrive", "queue", "--again", "--to-topics", "orig*", "--yes").ok().err
    assert len(cluster.read("origin")) == 80

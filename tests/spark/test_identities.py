"""Each way to log in, at a real broker: a verb of each family, by every client of kops, the JVM that reads and the tasks that write."""

import os
import shutil
import signal
import stat

import pytest

from kops.core.models import CommittedOffset, NewRecord, TopicPartition
from kops.gateways.kafka import Kafka
from kops.operations.engine.state_files import read_state_file
from support.identities import WAYS, strict, token_endpoint
from support.patience import HANG_SECONDS
from support.processes import freeze
from support.streams_apps import wait_for

__all__ = ["strict", "token_endpoint"]
pytestmark = [
    pytest.mark.spark,
    pytest.mark.broker,
    pytest.mark.long,
    pytest.mark.skipif(not shutil.which("openssl"), reason="this needs the openssl command"),
]

RECORDS, KEYS = 60, 7
STATE_FILE = """\
application: {application}
streams: {{version: "4.3"}}
stores:
  seen:
    from: {{topic: {topic}, key: string, value: string}}
    where: value is not null
    aggregate: {{count: true}}
"""


@pytest.fixture
def application(strict, run_kops, home, tmp_path, unique):
    """Make an application whose changelog is empty; gives the path of its state file."""
    config = home / "config" / "kops" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(strict.contexts())
    kafka = Kafka(strict.own.connection)

    def make():
        name, topic = unique("app"), unique("in")
        run_kops("-c", "admin", "topics", "create", topic, "--partitions", "1", "--yes").ok()
        run_kops("-c", "admin", "topics", "create", f"{name}-seen-changelog", "--partitions", "1", "--compacted", "--yes").ok()
        kafka.produce(topic, [NewRecord(b"k%d" % (at % KEYS), b"v", 1_760_000_000_000 + at, partition=0) for at in range(RECORDS)])
        assert set(kafka.groups.commit(name, {TopicPartition(topic, 0): CommittedOffset(RECORDS)}).values()) == {None}
        file = tmp_path / f"{name}.yaml"
        file.write_text(STATE_FILE.format(application=name, topic=topic))
        return file

    return make


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_log_in_serves_each_family(way, strict, application, run_kops, home, unique):
    def kops(*arguments):
        return run_kops("-c", way, *arguments)

    file, group, copy = application(), unique("g"), unique("copy")
    topic = read_state_file(str(file)).stores[0].source.topic
    kops("topics", "create", copy, "--partitions", "1", "--yes").ok()
    kops("offsets", "seek", group, f"{topic}:0=3", "--new-group", "--yes").ok()
    assert [row["lag"] for row in kops("groups", "lag", group, "-o", "json").ok().json] == [RECORDS - 3]
    acls = kops("acls", "create", f"User:{group}", "--operation", "READ", "--resource", f"topic:{topic}", "--yes")
    replay = kops("replay", "run", topic, "--to", copy, "--yes")
    if way == "pkcs12":  # which kafka-python does not read
        assert (acls.code, "does not know PKCS12 key stores" in acls.err) == (2, True), acls.err
        assert (replay.code, "cannot keep to ssl.keystore.location" in replay.err) == (5, True), replay.err
    else:
        acls.ok()
        replay.ok()
        sent = Kafka(strict.own.connection).offsets.bounds([TopicPartition(copy, 0)])[TopicPartition(copy, 0)]
        assert sent.log_end_offset >= RECORDS
    kops("state", "rebuild", file, "--yes").ok()
    (store,) = kops("state", "verify", file, "-o", "json").ok().json
    assert store["keys"] == KEYS
    assert all(stat.S_IMODE(token.stat().st_mode) == 0o600 for token in (home / "state" / "kops" / "spark").glob("run-*/token-*.jwt"))


def test_two_runs_with_certificates_do_not_touch_each_others_keys(application, strict, run_kops, kops_process, home):
    """One is stopped while its key store is on disk; the other comes, ends and cleans up in the meantime."""
    first, second = application(), application()
    private = home / "state" / "kops" / "spark"

    def stores():
        return {path: path.read_text() for path in private.glob("run-*/keystore-*.pem")}

    process = kops_process("-c", "alice", "state", "rebuild", first, "--yes")
    wait_for("its key store", lambda: process.poll() is not None or stores())
    freeze(process.pid)
    try:
        before = stores()
        assert [stat.S_IMODE(path.stat().st_mode) for path in before] == [0o600]
        assert (strict.folder / "alice.key").read_text().strip() in next(iter(before.values()))
        other = kops_process("-c", "bob", "state", "rebuild", second, "--yes")
        wait_for("the other's key store", lambda: other.poll() is not None or len(stores()) > 1)
        assert len(set(stores().values())) == 2
        _, said = other.communicate(timeout=HANG_SECONDS)
        assert other.returncode == 0, said
        assert stores() == before
    finally:
        os.kill(process.pid, signal.SIGCONT)
    _, said = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 0, said
    assert stores() == {}
    for name, file in (("alice", first), ("bob", second)):
        assert run_kops("-c", name, "state", "verify", file, "-o", "json").ok().json[0]["keys"] == KEYS

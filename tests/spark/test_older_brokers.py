"""kops on brokers of Kafka before 4.0: each verb works, or says which version it needs."""

import os
from contextlib import contextmanager
from pathlib import Path

import pytest

from kops.config.connection import Connection
from kops.core.models import NewRecord
from kops.core.murmur2 import partition_for
from kops.gateways.kafka import Kafka
from support.kafka import broker_jars
from support.services import own_kafkas
from support.streams_apps import Cluster
from support.zookeeper_kafka import OLDEST, zookeeper_kafka

pytestmark = [pytest.mark.broker, pytest.mark.spark]

STATE_FILE = """\
application: {application}
stores:
  totals:
    from: {{topic: {topic}, key: string, value: long}}
    aggregate: {{sum: value, as: long}}
"""
VERSIONS = ["3.6.2", *(pytest.param(version, marks=pytest.mark.long) for version in ("3.9.1", "3.3.2", OLDEST))]


@contextmanager
def running(version, jdk, tmp_path_factory, settings=None):
    if version == OLDEST:
        with zookeeper_kafka(tmp_path_factory.mktemp("old"), Path(os.environ["KOPS_CACHE_DIR"]), jdk, settings) as servers:
            yield servers
        return
    with own_kafkas(version, broker_jars(version), jdk, tmp_path_factory) as start:
        yield start().bootstrap_servers


@pytest.fixture(scope="module", params=VERSIONS)
def older(request, jdk, tmp_path_factory):
    """A broker of an older version: the version, and its address."""
    with running(request.param, jdk, tmp_path_factory) as servers:
        yield request.param, servers


@pytest.fixture
def kops(run_kops, older):
    return lambda *arguments: run_kops(*arguments, "-B", older[1])


def test_the_cluster_and_its_topics(older, kops, unique):
    version, servers = older
    described = kops("cluster", "describe", "-o", "json").ok().json
    line = ".".join(version.split(".")[:2])
    assert described["kafka_version_at_least"] == described["brokers"][0]["kafka_version_at_least"] == line
    assert described["kafka_version"] == (None if version == OLDEST else line), "with ZooKeeper a broker says less"
    assert [(broker["id"], broker["in_service"]) for broker in described["brokers"]] == [(1, True)]
    assert (described["quorum"] is None) == (version == OLDEST), "with ZooKeeper there is none, and that is not a gap"
    assert kops("cluster", "health").ok().err == ""
    assert kops("cluster", "brokers", "-o", "json").ok().json[0]["in_service"]
    kops("diagnose").ok()
    name = unique("t")
    kops("topics", "create", name, "--partitions", "2", "--config", "retention.ms=3600000", "--yes").ok()
    deleted = kops("topics", "delete", name, "--confirm", name).ok()
    assert "no ids" not in deleted.err, "from Kafka 2.8 on topics have ids"
    kops("undo", "last", "--yes").ok()
    assert Cluster(servers).topics(name) == {name: 2}


def test_groups_and_their_offsets(older, kops, unique):
    _, servers = older
    cluster, name, group, other = Cluster(servers), unique("t"), unique("g"), unique("h")
    cluster.create(name, 2)
    Kafka(Connection((servers,))).produce(
        name, [NewRecord(b"k", b"v%d" % at, 1_760_000_000_000 + at, partition=at % 2) for at in range(10)]
    )
    assert len(kops("records", "consume", name, "--group", group, "--raw").ok().out.splitlines()) == 10
    kops("offsets", "seek", other, f"{name}:1=2", "--new-group", "--yes").ok()
    lags = {row["group"]: row["lag"] for row in kops("groups", "lag", group, other, "-o", "json").ok().json}
    assert lags == {group: 0, other: 3}
    kops("offsets", "reset", group, "--topic", name, "--to-earliest", "--yes").ok()
    assert cluster.committed(group) == {(name, 0): 0, (name, 1): 0}
    kops("undo", "last", "--yes").ok()
    assert cluster.committed(group) == {(name, 0): 5, (name, 1): 5}
    kops("offsets", "delete", other, "--topic", f"{name}:1", "--confirm", other).ok()
    assert cluster.committed(other) == {}
    kops("groups", "delete", group, "--confirm", group).ok()


def test_state_is_rebuilt_and_proven(older, kops, unique, tmp_path):
    _, servers = older
    application, topic, state_file = unique("app"), unique("in"), tmp_path / "state.yaml"
    state_file.write_text(STATE_FILE.format(application=application, topic=topic))
    cluster = Cluster(servers)
    cluster.create(topic, 2)
    cluster.create(f"{application}-totals-changelog", 2, {"cleanup.policy": "compact"})
    records = [
        NewRecord(key := b"k%d" % (at % 7), at.to_bytes(8, "big"), 1_760_000_000_000 + at, partition_for(key, 2)) for at in range(50)
    ]
    Kafka(Connection((servers,))).produce(topic, records)
    cluster.commit(application, {(topic, number): sum(record.partition == number for record in records) for number in range(2)})
    kops("state", "rebuild", state_file, "--yes").ok()
    assert kops("state", "verify", state_file, "-o", "json").ok().json[0]["keys"] == 7


@pytest.mark.long
def test_brokers_that_give_topics_no_ids(run_kops, jdk, tmp_path_factory, unique):
    """A broker of 2.8 with the protocol of 2.7, as in the middle of an upgrade."""
    with running(OLDEST, jdk, tmp_path_factory, {"inter.broker.protocol.version": "2.7"}) as servers:
        name = unique("t")
        run_kops("topics", "create", name, "--yes", "-B", servers).ok()
        assert "these brokers give topics no ids" in run_kops("topics", "delete", name, "--dry-run", "-B", servers).ok().err
        run_kops("topics", "delete", name, "--confirm", name, "-B", servers).ok()
        assert name not in Cluster(servers).topics(name)

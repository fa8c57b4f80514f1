"""Lag while one of three brokers is down: what it leads is told as not known, and everything else is shown."""

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kops.core.models import Committed, TopicPartition
from kops.gateways.kafka import Kafka
from support.programs import Record
from support.streams_apps import Cluster, wait_for

pytestmark = pytest.mark.broker


def test_a_broker_that_is_down(own_broker, run_kops):
    own = own_broker(brokers=3)
    cluster = Cluster(own.bootstrap_servers)
    admin = AdminClient(own.client)
    for name, replicas in (("single", 1), ("safe", 3)):
        new = NewTopic(name, num_partitions=3, replication_factor=replicas)
        admin.create_topics([new], operation_timeout=30)[name].result(30)
        wait_for(name, lambda name=name: name in cluster.topics(name))
        cluster.produce(name, [Record(None, b"x", 1_000_000, partition=partition) for partition in range(3)])
    cluster.commit("billing", {(name, partition): 0 for name in ("single", "safe") for partition in range(3)})

    def lag():
        return run_kops("groups", "lag", "billing", "-B", own.bootstrap_servers, "--timeout", "6", "-o", "json")

    assert [row["lag"] for row in lag().ok().json] == [1] * 6
    victim = admin.list_topics(timeout=30).topics["single"].partitions[0].leader
    own.kill(victim)
    wait_for("new leaders", lambda: all(p.leader != victim for p in admin.list_topics(timeout=30).topics["safe"].partitions.values()))
    degraded = lag()
    rows = {(row["topic"], row["partition"]): row for row in degraded.json}
    assert degraded.code == 6, degraded.err
    assert [rows["safe", partition]["lag"] for partition in range(3)] == [1, 1, 1]
    assert [rows["single", partition]["lag"] for partition in (1, 2)] == [1, 1]
    lost = rows["single", 0]
    assert (lost["committed"], lost["lag"], lost["log_end_offset"]) == (0, None, None)
    assert "could not" in lost["note"]
    assert "warning: topic single: could not" in degraded.err
    own.start(victim)
    wait_for("its partition", lambda: lag().code == 0)
    assert Kafka(own.connection).groups.committed(["billing"])["billing"][TopicPartition("single", 0)] == Committed(0)

"""Transactions that no coordinator will ever end, made on a real broker: kops finds those that Apache's `kafka-transactions` finds."""

import re
import shlex
import time

import pyarrow
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from kops.config.librdkafka import librdkafka_settings
from kops.core.models import TopicPartition
from kops.formats.batches.encode import columns_of, encode
from kops.formats.batches.header import Producer as Identity
from kops.gateways.kafka import Kafka
from kops.gateways.wire.connections import connected, refresh
from support.apache_tools import ApacheTools
from support.patience import HANG_SECONDS
from support.streams_apps import wait_for

pytestmark = pytest.mark.broker

HOUR = 3_600_000
NOBODYS = 987_654_321
APACHE = "org.apache.kafka.tools.TransactionsCommand"


@pytest.fixture
def unverified(kafka, cluster):
    """Have the brokers take records of a transaction that its coordinator does not know about, as before KIP-890."""

    def alter(operation):
        entry = ConfigEntry("transaction.partition.verification.enable", "false", incremental_operation=operation)
        brokers = [str(one.id) for one in kafka.cluster().brokers]
        wanted = [ConfigResource(ConfigResource.Type.BROKER, name, incremental_configs=[entry]) for name in brokers]
        for future in cluster.admin.incremental_alter_configs(wanted).values():
            future.result(HANG_SECONDS)

    alter(AlterConfigOpType.SET)
    yield
    alter(AlterConfigOpType.DELETE)


@pytest.fixture
def kafka(broker):
    found = Kafka(broker.connection)
    yield found
    found.close()


@pytest.fixture
def write(broker, unverified):
    """Write a record, an hour old, of a transaction into a partition; only the partition hears of it."""
    from kafka.protocol.producer import ProduceRequest

    client = connected(librdkafka_settings(broker.connection))
    record = columns_of(pyarrow.array([b"k"]), pyarrow.array([b"v"]), pyarrow.array([int(time.time() * 1000) - HOUR]))

    def write(transactional_id, identity, place):
        def taken():
            refresh(client, place.topic)
            topic = ProduceRequest.TopicProduceData
            batch = topic.PartitionProduceData(index=place.partition, records=encode(record, identity))
            request = ProduceRequest(
                transactional_id=transactional_id,
                acks=-1,
                timeout_ms=30_000,
                topic_data=[topic(name=place.topic, partition_data=[batch])],
                min_version=3,
                max_version=9,
            )
            answer = client.send_and_receive(client.cluster.leader_for_partition(place), request)
            return answer.responses[0].partition_responses[0].error_code == 0

        wait_for(f"{place} to take a record", taken)

    yield write
    client.close()


def test_hanging_transactions_are_reported(run_kops, broker, kafka, cluster, group, topic, unique, write):
    name, transactional_id = topic("t", partitions=3), unique("tx")
    left, ended, nobodys = (TopicPartition(name, number) for number in range(3))
    cluster.commit(group, {(name, number): 0 for number in range(3)})
    producer = Producer({**broker.client, "transactional.id": transactional_id, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, b"v", partition=ended.partition)
    assert producer.flush(HANG_SECONDS) == 0
    (real,) = kafka.transactions.open_in([ended])[ended]
    write(transactional_id, Identity(real.producer_id, real.producer_epoch, 0, transactional=True), left)
    write("nobody's", Identity(NOBODYS, 0, 0, transactional=True), nobodys)
    producer.commit_transaction(30)

    servers = ("-B", broker.bootstrap_servers)
    wait_for("the end of the transaction", lambda: kafka.transactions.open_in([ended])[ended] == ())
    rows = run_kops("groups", "lag", group, "-o", "json", *servers).ok().json
    transactions = [row["transaction"] and (row["transaction"]["transactional_id"], row["transaction"]["hanging"]) for row in rows]
    assert transactions == [(transactional_id, True), None, (None, True)]
    assert rows[0]["note"] == f"hanging transaction of {transactional_id} at 0 for 1h"
    found = run_kops("diagnose", name, "--sample", "0s", "-o", "json", *servers).json["findings"]
    hanging = {one["subject"]: one for one in found if one["check"] == "hanging_transaction"}
    assert {subject: one["severity"] for subject, one in hanging.items()} == {str(left): "critical", str(nobodys): "critical"}

    with ApacheTools(broker.bootstrap_servers) as apache:
        (broker_id,) = {part.leader for part in kafka.topics.describe([name])[name].partitions}
        listed = apache.run("find-hanging", "--broker-id", str(broker_id), "--topic", name, APACHE)
        reported = re.findall(rf"^{name}\s+(\d+)\s+(\d+)\s+\d+\s+-?\d+\s+(\d+)", listed, re.MULTILINE)
        assert {tuple(map(int, found)) for found in reported} == {(0, real.producer_id, 0), (2, NOBODYS, 0)}
        for one in hanging.values():
            advice = shlex.split(one["commands"][0])
            assert advice[:3] == ["kafka-transactions.sh", "--bootstrap-server", broker.bootstrap_servers]
            assert "FAILED" not in apache.run(*advice[3:], APACHE)
    assert kafka.transactions.open_in([left, nobodys]) == {left: (), nobodys: ()}
    assert "hanging_transaction" not in run_kops("diagnose", name, "--sample", "0s", *servers).out

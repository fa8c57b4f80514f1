"""Transactions that no coordinator will ever end, made on a real broker: kops finds those that Apache's `kafka-transactions` finds."""

import re
import shlex
import time

import pyarrow
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from kops.config.librdkafka import librdkafka_settings
from kops.core.models import TopicPartition
from kops.formats.batches.encode import columns_of, encode
from kops.formats.batches.header import Producer as Identity
from kops.gateways.kafka import Kafka
from kops.gateways.wire.connections import connected, refresh
from support.json_keys import as_pinned
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


def test_hanging_transactions_are_reported(run_kops, broker, apache, kafka, cluster, group, topic, unique, write):
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

    (broker_id,) = {part.leader for part in kafka.topics.describe([name])[name].partitions}
    listed = apache.run("find-hanging", "--broker-id", str(broker_id), "--topic", name, APACHE)
    reported = re.findall(rf"^{name}\s+(\d+)\s+(\d+)\s+\d+\s+-?\d+\s+(\d+)", listed, re.MULTILINE)
    assert {tuple(map(int, found)) for found in reported} == {(0, real.producer_id, 0), (2, NOBODYS, 0)}
    rows = run_kops("transactions", "list", "--hanging", "--topic", name, "-o", "json", *servers).ok().json
    assert {(row["partition"], row["producer_id"], row["start_offset"]) for row in rows} == {
        (0, real.producer_id, 0),
        (2, NOBODYS, 0),
    }
    assert all(row["hanging"] and row["age_ms"] >= HOUR for row in rows)
    for one in hanging.values():
        advice = shlex.split(one["commands"][0])
        assert advice[:3] == ["kops", "transactions", "abort"]
        done = run_kops(*advice[1:], "--confirm", name, "-o", "json").ok().json
        assert [item["value"] for item in done["items"]] == [{"last_stable_offset": 2, "held_by": None}]
        assert run_kops(*advice[1:], "--confirm", name).code == 1  # it is no longer there
    assert not re.findall(rf"^{name}\s", apache.run("find-hanging", "--broker-id", str(broker_id), "--topic", name, APACHE), re.MULTILINE)
    assert kafka.transactions.open_in([left, nobodys]) == {left: (), nobodys: ()}
    assert "hanging_transaction" not in run_kops("diagnose", name, "--sample", "0s", *servers).out


def test_live_transactions_are_fenced_and_never_cut_off(run_kops, broker, kafka, topic, unique, tmp_path):
    name, transactional_id = topic("t", partitions=1), unique("tx")
    place, servers = TopicPartition(name, 0), ("-B", broker.bootstrap_servers)
    producer = Producer({**broker.client, "transactional.id": transactional_id, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, b"v", partition=0)
    assert producer.flush(HANG_SECONDS) == 0
    refused = run_kops("transactions", "abort", f"{name}:0", "--confirm", name, *servers)
    assert (refused.code, "does not hang" in refused.err, transactional_id in refused.err) == (5, True, True)
    (row,) = as_pinned("kops transactions describe", run_kops("transactions", "describe", transactional_id, "-o", "json", *servers).ok())
    assert (row["state"], row["partitions"]) == ("Ongoing", [str(place)])
    (remembered,) = as_pinned("kops transactions producers", run_kops("transactions", "producers", name, "-o", "json", *servers).ok())
    as_pinned("kops transactions list", run_kops("transactions", "list", "-o", "json", *servers).ok())
    assert (remembered["producer_id"], remembered["transaction_start_offset"]) == (row["producer_id"], 0)
    ends = ("transactions", "abort", "--transactional-id", transactional_id)
    run_kops(*ends, "--plan-out", tmp_path / "plan.json", *servers).ok()
    done = run_kops(*ends, "--confirm", transactional_id, "-o", "json", *servers).ok().json
    assert done["items"][0]["value"] == {"state": "CompleteAbort"}
    assert run_kops("apply", tmp_path / "plan.json", "--confirm", transactional_id, *servers).code == 5  # a second operator comes late
    assert kafka.transactions.open_in([place]) == {place: ()}
    with pytest.raises(KafkaException, match="fenced"):
        producer.commit_transaction(30)


@pytest.mark.parametrize(
    "words",
    [
        ("abort",),
        ("abort", "t", "--transactional-id", "x"),
        ("abort", "t", "--start-offset", "1"),
        ("list", "--state", "asleep"),
        ("list", "--topic", "t"),
        ("list", "x", "--open"),
    ],
)
def test_bad_choices_are_usage_errors(run_kops, broker, words):
    assert run_kops("transactions", *words, "-B", broker.bootstrap_servers).code == 2

"""The rebuild on a Spark standalone cluster: a master and two workers, from PySpark's own jars."""

import json
import os
import re
import struct
import subprocess
import time
from pathlib import Path

import pyspark
import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

pytestmark = [pytest.mark.spark, pytest.mark.broker]

HOME = Path(pyspark.__file__).parent
PARTITIONS, KEYS, RECORDS = 3, 40, 900
SECONDS = 120


def wait_for(file: Path, pattern: str) -> re.Match[str]:
    """Wait until the log of a process says something."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        found = re.search(pattern, file.read_text(errors="replace")) if file.exists() else None
        if found:
            return found
        time.sleep(0.1)
    pytest.fail(f"{file.name} does not say {pattern}: {file.read_text(errors='replace')[-2000:]}")


@pytest.fixture
def spark_cluster(jdk, tmp_path):
    """The address of the master of two workers, all on free ports."""
    environment = {**os.environ, "SPARK_HOME": str(HOME), "SPARK_SCALA_VERSION": "2.13"}
    processes = []

    def start(name: str, kind: str, *arguments: str) -> Path:
        log = tmp_path / f"{name}.log"
        command = [str(jdk.java), "-cp", f"{HOME}/jars/*", "-Xmx256m", f"org.apache.spark.deploy.{kind}", *arguments]
        with log.open("wb") as output:
            processes.append(subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=tmp_path))
        return log

    host = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    master = wait_for(start("master", "master.Master", *host), r"Starting Spark master at (spark://\S+)")[1]
    for name in ("worker-1", "worker-2"):
        log = start(name, "worker.Worker", "--cores", "1", "--memory", "700m", "--work-dir", str(tmp_path / name), *host, master)
        wait_for(log, "Successfully registered with master")
    yield master
    for process in processes:
        process.kill()
        process.wait()


def commit(admin, group, commits):
    """Commit offsets; a broker that has just started has no coordinator yet."""
    deadline = time.monotonic() + SECONDS
    while True:
        answer = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, commits)])[group].result(30)
        errors = [partition.error for partition in answer.topic_partitions if partition.error]
        if not errors:
            return
        assert time.monotonic() < deadline, errors
        time.sleep(0.2)


@pytest.fixture
def application(broker, unique):
    """An application that summed longs, and lost its changelog: its name and the expected sums."""
    name = unique()
    topics = [f"{name}-in", f"{name}-totals-changelog"]
    admin = AdminClient(broker.client)
    for future in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics]).values():
        future.result(30)
    producer, sums = Producer(broker.client), {}
    for at in range(RECORDS):
        key, partition = b"k%d" % (at % KEYS), at % PARTITIONS
        producer.produce(topics[0], struct.pack(">q", at), key, partition, timestamp=1_700_000_000_000 + at)
        total, _ = sums.get((partition, key), (0, 0))
        sums[partition, key] = (total + at, 1_700_000_000_000 + at)
    producer.flush(30)
    commits = [TopicPartition(topics[0], number, RECORDS // PARTITIONS) for number in range(PARTITIONS)]
    commit(admin, name, commits)
    yield name, sums
    for future in admin.delete_topics(topics).values():
        future.result(30)


def read(broker, topic):
    consumer = Consumer({**broker.client, "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    found, left = {}, sum(consumer.get_watermark_offsets(TopicPartition(topic, number))[1] for number in range(PARTITIONS))
    for message in consumer.consume(left, 30):
        found[message.partition(), message.key()] = (struct.unpack(">q", message.value())[0], message.timestamp()[1])
    consumer.close()
    return found


@pytest.fixture
def context(spark_cluster, broker, home, tmp_path):
    """A context whose Spark is the cluster."""
    config = home / "config" / "kops" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(
        f'[contexts.here]\nbootstrap_servers = ["{broker.bootstrap_servers}"]\n'
        f'[contexts.here.spark]\nmaster = "{spark_cluster}"\nstaging_directory = "{tmp_path / "staging"}"\n'
        '[contexts.here.spark.conf]\n"spark.driver.host" = "127.0.0.1"\n"spark.executor.memory" = "600m"\n'
    )
    return "here"


def test_two_workers_compute_and_write(context, application, broker, kops_process, tmp_path):
    name, sums = application
    store = {"from": {"topic": f"{name}-in", "key": "string", "value": "long"}, "aggregate": {"sum": "value", "as": "long"}}
    file = tmp_path / "state.yaml"
    file.write_text(json.dumps({"application": name, "stores": {"totals": store}}), encoding="utf-8")

    def kops(*arguments):
        process = kops_process("state", *arguments, "-c", context, "-o", "json")
        out, err = process.communicate(timeout=4 * SECONDS)
        return process.returncode, out, err

    code, out, err = kops("rebuild", str(file), "--yes")
    assert code == 0, err
    assert json.loads(out)["status"] == "done"
    assert read(broker, f"{name}-totals-changelog") == sums
    assert kops("verify", str(file))[0] == 0

"""A Kafka that still needs ZooKeeper: kops' sandbox starts none, and kops works with brokers from 2.8 on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from kops.gateways.machine.jars import JarSet, class_path, jars_of, kafka_set
from kops.gateways.machine.jdk import Jdk
from kops.sandbox import parts, ports
from kops.sandbox.model import HOST

OLDEST = "2.8.2"


def zookeeper_set(version: str = OLDEST) -> JarSet:
    """Return the jars of such a broker, which has ZooKeeper among what it needs."""
    like = kafka_set("3.9.1")
    wanted = [artifact for artifact in like.artifacts if artifact.name.startswith(("kafka_", "log4j"))]
    named = tuple(type(each)(each.organisation, each.name, version if each.name.startswith("kafka_") else each.version) for each in wanted)
    return JarSet("kafka", version, named, exclude=like.exclude)


@contextlib.contextmanager
def zookeeper_kafka(folder: Path, cache: Path, jdk: Jdk, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run one ZooKeeper and one broker; yields its bootstrap servers.

    :param settings: of the broker, beside those that make it one for tests
    """
    jars = class_path(jars_of(zookeeper_set(), cache))
    keeper_port, port = ports.pick(2)
    keeper = _part(folder, "zookeeper", keeper_port)
    broker = _part(folder, "broker", port)
    (keeper.folder / "zoo.cfg").write_text(
        f"dataDir={keeper.folder}/data\nclientPort={keeper_port}\nclientPortAddress={HOST}\nadmin.enableServer=false\n"
    )
    lines = _SETTINGS | {
        "zookeeper.connect": f"{HOST}:{keeper_port}",
        "listeners": f"PLAINTEXT://{HOST}:{port}",
        "log.dirs": str(broker.folder / "data"),
        **(settings or {}),
    }
    (broker.folder / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    java = [str(jdk.java), "-Xmx512m", "-Djava.awt.headless=true", "-cp", jars]
    try:
        parts.start(keeper, [*java, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(keeper.folder / "zoo.cfg")])
        parts.wait_until("the test", [keeper], lambda part: ports.answers(part.port))
        parts.start(broker, [*java, "kafka.Kafka", str(broker.folder / "server.properties")])
        parts.wait_until("the test", [broker], lambda part: _serves(part.port))
        yield f"{HOST}:{port}"
    finally:
        for part in (broker, keeper):
            parts.kill_at_once(part)


def _part(folder: Path, name: str, port: int) -> parts.SandboxProcess:
    (folder / name).mkdir(parents=True)
    return parts.SandboxProcess(name, 1, name, folder / name, port, folder / name / "console.log")


def _serves(port: int) -> bool:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    if not ports.answers(port):
        return False
    try:
        return bool(AdminClient({"bootstrap.servers": f"{HOST}:{port}", "log_level": 0}).list_topics(timeout=5).brokers)
    except KafkaException:
        return False


_SETTINGS = {
    "broker.id": "1",
    "auto.create.topics.enable": "false",
    "log.retention.ms": "-1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
}

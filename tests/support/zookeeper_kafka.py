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
def zookeeper_kafka(folder: Path, cache: Path, jdk: Jdk, settings: Mapping[str, str] | None = None, *, brokers: int = 1) -> Iterator[str]:
    """Run one ZooKeeper and brokers, each with two log directories; yields their bootstrap servers.

    :param settings: of the brokers, beside those that make them some for tests
    """
    jars = class_path(jars_of(zookeeper_set(), cache))
    keeper_port, *picked = ports.pick(1 + brokers)
    keeper = _part(folder, "zookeeper", keeper_port)
    every = [_part(folder, f"broker-{number}", port) for number, port in enumerate(picked, 1)]
    (keeper.folder / "zoo.cfg").write_text(
        f"dataDir={keeper.folder}/data\nclientPort={keeper_port}\nclientPortAddress={HOST}\nadmin.enableServer=false\n"
    )
    java = [str(jdk.java), "-Xmx512m", "-Djava.awt.headless=true", "-cp", jars]
    try:
        parts.start(keeper, [*java, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(keeper.folder / "zoo.cfg")])
        parts.wait_until("the test", [keeper], lambda part: ports.answers(part.port))
        for number, broker in enumerate(every, 1):
            lines = _SETTINGS | {
                "broker.id": str(number),
                "zookeeper.connect": f"{HOST}:{keeper_port}",
                "listeners": f"PLAINTEXT://{HOST}:{broker.port}",
                "log.dirs": f"{broker.folder / 'data'},{broker.folder / 'data-2'}",
                **(settings or {}),
            }
            (broker.folder / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
            parts.start(broker, [*java, "kafka.Kafka", str(broker.folder / "server.properties")])
        parts.wait_until("the test", every, lambda part: _serves(part.port, brokers))
        yield ",".join(f"{HOST}:{broker.port}" for broker in every)
    finally:
        for part in (*every, keeper):
            parts.kill_at_once(part)


def _part(folder: Path, name: str, port: int) -> parts.SandboxProcess:
    (folder / name).mkdir(parents=True)
    return parts.SandboxProcess(name, 1, name, folder / name, port, folder / name / "console.log")


def _serves(port: int, brokers: int) -> bool:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    if not ports.answers(port):
        return False
    try:
        return len(AdminClient({"bootstrap.servers": f"{HOST}:{port}", "log_level": 0}).list_topics(timeout=5).brokers) == brokers
    except KafkaException:
        return False


_SETTINGS = {
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

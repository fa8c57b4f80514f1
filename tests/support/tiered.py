"""A Kafka with tiered storage: segments are copied to a folder by ``LocalTieredStorage``, which Apache publishes with its tests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from kops.core.progress import SILENT
from kops.gateways.machine.jars import locked
from kops.gateways.machine.jdk import Jdk
from kops.gateways.machine.maven import Artifact, Repository
from kops.sandbox import brokers, cluster, parts
from kops.sandbox.files import property_lines
from support.services import OwnBroker

DIGESTS = {
    "4.1.1": "f03fcd4dcc3b6a825fd7d18a3f51c84c63c3c39763853203b9ea251d5b595d9e",
    "4.3.1": "f3236936854c13815ffaa7f35a3f2d6861c125616cba5395b538b8680dded886",
}
"""The SHA-256 of each release's jar; a broker runs with that of its own release only."""
TOPIC = {"remote.storage.enable": "true", "segment.bytes": str(1024 * 1024), "local.retention.bytes": "1", "retention.ms": "-1"}
"""Settings of a topic whose segments are in remote storage only, all but the active one."""


def storage_jar(cache: Path, version: str) -> Path:
    """Return the jar with ``LocalTieredStorage``, from the cache or fetched.

    :param version: one of ``DIGESTS``
    :raises MissingRequirement: when it can be neither
    """
    wanted = Artifact("org.apache.kafka", "kafka-storage", version, classifier="test")
    jars, folder = cache / "jars", f"kafka-storage-test-{version}"
    with locked(jars, folder, SILENT), Repository(jars / folder, SILENT) as repository:
        return repository.fetch(wanted.place, DIGESTS[version])


@contextlib.contextmanager
def tiered_kafka(folder: Path, version: str, jars: list[Path], jdk: Jdk) -> Iterator[OwnBroker]:
    """Run a Kafka of one broker that copies segments at once, and deletes its own as soon as it may."""
    own = OwnBroker(cluster.make(folder, name="tiered", kafka_version=version), jars, jdk)
    (node,) = own.sandbox.nodes
    part = own.part()
    try:
        brokers.prepare(own.sandbox, node, jars=own.jars, jdk=jdk)
        settings = part.folder / "server.properties"
        with settings.open("a", encoding="latin-1") as file:
            file.write(property_lines(_SETTINGS | {"rsm.config.dir": str(folder / "remote")}))
        parts.start(part, [str(jdk.java), f"@{part.folder / 'java.args'}", "kafka.Kafka", str(settings)])
        brokers.wait_until_ready(own.sandbox, [node])
        yield own
    finally:
        parts.kill_at_once(part)
        cluster.down(own.sandbox, delete=True)


_SETTINGS = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
    "remote.log.storage.manager.impl.prefix": "rsm.config.",
    "remote.log.metadata.manager.listener.name": "CLIENT",
    "remote.log.metadata.manager.impl.prefix": "rlmm.config.",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "rlmm.config.remote.log.metadata.initialization.retry.interval.ms": "100",
    "remote.log.manager.task.interval.ms": "200",
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "200",
}

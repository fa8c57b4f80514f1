"""The topics of a real Kafka Streams application, by the classic protocol and by its own (KIP-1071), while it runs and after."""

import pytest

from kops.config.connection import Connection
from kops.gateways.kafka import Kafka
from support.programs import Program, Record
from support.streams_apps import Cluster, running, wait_for

pytestmark = [pytest.mark.broker, pytest.mark.streams]

COUNT = Program("count", "long")


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_the_topics_of_an_application(broker, run_kops, unique, tmp_path, protocol):
    cluster, program = Cluster(broker.bootstrap_servers), COUNT.named(unique())
    group = program.application
    groups = Kafka(Connection((broker.bootstrap_servers,))).groups

    def kops(*arguments):
        return run_kops("topics", *arguments, "-B", broker.bootstrap_servers)

    def refuses_to_grow():
        for name in (program.topic, changelog):
            refused = kops("add-partitions", name, "--partitions", "9", "--yes")
            assert refused.code == 5
            assert f"the Kafka Streams application {group}" in refused.err
        kops("add-partitions", program.output, "--partitions", "9", "--dry-run").ok()

    cluster.create_all({program.topic: 2, program.output: 1})
    try:
        cluster.produce(program.topic, [Record(b"k%d" % at, b'{"id":1}', 1_000_000 + at) for at in range(20)])
        with running(cluster.servers, program, tmp_path, "--config", f"group.protocol={protocol}") as application:
            application.wait_for("CAUGHT_UP")
            (changelog,) = (name for name in cluster.topics(group) if name.endswith("-changelog"))
            refuses_to_grow()
            body = kops("describe", changelog, "-o", "json").ok().json[0]
            assert body["streams_application"] == group
            assert body["compaction"]
            readers = kops("describe", program.topic, "-o", "json").ok().json[0]["readers"]
            assert [reader["group"] for reader in readers] == [group]
            application.stop()
        wait_for(f"{group} to empty", lambda: groups.describe([group])[group].state == "EMPTY")
        refuses_to_grow()
        shorter = ("--config", "cleanup.policy=delete", "--config", "retention.ms=1000")
        warnings = kops("alter", changelog, *shorter, "--dry-run", "-o", "json").ok().json["warnings"]
        assert any(f"{changelog} is an internal topic of the Kafka Streams application {group}" in text for text in warnings)
        refused = kops("truncate", changelog, "--to", "end", "--confirm", changelog)
        assert refused.code == 5
        assert "cleanup.policy=compact" in refused.err
    finally:
        groups.delete([group])
        cluster.delete_all(cluster.topics(program.application.removesuffix("-app")))

"""A real Kafka Streams application, by the classic protocol and by its own (KIP-1071): live it is refused, stopped it is warned of."""

import pytest

from kops.config.connection import Connection
from kops.core.offsets.arithmetic import is_streams_metadata
from kops.gateways.kafka import Kafka
from support.programs import Program, Record
from support.streams_apps import Cluster, running, wait_for

pytestmark = [pytest.mark.broker, pytest.mark.streams]

COUNT = Program("count", "long")


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_a_kafka_streams_application_continues_after_a_move_and_its_undo(broker, run_kops, unique, tmp_path, protocol):
    cluster, program = Cluster(broker.bootstrap_servers), COUNT.named(unique())
    group = program.application
    groups = Kafka(Connection((broker.bootstrap_servers,))).groups

    def kops(*arguments):
        return run_kops(*arguments, "-B", broker.bootstrap_servers)

    cluster.create_all({program.topic: 2, program.output: 1})
    try:
        cluster.produce(program.topic, [Record(b"k%d" % at, b'{"id":1}', 1_000_000 + at) for at in range(20)])
        with running(cluster.servers, program, tmp_path, "--config", f"group.protocol={protocol}") as application:
            application.wait_for("CAUGHT_UP")
            described = kops("groups", "describe", group, "-o", "json").ok().json[0]
            assert (described["kafka_streams"], described["state"]) == (True, "STABLE")
            assert described["type"] == protocol
            before = cluster.committed(group)
            for command in (["reset", group, "--all-topics", "--to-earliest"], ["seek", group, f"{program.topic}:0=0"]):
                refused = kops("offsets", *command, "--yes")
                assert refused.code == 5
                assert f"{group} is a running Kafka Streams application" in refused.err
                assert "kops state rebuild" in refused.err
            assert cluster.committed(group) == before
            rows = kops("groups", "lag", group, "-o", "json").ok().json
            assert {(row["topic"], row["partition"]): row["lag"] for row in rows if row["topic"] == program.topic} == {
                (program.topic, 0): 0,
                (program.topic, 1): 0,
            }
            application.stop()
        wait_for(f"{group} to empty", lambda: groups.describe([group])[group].state == "EMPTY")
        metadata = groups.committed([group])[group]
        assert all(is_streams_metadata(found.metadata) for found in metadata.values())
        shown = kops("offsets", "show", group, "-o", "json").ok().json
        assert all(row["stream_time"].startswith("1970-01-01T00:16:40.0") for row in shown)
        moved = kops("offsets", "reset", group, "--all-topics", "--to-earliest", "--yes").ok()
        assert "its stores do not move with its offsets" in moved.err
        assert set(cluster.committed(group).values()) == {0}
        kops("undo", "last", "--yes").ok()
        assert groups.committed([group])[group] == metadata
        with running(cluster.servers, program, tmp_path, "--config", f"group.protocol={protocol}") as application:
            application.wait_for("CAUGHT_UP")
            application.stop()
        assert len(cluster.read(program.output)) == 20  # it went on where it was: nothing is counted twice
    finally:
        groups.delete([group])
        cluster.delete_all(cluster.topics(program.application.removesuffix("-app")))

"""`kops streams delete` of a real application, by both protocols: what is left, Apache's tool and the broker say."""

import re

import pytest

from support.json_keys import keys_of
from support.programs import KeyBy, Program, Record
from support.streams_apps import Cluster, running, wait_for

pytestmark = [pytest.mark.broker, pytest.mark.streams]

STREAMS_GROUPS = "org.apache.kafka.tools.streams.StreamsGroupCommand"
COUNT = Program("count", "long", key_by=KeyBy(field="id", repartition="by-id"))


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_an_application_is_deleted_with_its_internal_topics(broker, run_kops, unique, tmp_path, apache, protocol):
    cluster, program = Cluster(broker.bootstrap_servers), COUNT.named(unique())
    name = program.application

    def kops(*arguments):
        return run_kops(*arguments, "-B", broker.bootstrap_servers)

    def groups():
        """Return the streams groups that Apache's tool lists."""
        return set(re.split(r"\s+", apache.run("--list", STREAMS_GROUPS)))

    cluster.create_all({program.topic: 2, program.output: 1})
    own = {program.topic, program.output}
    try:
        cluster.produce(program.topic, [Record(b"k%d" % at, b'{"id":%d}' % at, 1_000_000 + at) for at in range(20)])
        with running(cluster.servers, program, tmp_path, "--config", f"group.protocol={protocol}") as application:
            application.wait_for("CAUGHT_UP")
            internal = {topic for topic in cluster.topics() if topic.startswith(f"{name}-")} - own
            assert {topic.rpartition("-")[2] for topic in internal} == {"changelog", "repartition"}
            refused = kops("streams", "delete", name, "--confirm", name)
            assert (refused.code, f"{name} is a running Kafka Streams application" in refused.err) == (5, True)
            described = kops("streams", "describe", name, "-o", "json").ok().json
            assert described["protocol"] == protocol
            application.stop()
        wait_for("it to be empty", lambda: kops("groups", "describe", name, "-o", "json").json[0]["state"] == "EMPTY")
        assert (name in groups()) == (protocol == "streams")
        committed = cluster.committed(name)
        assert {topic for topic, _ in committed} > {program.topic}
        planned = kops("streams", "delete", name, "--dry-run").ok()
        assert internal <= set(cluster.topics())
        said = " ".join(planned.err.split())
        assert all(topic in planned.out for topic in internal)
        assert "(20 records) is lost" in said
        assert f"STATE_DIR/{name}" in said
        answer = kops("streams", "delete", name, "--confirm", name, "-o", "json").ok()
        assert keys_of(answer.out) == {"items[].status", "items[].target", "journal_id", "messages[]", "status", "version"}
        done = answer.json
        assert {item["target"] for item in done["items"]} == {f"group {name}", *(f"topic {topic}" for topic in internal)}
        assert {item["status"] for item in done["items"]} == {"done"}
        assert name not in groups()
        assert not internal & set(cluster.topics())
        assert own <= set(cluster.topics())
        assert cluster.committed(name) == {}
        undone = kops("undo", "last", "--yes", "--confirm", broker.bootstrap_servers).ok()
        assert "do not come back" in " ".join(undone.err.split())
        assert internal <= set(cluster.topics())
        assert all(end == 0 for topic in internal for _, end in cluster.ends(topic).values())
        assert cluster.committed(name) == {place: offset for place, offset in committed.items() if place[0] == program.topic}
        missing = kops("streams", "delete", "no-such-application", "--confirm", "x")
        assert missing.code == 1
    finally:
        kops("groups", "delete", name, "--confirm", name)
        cluster.delete_all(cluster.topics(name.removesuffix("-app")))

"""`kops streams` beside two running instances of a real application, by both protocols, and Apache's reset tool after they stopped."""

import re
import uuid
from dataclasses import dataclass

import pytest

from kops.core.models import TopicPartition
from kops.core.streams.models import Task
from kops.formats.groups.streams_assignment import decode_assignment, decode_subscription
from support.apache_tools import CONFIGS, ApacheTools
from support.json_keys import as_pinned
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams import compacted_view
from support.streams_apps import Cluster, wait_for
from support.streams_instances import Instances, forget_groups

pytestmark = [pytest.mark.streams, pytest.mark.broker]

RESETTER = "org.apache.kafka.tools.StreamsResetter"
START = 1_700_000_000_000
STORES = ("by-key", "by-value", "users")
KEYS = ("k0", "k1", "k7", "v0", "v3", "u5", "", "ключ", "a-little-bit-long-string")
ONE, TWO = "host-one.example:7001", "host-two.example:7002"
PROTOCOLS = ("classic", "streams")
DECODERS = (decode_subscription, decode_assignment)


@dataclass(frozen=True)
class Scene:
    """Both applications on one cluster: the same topology on topics of their own."""

    cluster: Cluster
    instances: Instances
    apache: ApacheTools
    prefixes: dict[str, str]

    def application(self, protocol: str) -> str:
        return f"{self.prefixes[protocol]}-app"

    def internal(self, protocol: str) -> set[str]:
        name = self.application(protocol)
        return {f"{name}-by-key-changelog", f"{name}-by-value-changelog", f"{name}-users-changelog", f"{name}-values-repartition"}

    def start(self, protocol: str, name: str, server: str) -> None:
        self.instances.start(
            f"{protocol}-{name}",
            self.prefixes[protocol],
            self.application(protocol),
            application_server=server,
            num_standby_replicas=1,
            group_protocol=protocol,
            statestore_cache_max_bytes=0,
        )


@pytest.fixture(scope="module")
def scene(cluster, apache, tmp_path_factory):
    run = uuid.uuid4().hex[:8]
    prefixes = {protocol: f"alive-{protocol}-{run}" for protocol in PROTOCOLS}
    servers = cluster.servers
    with Instances(servers, tmp_path_factory.mktemp("instances")) as instances:
        made = Scene(cluster, instances, apache, prefixes)
        for protocol, prefix in prefixes.items():
            cluster.create_all({f"{prefix}-in": 4, f"{prefix}-users": 3, f"{prefix}-out": 2})
            lines = [Record(b"k%d" % (at % 10), b"v%d" % (at % 5), START + at) for at in range(40)]
            users = [Record(b"u%d" % at, b"x", START + at) for at in range(20)]
            cluster.produce_all({f"{prefix}-in": lines, f"{prefix}-users": users})
            if protocol == "streams":
                name = made.application(protocol)
                setting = ("--add-config", "streams.num.standby.replicas=1")
                apache.run("--alter", "--entity-type", "groups", "--entity-name", name, *setting, CONFIGS)
            made.start(protocol, "one", ONE)
            made.start(protocol, "two", TWO)
        instances.wait_until_running()
        for protocol in PROTOCOLS:
            wait_for(f"both instances of {protocol} to have all", lambda protocol=protocol: settled(made, protocol))
        yield made
    for prefix in prefixes.values():
        cluster.delete_all(cluster.topics(prefix))
        forget_groups(cluster, f"{prefix}-app", f"{prefix}-reader")


def settled(scene, protocol):
    """Return whether every partition has its instance and its standby, as both instances themselves know."""
    seen = [scene.instances.ask("hosts", name=f"{protocol}-{name}") for name in ("one", "two")]
    counts = [sum(len(host[kind]) for host in hosts.values()) for hosts in seen for kind in ("partitions", "standby_partitions")]
    return seen[0] == seen[1] and set(seen[0]) == {ONE, TWO} and counts == [11, 11, 11, 11]


@pytest.fixture
def kops(run_kops, cluster):
    return lambda *arguments: run_kops(*arguments, "-B", cluster.servers)


@pytest.fixture
def topology_file(scene, tmp_path):
    def write(protocol):
        path = tmp_path / f"{protocol}.txt"
        path.write_text(scene.instances.ask("text", prefix=scene.prefixes[protocol])["text"])
        return path

    return write


ANSWERED = {"store", "key", "partition", "changelog", "task", "active", "standby", "note"}
"""The keys of the JSON with ``--key``: a contract."""


def test_running_applications_of_both_protocols_are_listed(scene, kops):
    listed = as_pinned("kops streams list", kops("streams", "list", "-o", "json").ok())
    rows = {row["application"]: row for row in listed}
    for protocol in PROTOCOLS:
        row = rows[scene.application(protocol)]
        assert (row["protocol"], row["state"], row["instances"], row["members"]) == (protocol, "STABLE", 2, 2)
        assert set(row["stores"]) == set(STORES)
        assert set(row["internal_topics"]) == scene.internal(protocol)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_each_instance_holds_is_what_the_instances_say(scene, kops, protocol):
    name = scene.application(protocol)
    before = kops("groups", "describe", name, "-o", "json").ok().json
    shown = kops("streams", "describe", name, "-o", "json").ok().json
    known = scene.instances.ask("hosts", name=f"{protocol}-one")
    for instance in shown["instances"]:
        said = known[instance["application_server"]]
        partitions = {f"{one['topic']}-{one['partition']}" for member in instance["members"] for one in member["partitions"]}
        assert partitions == set(said["partitions"])
        sources = {part["subtopology"]: (*part["source_topics"], *part["repartition_topics"]) for part in shown["subtopologies"]}
        standby = [task.split("_") for task in instance["standby"]]
        assert {f"{topic}-{number}" for part, number in standby for topic in sources[part]} == set(said["standby_partitions"])
    assert {instance["application_server"] for instance in shown["instances"]} == {ONE, TWO}
    assert all(not part["unassigned_tasks"] for part in shown["subtopologies"])
    assert kops("groups", "describe", name, "-o", "json").ok().json == before, "looking must not rebalance"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_key_is_where_the_application_says(scene, kops, topology_file, protocol):
    name = scene.application(protocol)
    file = topology_file(protocol)
    for key in KEYS:
        arguments = ("streams", "describe", name, "--key", key, "-o", "json")
        reported = {row["store"]: row for row in kops(*arguments, "--topology", file).ok().json}
        assert all(set(row) == ANSWERED for row in reported.values())
        for store in STORES:
            said = scene.instances.ask("key", name=f"{protocol}-two", store=store, key=key)
            found = reported[store]
            assert (found["partition"], found["active"]["application_server"]) == (said["partition"], said["active"]), (store, key)
            assert sorted(one["application_server"] for one in found["standby"]) == said["standbys"]
        if protocol == "streams":
            assert {row["store"]: row for row in kops(*arguments).ok().json} == reported
    alone = kops("streams", "describe", name, "--key", "u5", "--store", "users", "-o", "json").ok().json
    assert [row["active"] for row in alone] == [told_of(kops, name, "u5", file)], "one part has three partitions, so it is the only one"


def told_of(kops, name, key, file):
    (row,) = kops("streams", "describe", name, "--key", key, "--store", "users", "--topology", file, "-o", "json").ok().json
    return row["active"]


def test_description_adds_what_the_group_does_not_show(scene, kops, topology_file):
    name, prefix = scene.application("classic"), scene.prefixes["classic"]
    plain = kops("streams", "describe", name, "-o", "json").ok().json
    assert plain["output_topics"] is None
    assert {store["store"] for store in plain["stores"]} == set(STORES)
    full = as_pinned("kops streams describe", kops("streams", "describe", name, "--topology", topology_file("classic"), "-o", "json").ok())
    assert full["output_topics"] == [f"{prefix}-out"]
    assert {store["store"]: store["subtopology"] for store in full["stores"]} == {"by-key": "0", "by-value": "1", "users": "2"}
    other = kops("streams", "describe", name, "--topology", topology_file("streams"), "-o", "json").ok().json
    assert any("the description is not of what runs" in note for note in other["notes"])


def test_records_of_the_coordinator_show_the_same_group(scene, cluster):
    from kops.config.connection import Connection
    from kops.gateways.kafka import Kafka
    from kops.operations.streams.find import read_application

    class Services:
        kafka = Kafka(Connection((cluster.servers,)))

        class progress:  # noqa: N801 - as sessions name it
            step = advance = staticmethod(lambda *_: None)

    name = scene.application("streams")
    read, asked = read_application(Services, name), Services.kafka.streams_groups.streams([name])[name]
    Services.kafka.close()

    def held(application):
        return {one.application_server: (one.process_id, one.active, one.standby) for one in application.instances}

    assert (held(read), read.parts) == (held(asked), asked.parts)


@pytest.mark.parametrize("version", range(1, 12))
def test_every_version_of_the_assignors_bytes_is_read(scene, version):
    subscription, assignment = (decode(data) for decode, data in zip(DECODERS, scene.instances.encoded(version), strict=True))
    assert (subscription.version, subscription.process_id) == (version, "00000000-0000-0001-0000-000000000002")
    assert subscription.application_server == ("one:7001" if version > 1 else None)
    assert assignment.active == (Task("0", 0), Task("0", 1))
    assert assignment.standby == {Task("1", 3): (TopicPartition("app-x-repartition", 3),)}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_running_application_is_not_reset(scene, kops, protocol):
    name = scene.application(protocol)
    committed = scene.cluster.committed(name)
    refused = kops("streams", "reset", name, "--confirm", name)
    assert (refused.code, name in refused.err) == (5, True)
    assert kops("streams", "reset", name, "--wait-empty", "1s", "--confirm", name).code == 5
    assert kops("journal", "list", "-o", "json").ok().json == []
    now = scene.cluster.committed(name)
    assert all(now.get(partition, -1) >= offset for partition, offset in committed.items()), "its own commits only go up; a reset goes to 0"
    assert scene.internal(protocol) <= set(scene.cluster.topics(name))


@pytest.fixture(scope="module")
def stopped(scene):
    """The scene with all instances stopped; these tests come last."""
    for protocol in PROTOCOLS:
        for name in ("one", "two"):
            scene.instances.stop(f"{protocol}-{name}")
    groups = scene.cluster.admin
    for protocol in PROTOCOLS:
        name = scene.application(protocol)

        def empty(name=name):
            return [one.state.name for one in groups.list_consumer_groups().result(HANG_SECONDS).valid if one.group_id == name] in (
                ["EMPTY"],
                [],
            )

        wait_for(f"{name} to empty", empty)
    return scene


STRATEGIES = {
    "earliest": ("--to-earliest",),
    "latest": ("--to-latest",),
    "offset": ("--to-offset", "5"),
    "past the end": ("--to-offset", "1000"),
    "shift": ("--shift-by", "-3"),
    "time": ("--to-datetime", "2023-11-14T22:13:20.020"),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_plan_is_what_apache_would_do(stopped, kops, strategy):
    name, prefix = stopped.application("classic"), stopped.prefixes["classic"]
    topics = f"{prefix}-in,{prefix}-users"
    printed = stopped.apache.run("--application-id", name, "--input-topics", topics, *STRATEGIES[strategy], "--dry-run", RESETTER)
    offsets = {
        f"{topic}:{number}": int(offset) for topic, number, offset in re.findall(r"Topic: (\S+) Partition: (\d+) Offset: (\d+)", printed)
    }
    assert len(offsets) == 7, printed
    committed = {f"{topic}:{partition}" for topic, partition in stopped.cluster.committed(name)}
    plan = kops("streams", "reset", name, *STRATEGIES[strategy], "--dry-run", "-o", "json").ok().json
    moved = {item["target"]: item["after"] for item in plan["items"] if item["action"] != "delete"}
    if strategy == "shift":  # of a partition without a commit Apache shifts what it makes of auto.offset.reset
        offsets |= dict.fromkeys(target for target in offsets if target not in committed)
    assert moved == offsets
    deleted = {item["target"] for item in plan["items"] if item["action"] == "delete"}
    assert deleted == stopped.internal("classic")
    assert {topic for topic in stopped.internal("classic") if topic in printed} == deleted, printed


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_reset_application_computes_everything_again_and_its_neighbour_is_left_alone(stopped, kops, topology_file, protocol):
    cluster, name, prefix = stopped.cluster, stopped.application(protocol), stopped.prefixes[protocol]
    neighbours = {f"{name}-v2-by-key-changelog": 1, f"{name}-v2-values-repartition": 1, f"{name}-changelog": 1}
    cluster.create_all(neighbours)
    cluster.commit(f"{prefix}-reader", {(f"{prefix}-out", 0): 1})
    before = {topic: compacted_view(cluster.read(topic)) for topic in stopped.internal(protocol) if topic.endswith("-changelog")}
    prior = {at: offset for at, offset in cluster.committed(name).items() if not at[0].startswith(name)}
    beginning = {(f"{prefix}-in", number): 0 for number in range(4)} | {(f"{prefix}-users", number): 0 for number in range(3)}
    if protocol == "classic":
        printed = stopped.apache.run("--application-id", name, "--input-topics", f"{prefix}-in", "--dry-run", RESETTER)
        assert all(topic in printed for topic in neighbours), "which Apache's tool would delete"
        refused = kops("streams", "reset", name, "--confirm", name)
        assert refused.code == 5
        assert f"{name}-v2" in refused.err
        assert "--topology" in refused.err
    done = kops("streams", "reset", name, "--topology", topology_file(protocol), "--confirm", name, "-o", "json").ok()
    assert f"results are sent again to {prefix}-out, read by group {prefix}-reader" in done.err
    assert f"delete the local state of {name} on every instance" in done.err
    assert set(cluster.topics(name)) == set(neighbours)
    assert cluster.committed(name) == beginning
    undone = kops("undo", done.json["journal_id"], "--yes").ok()
    assert "are not restored" in undone.err
    assert cluster.committed(name) == prior
    kops("streams", "reset", name, "--topology", topology_file(protocol), "--yes").ok()
    assert cluster.committed(name) == beginning
    stopped.start(protocol, "again", ONE)
    ends = {at: high for topic in (f"{prefix}-in", f"{prefix}-users") for at, (_low, high) in enumerated(cluster, topic)}
    wait_for("the input to be processed again", lambda: {at: cluster.committed(name).get(at) for at in ends} == ends)
    # What it sent to itself is processed a little later.
    wait_for("its changelogs", lambda: {topic: compacted_view(cluster.read(topic)) for topic in before} == before)
    stopped.instances.stop(f"{protocol}-again")
    assert {topic: compacted_view(cluster.read(topic)) for topic in before} == before
    assert len(cluster.read(f"{prefix}-out")) == 80, "every result was sent a second time"


def enumerated(cluster, topic):
    return [((topic, partition), bounds) for partition, bounds in cluster.ends(topic).items()]

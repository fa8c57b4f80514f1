"""Programs of every line of versions captured by the real agent: no broker, since their KafkaStreams is never constructed."""

import json
import os
import re
import shutil
import socket
import zipfile
from functools import cache
from pathlib import Path

import pytest
import yaml

from kops.core.streams.capture import Processor, RocksDBSetter, Windows
from kops.core.streams.capture_file import read_capture
from kops.gateways.machine.jars import KAFKA_VERSION
from support.captured import (
    SOURCES,
    apache_examples,
    built_agent,
    fat_jar,
    java,
    launcher,
    manifest_jar,
    many_in_quarkus,
    metrics_agent,
    programs,
)
from support.json_keys import keys_of

pytestmark = pytest.mark.streams

NEWEST = KAFKA_VERSION
VERSIONS = [*(pytest.param(version, marks=pytest.mark.long) for version in ("2.8.2", "3.6.2")), NEWEST]
MORE_VERSIONS = [pytest.param(version, marks=pytest.mark.long) for version in ("3.3.2", "3.9.1", "4.1.1", "4.3.1")]
PINNED = yaml.safe_load((Path(__file__).parent / "json_keys.yaml").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True, scope="module")
def agent():
    return built_agent()


@pytest.fixture
def captured(run_kops, tmp_path):
    """Capture a command; return the capture."""

    def run(*command):
        out = tmp_path / "capture.json"
        run_kops("streams", "capture", "--out", out, "--", *command).ok()
        return read_capture(json.loads(out.read_text()), "capture.json")

    return run


def many(version):
    library, classes = programs(version)
    return java("-Dtoken=hunter2", "-cp", f"{library}{os.pathsep}{classes}", "ManyStores")


@pytest.fixture(scope="module")
def many_file(run_kops_alone, tmp_path_factory):
    """Capture ManyStores, once a version; return the text of the file."""

    @cache
    def run(version):
        out = tmp_path_factory.mktemp("many") / "capture.json"
        run_kops_alone("streams", "capture", "--out", out, "--", *many(version)).ok()
        return out.read_text()

    return run


@pytest.fixture
def captured_many(many_file):
    return lambda version: read_capture(json.loads(many_file(version)), "capture.json")


@pytest.mark.parametrize("version", [*VERSIONS, *MORE_VERSIONS])
def test_stores_of_every_kind(captured_many, many_file, version):
    found = captured_many(version)
    stores = {store.name: store for store in (*found.stores, *found.global_stores)}
    expected = {
        "counts": "timestamped-key-value",
        "windows": "timestamped-window",
        "sessions": "session",
        "final-store": "buffer",
        "lengths": "timestamped-key-value",
        "users-store": "timestamped-key-value",
        "of-users": "timestamped-key-value",
        "KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000031": "timestamped-key-value",
        "settings-store": "timestamped-key-value",
        "seen": "key-value",
        "recent": "window",
        "pairs-this-join-store": "timestamped-window" if version == NEWEST else "window",
    }
    assert {name: stores[name].kind for name in expected} == expected
    assert (found.application, found.streams_version, found.unknown) == ("many", version, ())
    body = json.loads(many_file(version))
    assert body["library"]["clients"] == version
    windows, recent = stores["windows"], stores["recent"]
    # 2.8 keeps what has a grace of its own for a day at least
    assert (windows.retention_ms, windows.window_size_ms) == (86_400_000 if version == "2.8.2" else 360_000, 300_000)
    assert (recent.retention_ms, recent.window_size_ms) == (7_200_000, 3_600_000)
    assert (recent.retain_duplicates, recent.changelog) == (True, None)
    assert (stores["seen"].capacity, stores["seen"].changelog) == (100, "many-seen-changelog")
    assert (stores["counts"].caching, stores["lengths"].caching, stores["lengths"].persistent) == (True, False, False)
    assert stores["pairs-this-join-store"].headers == (version == NEWEST)
    assert stores["lengths"].value.inner["valueDeserializer"].name == "org.apache.kafka.common.serialization.LongDeserializer"
    assert stores["counts"].key is None  # of default.key.serde
    written = {store["name"]: store for store in body["stores"]}
    assert (written["recent"]["segment_interval_ms"], written["recent"]["logging"]) == (3_600_000, False)
    assert written["lengths"]["log_config"]["segment.bytes"] == "1000000"
    serializer = written["lengths"]["value_serde"]["serializer"]
    assert serializer["inner"]["valueSerializer"]["class"] == "org.apache.kafka.common.serialization.LongSerializer"


@pytest.mark.parametrize("version", [*VERSIONS, *MORE_VERSIONS])
def test_nodes_topics_and_settings(captured_many, many_file, version):
    found = captured_many(version)
    clicks = next(node for node in found.nodes if getattr(node, "topics", ()) == ("clicks",))
    assert (clicks.reset, clicks.timestamp_extractor) == ({"clicks": "latest"}, "ManyStores$ByOffset")
    windows = {
        store: node.windows
        for node in found.nodes
        if isinstance(node, Processor) and node.windows
        for store in node.stores
        if store in ("windows", "sessions")
    }
    kstream = "org.apache.kafka.streams.kstream"
    assert windows["windows"] == (Windows(f"{kstream}.TimeWindows", size_ms=300_000, advance_ms=300_000, grace_ms=60_000),)
    assert windows["sessions"] == (Windows(f"{kstream}.SessionWindows", grace_ms=120_000),)
    assert found.node("final").suppresses
    written = json.loads(many_file(version))["nodes"]
    *_, join = (node["windows"][0] for node in written if node.get("windows") and "pairs-this-join-store" in node["stores"])
    assert (join["before_ms"], join["after_ms"]) == (10_000, 10_000)
    (suppress,) = (node["suppress"] for node in written if node["name"] == "final")
    assert (suppress["until_window_closes"], suppress["wait_ms"], suppress["when_full"]) == (True, 60_000, "SHUT_DOWN")
    assert [(node.name, node.processor, node.mentions) for node in found.program_processors] == [
        ("dedup", "ManyStores$Dedup", ("WALL_CLOCK_TIME",))
    ]
    assert [(sink.topic, sink.partitioner) for sink in found.custom_partitioners] == [("many-apart-repartition", "ManyStores$First")]
    apart = found.subtopology_of("lengths")
    assert [(topic.name, topic.partitions) for topic in apart.repartition_topics] == [("many-apart-repartition", 7)]
    changelogs = {topic.name: topic.settings for each in found.subtopologies for topic in each.changelogs}
    compacted = {"message.timestamp.type": "CreateTime", "cleanup.policy": "compact", "segment.ms": "600000"}
    assert changelogs["many-counts-changelog"] == compacted
    assert changelogs["many-lengths-changelog"]["segment.bytes"] == "1000000"
    assert changelogs["many-windows-changelog"]["cleanup.policy"] == "compact,delete"
    assert [each.is_global for each in found.subtopologies].count(True) == 1
    assert found.settings.main_consumer["isolation.level"] == "read_committed"
    assert found.rocksdb_setter == RocksDBSetter("ManyStores$Forgetting", ("FIFO",))


def test_secrets_are_taken_out_wherever_they_are(many_file):
    text = many_file(NEWEST)
    given = json.loads(text)["config"]["given"]
    assert (given["sasl.jaas.config"], given["ssl.truststore.password"]) == ("********", "********")
    assert given["registry.url"] == "http://me:********@registry:8081"
    assert json.loads(text)["command"][1:] == ["-Dtoken=********" if word == "-Dtoken=hunter2" else word for word in many(NEWEST)[1:]]
    assert "hunter2" not in text


def test_the_keys_of_the_file_are_pinned(many_file):
    """Other programs may read it, and kops reads those of its earlier versions."""
    opaque = ("config.given", "config.effective", "config.main_consumer", "config.producer", "log_config", "reset", "functions", "inner")
    opaque += tuple(f"surroundings.{name}" for name in ("locale", "variables", "properties"))
    found = {re.sub(rf"((?:^|\.)(?:{'|'.join(map(re.escape, opaque))}))\..*", r"\1", key) for key in keys_of(many_file(NEWEST))}
    assert sorted(found) == PINNED["capture file"]


@pytest.mark.parametrize("version", [NEWEST, *MORE_VERSIONS[1:]])
def test_versioned_tables_buffers_patterns_and_optimized_tables(captured, tmp_path, version):
    library, classes = programs(version)
    found = captured(*java("-cp", f"{library}{os.pathsep}{classes}", "Versions"))
    stores = {store.name: store for store in found.stores}
    history = stores["price-history"]
    assert (history.kind, history.history_retention_ms) == ("versioned", 21_600_000)
    written = {store["name"]: store for store in json.loads((tmp_path / "capture.json").read_text())["stores"]}
    assert written["price-history"]["segment_interval_ms"] == 3_600_000
    assert (history.changelog, history.retention_ms) == ("prices", None)
    assert (stores["priced-Buffer"].kind, stores["priced-Buffer"].grace_ms) == ("buffer", 180_000)
    assert (stores["people-store"].changelog, stores["people-store"].caching) == ("people", False)
    assert {topic.name: topic.is_source_topic for each in found.subtopologies for topic in each.changelogs} == {
        "prices": True,
        "people": True,
        "versions-priced-Buffer-changelog": False,
        "versions-near-changelog": False,
    }
    assert found.subtopology_of("near").source_topics is None
    assert found.unknown == (("subtopologies.2.source_topics", "its sources are patterns: only a cluster has the topics"),)


@pytest.mark.parametrize("version", ["2.8.2", *MORE_VERSIONS[:2]])
def test_transformers_are_the_programs_own(captured, version):
    """Up to 3.9: processors of the library hand their records to them."""
    library, classes = programs(version)
    found = captured(*java("-cp", f"{library}{os.pathsep}{classes}", "Transformers"))
    assert {(node.processor, node.mentions) for node in found.program_processors} == {
        ("Transformers$Named", ("STREAM_TIME",)),
        ("Transformers$Timed", ("currentTimeMillis",)),
    }


def test_a_program_that_a_launchers_class_loader_loads(captured, captured_many):
    """As the launcher of a fat jar does: the agent's classes are found although no parent of the loader has Kafka Streams."""
    library, classes = programs(NEWEST)
    found = captured(*java("-cp", launcher(), "ChildLoader", "ManyStores", f"{library}{os.pathsep}{classes}"))
    plain = captured_many(NEWEST)
    assert found.stores == plain.stores
    assert not [entry.path for entry in plain.class_path if "kops-agent" in entry.path]
    assert {entry.sha256 for entry in plain.class_path} < {entry.sha256 for entry in found.class_path}


@pytest.mark.long
def test_spring_boots_launcher(captured, tmp_path):
    """A jar of jars, whose class loader reads them by addresses of its own."""
    found = captured(*java("-jar", fat_jar(tmp_path / "app.jar")))
    assert (found.streams_version, len(found.stores), found.unknown) == (NEWEST, 14, ())
    entries = json.loads((tmp_path / "capture.json").read_text())["class_path"]["entries"]
    assert [(Path(entry["path"]).name, entry["kind"]) for entry in entries] == [("app.jar", "jar")]


def test_a_jar_whose_manifest_names_the_others(captured, captured_many, tmp_path):
    """The JVM's own class path has only the first: another version of a library must be noticed all the same."""
    found = captured(*java("-jar", manifest_jar(tmp_path / "app.jar")))
    plain = captured_many(NEWEST)
    assert (found.stores, found.unknown) == (plain.stores, ())
    jars = {Path(entry.path).name: entry.sha256 for entry in plain.class_path}
    others = {Path(entry.path).name: entry.sha256 for entry in found.class_path if entry.path != str(tmp_path / "app.jar")}
    assert f"kafka-streams-{NEWEST}.jar" in others
    assert others.items() <= jars.items()


@pytest.mark.long
def test_quarkus_launcher(captured, tmp_path):
    """Its class loader is not a URLClassLoader."""
    found = captured(*java("-jar", many_in_quarkus(tmp_path / "app")))
    assert (found.streams_version, len(found.stores), found.unknown) == (NEWEST, 14, ())
    assert {"quarkus-run.jar", "app.jar", f"kafka-streams-{NEWEST}.jar"} < {Path(entry.path).name for entry in found.class_path}


def test_a_class_loader_that_does_not_say_where_its_classes_are(captured):
    library, classes = programs(NEWEST)
    found = captured(*java("-cp", launcher(), "ChildLoader", "ManyStores", f"{library}{os.pathsep}{classes}", "hidden"))
    assert found.unknown == (
        ("library.loaded_from", "its class loader does not say"),
        ("class_path of ChildLoader$Hidden", "it does not say where its classes are: no digest covers them"),
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("program", "stores", "processors"),
    [
        ("pageview.PageViewTypedDemo", {"timestamped-window", "timestamped-key-value"}, []),
        ("wordcount.WordCountProcessorDemo", {"key-value"}, ["WordCountProcessorDemo$WordCountProcessor"]),
        ("wordcount.WordCountTransformerDemo", {"key-value"}, ["WordCountTransformerDemo$MyProcessorSupplier$1"]),
    ],
)
def test_apaches_examples(captured, program, stores, processors):
    """Programs in a package of the library's name, in another jar."""
    found = captured(*java("-cp", apache_examples(), f"org.apache.kafka.streams.examples.{program}"))
    assert {store.kind for store in found.stores} == stores
    assert [each.processor.rpartition(".")[2] for each in found.program_processors] == processors


def test_a_static_method_in_place_of_a_program(run_kops, tmp_path):
    library, classes = programs(NEWEST)
    (tmp_path / "app.properties").write_text("application.id=other\nbootstrap.servers=127.0.0.1:1\n")
    class_path = f"{library}{os.pathsep}{classes}"
    arguments = ("--out", tmp_path / "c.json", "--class-path", class_path, "--properties", tmp_path / "app.properties")
    done = run_kops("streams", "capture", *arguments, "--topology-class", "ManyStores::topology", "-o", "json").ok()
    assert (done.json["application"], done.json["streams_version"], len(done.json["stores"])) == ("other", NEWEST, 15)
    assert sorted(keys_of(done.out)) == PINNED["capture"]
    wrong = run_kops("streams", "capture", *arguments, "--topology-class", "ManyStores::nothing")
    assert (wrong.code, wrong.out) == (1, "")
    assert "ManyStores has no method nothing() or nothing(Properties)" in wrong.err
    absent = run_kops("streams", "capture", *arguments, "--topology-class", "com.acme.Absent::topology")
    assert "the class path lacks com.acme.Absent" in absent.err


def test_a_program_whose_class_path_lacks_a_class(run_kops, tmp_path):
    library, _ = programs(NEWEST)
    done = run_kops("streams", "capture", "--out", tmp_path / "c.json", "--", *java("-cp", library, "ManyStores"))
    assert done.code == 1
    assert "ended with exit code 1: the class path lacks ManyStores" in done.err
    assert not (tmp_path / "c.json").exists()


@pytest.fixture
def taken():
    """A port that another process has, as the application does that runs beside."""
    with socket.create_server(("", 0)) as server:
        yield server.getsockname()[1]


def test_a_port_that_is_taken_is_not_opened(captured, taken):
    """That of the JVM's management; two starts of a program run beside each other in a rebuild, too."""
    library, classes = programs(NEWEST)
    management = "-Dcom.sun.management.jmxremote"
    open_to_all = (f"{management}.authenticate=false", f"{management}.ssl=false")
    ports = (f"{management}.port={taken}", f"{management}.rmi.port={taken}")
    assert captured(*java(*ports, *open_to_all, "-cp", f"{library}{os.pathsep}{classes}", "ManyStores")).application == "many"


@pytest.mark.long
def test_an_agent_that_serves_metrics_is_not_started(captured, taken, tmp_path):
    library, classes = programs(NEWEST)
    (tmp_path / "rules.yaml").write_text("rules: []\n")
    agent = f"-javaagent:{metrics_agent()}={taken}:{tmp_path / 'rules.yaml'}"
    assert captured(*java(agent, "-cp", f"{library}{os.pathsep}{classes}", "ManyStores")).application == "many"


def test_a_jvm_that_ignores_the_agent(run_kops, tmp_path):
    library, _ = programs(NEWEST)
    ignored = ["env", "-u", "JAVA_TOOL_OPTIONS", *java("-cp", library, "org.apache.kafka.tools.TopicCommand", "--version")]
    done = run_kops("streams", "capture", "--out", tmp_path / "c.json", "--", *ignored)
    assert (done.code, done.out) == (1, "")
    assert "started no JVM that took the agent" in done.err


@pytest.mark.long
def test_the_agent_in_a_folder_whose_name_has_blanks(captured, tmp_path, monkeypatch):
    folder = tmp_path / "a folder's own"
    folder.mkdir()
    shutil.copy(built_agent(), folder / "kops-agent.jar")
    monkeypatch.setattr("kops.gateways.machine.agent.AGENT_JAR", folder / "kops-agent.jar")
    assert captured(*many(NEWEST)).application == "many"


@pytest.mark.long
def test_the_digest_names_the_build_and_not_its_place(captured, tmp_path):
    library, classes = programs(NEWEST)
    digests = []
    for place in ("one", "two"):
        shutil.copytree(classes, tmp_path / place / "classes")
        if place == "two":
            (tmp_path / "two" / "classes" / "more.properties").write_text("a=b")
        here = captured(*java("-cp", f"{library}{os.pathsep}{tmp_path / place / 'classes'}", "ManyStores"))
        digests.append(here.class_path_sha256)
    shutil.copytree(tmp_path / "one", tmp_path / "three")
    again = captured(*java("-cp", f"{library}{os.pathsep}{tmp_path / 'three' / 'classes'}", "ManyStores"))
    assert (again.class_path_sha256 == digests[0], digests[0] == digests[1]) == (True, False)


def test_the_agent_is_compiled_for_java_11(agent):
    """Class files of version 55: applications run on Java 11."""
    with zipfile.ZipFile(agent) as jar:
        own = [name for name in jar.namelist() if name.endswith(".class") and "objectweb" not in name]
        assert {int.from_bytes(jar.read(name)[6:8], "big") for name in own} == {55}
        assert not [name for name in jar.namelist() if name.startswith("org/")]


def test_the_fixture_of_the_unit_tests_is_what_the_agent_writes(captured_many):
    written = read_capture(json.loads((Path(SOURCES).parents[1] / "unit/core/streams/capture.json").read_text()), "capture.json")
    found = captured_many(NEWEST)
    assert (written.stores, written.nodes, written.subtopologies) == (found.stores, found.nodes, found.subtopologies)

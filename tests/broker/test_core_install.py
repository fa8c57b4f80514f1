"""Installs of kops' wheel. With its core dependencies, without Java, everyday verbs work and the others say which extra they need;
with an extra, what it requires is enough for its verbs."""

import http.server
import json
import os
import shlex
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer

from kops.config.paths import directories
from kops.core.plan import plan_of_document
from kops.gateways.connect.plugins import FILE_STREAM, parse_coordinate, plugin_folder
from kops.gateways.machine.checksums import pinned
from kops.gateways.machine.jars import kafka_set
from kops.operations.protocol.journal import EntryStatus, Journal
from kops.spark.driver.launch import spark_home
from support.captured import built_agent
from support.command_line import Outcome
from support.connect import FILE_SINK, FILE_SOURCE
from support.core_install import build_wheel, install, source_copy
from support.patience import HANG_SECONDS
from support.programs import Program, Record
from support.strangers import every_verb
from support.streams_apps import Cluster, wait_for
from support.topics import commit

pytestmark = pytest.mark.broker

CORE = frozenset(
    {
        *("certifi", "charset-normalizer", "click", "confluent-kafka", "idna", "javaproperties", "kafka-python", "markdown-it-py", "mdurl"),
        *("pygments", "pyyaml", "requests", "rich", "tabulate", "tomlkit", "urllib3", "wcwidth"),
    }
)
"""What is downloaded beside kops: 10 MB of wheels in all."""
ONLY_BEFORE = {"3.11": {"tomli", "typing-extensions"}, "3.13": {"typing-extensions"}}
"""What older Pythons need too."""
EXTRAS = {"pyspark", "py4j", "pyarrow", "numpy", "pandas", "google_crc32c", "fastavro", "google", "jsonschema"}
MOST_BYTES = 30_000_000
WITH_JAVA = (
    "sandbox up --name core -o json",
    "topics list --context core",
    "doctor --fetch -o json",
    f"connect plugins add {FILE_STREAM} -o json",
)
"""What an install of the core does where there is a JDK."""
SETS = (kafka_set().folder, parse_coordinate(FILE_STREAM).file.removesuffix(".jar"))
"""What it fetches for that."""
VALUES = [f"v{number}" for number in range(20)]
"""Of the records that are there for every command."""
ONLY_NEW_RECORDS = {"consumer.override.auto.offset.reset": "latest"}
"""Settings of a sink that writes none of them before its offsets are moved."""

WORKING = (
    "version",
    "help",
    "doctor",
    "completion bash",
    "plugins list",
    "context add small --bootstrap-servers {servers}",
    "context use small",
    "context list",
    "context show",
    "context test",
    "context import {folder}/client.properties --name imported",
    "context remove imported --yes",
    "cluster describe",
    "cluster health",
    "cluster brokers",
    "cluster api-versions",
    "cluster features list",
    "cluster quorum show",
    "cluster export {folder}/exported",
    "cluster diff {folder}/topics",
    "cluster apply {folder}/topics --dry-run",
    "brokers list",
    "brokers describe 1",
    "brokers config 1",
    "brokers log-dirs",
    "brokers alter 1 --config log.cleaner.threads=1 --dry-run",
    "users list",
    "users create small --generate {folder}/password --dry-run",
    "quotas list",
    "quotas set --user small producer_byte_rate=1000000 --dry-run",
    "quotas explain --user small --client-id app",
    "transactions list",
    "transactions producers {topic}:0",
    "share-groups lag",
    "client-metrics list",
    "client-metrics set small --metrics '*' --dry-run",
    "topics reassignments",
    "topics create {new} --partitions 2 --yes",
    "topics list {new}",
    "topics describe {new}",
    "topics offsets {topic}",
    "topics alter {new} --config retention.ms=7200000 --yes",
    "topics add-partitions {new} --partitions 3 --yes",
    "topics diff {folder}/topics",
    "topics apply {folder}/topics --yes",
    "records produce {new} --key k --value v",
    "records consume {topic}",
    'records consume {topic} --filter value=="v1" -o json',
    "records peek {group}",
    "records dead-letters {topic} --count",
    "groups list {group}",
    "groups describe {group}",
    "groups lag {group}",
    "journal finish {unfinished} --yes",
    "offsets edit {group} --yes",
    "offsets show {group}",
    "offsets export {group}",
    "offsets reset {group} --topic {topic} --to-earliest --yes",
    "offsets seek {group} {topic}:0=end --yes",
    "offsets copy {group} {group}-copy --new-group --yes",
    "offsets history {group}",
    "offsets delete {group}-copy --topic {topic} --confirm {group}-copy",
    "undo last --yes",
    "changelog list --all",
    "changelog inspect {topic} --key string --value string",
    "changelog get {topic} k1 --all-partitions",
    "changelog history {topic} k1 --all-partitions",
    "changelog stats {topic}",
    "streams list",
    "topics truncate {new} --to end --confirm {new}",
    "topics delete {new} --confirm {new}",
    "topics alter {topic} --config retention.ms=7200000 --plan-out {folder}/plan.json",
    "apply {folder}/plan.json --yes",
    "journal list",
    "journal show last",
    "groups delete {group}-copy --confirm {group}-copy",
    "diagnose {group}",
)
CONNECT = (
    "context add small --bootstrap-servers {servers} --connect-urls {workers}",
    "context use small",
    "connect workers",
    "connect plugins list",
    "connect plugins describe FileStreamSource",
    "connect validate {folder}/connectors.yaml",
    "connect apply {folder}/connectors.yaml --yes",
    "connect diff {folder}/connectors.yaml",
    "connect list {sink} {source}",
    "connect status {sink} {source}",
    "connect describe {sink} {source}",
    "connect pause {sink} --yes",
    "connect resume {sink} --yes",
    "connect restart {sink} --yes",
    "connect stop {sink} {source} --yes",
    "connect offsets alter {sink} {topic}:0=5 --yes",
    'connect offsets alter {source} --partition {{"filename":"{folder}/none"}} --offset {{"position":7}} --yes',
    "connect offsets show {sink} {source}",
    "connect offsets reset {source} --yes",
    "connect alter {sink} --config errors.tolerance=all --yes",
    "connect resume {sink} --yes",
    "connect delete {source} --confirm {source}",
    "connect loggers list root",
    "connect loggers set {topic} --level DEBUG --yes",
    "undo last --yes",
)
"""Run with connectors on real workers."""
FINDS = ("diagnose", "cluster health", "cluster diff", "topics diff")
"""Verbs whose exit code 1 means that something was found."""
REST = {
    "state rebuild {folder}/state.yaml --yes": "state",
    "state verify {folder}/state.yaml": "state",
    "state snapshot {folder}/state.yaml --to {folder}/snapshot": "state",
    "replay run {topic} --to {new}-copy --yes": "state",
    "replay archive {topic} --to {folder}/archive": "state",
    "changelog stats {topic} --spark": "state",
    "changelog inspect {topic} --spark": "state",
    "demo": "state",
}
NOT_PROMISED = ("acls", "replay", "sandbox", "schemas", "state", "streams")
"""Nouns that README does not name for the small install: only some of their verbs are run."""


SPECIAL = {
    *(f"cluster {what}" for what in ("features upgrade", "features downgrade", "quorum add", "quorum remove")),
    *(f"brokers {verb}" for verb in ("drain", "demote", "move-replicas", "unregister")),
    *(f"topics {verb}" for verb in ("reassign", "elect-leaders")),
    *(f"groups {verb}" for verb in ("config", "alter", "remove-members")),
    *(f"share-groups {verb}" for verb in ("reset", "delete-offsets", "delete")),
    *("transactions describe", "transactions abort", "client-metrics delete", "quotas remove", "users alter", "users delete"),
    *(f"tokens {verb}" for verb in ("list", "create", "renew", "expire")),
}
"""Verbs that need other brokers, groups, users or logins than are there: but for tokens, each is of a noun of which others are run."""


NEED_SCHEMAS = """
from kops.core.errors import MissingRequirement
from kops.formats.avro import AvroSchema
from kops.formats.json_schema import JsonChecker
from kops.formats.protobuf import ProtobufSchema
for make in (lambda: AvroSchema('"string"'), lambda: ProtobufSchema('syntax = "proto3";'), lambda: JsonChecker("true").problems(1)):
    try:
        make()
    except MissingRequirement as missing:
        print(missing.message, "|", missing.hint)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def small(wheel, tmp_path_factory):
    return install(wheel, tmp_path_factory.mktemp("small"))


@pytest.fixture
def words(broker, topics, home, tmp_path, monkeypatch):
    """What is filled into commands; a topic with records, a group that read one of them, and files are there."""
    monkeypatch.setenv("KOPS_CACHE_DIR", str(home / "cold"))
    monkeypatch.delenv("KOPS_JARS_DIR", raising=False)
    name = f"small-{uuid.uuid4().hex[:8]}"
    topics("create", name, "--partitions", 1, "--yes").ok()
    monkeypatch.delenv("KOPS_BOOTSTRAP_SERVERS")
    producer = Producer(broker.client)
    for number, value in enumerate(VALUES):
        producer.produce(name, key=f"k{number % 5}", value=value, partition=0)
    producer.flush()
    commit(broker, name, f"{name}-group")
    found = {"servers": broker.bootstrap_servers, "topic": name, "group": f"{name}-group", "new": f"{name}-new", "folder": str(tmp_path)}
    found |= {"source": f"{name}-source", "sink": f"{name}-sink"}
    write_files(tmp_path, found)
    return found


def write_files(folder: Path, words: Mapping[str, str]) -> None:
    """Write what commands are given: topics, settings of a client, a state file, and connectors."""
    topic = words["topic"]
    (folder / "topics").mkdir()
    (folder / "topics" / "topics.yaml").write_text(f"name: {words['new']}\npartitions: 3\nconfig:\n  retention.ms: 3600000\n", "utf-8")
    (folder / "client.properties").write_text(f"bootstrap.servers={words['servers']}\n", "utf-8")
    store = {"from": {"topic": topic, "key": "string", "value": "string"}, "changelog": topic}
    (folder / "state.yaml").write_text(json.dumps({"application": topic, "stores": {"t": store}}), "utf-8")
    connectors = [
        {"name": words["source"], "connector.class": FILE_SOURCE, "file": f"{folder}/none", "topic": topic},
        {"name": words["sink"], "connector.class": FILE_SINK, "file": f"{folder}/written", "topics": topic, **ONLY_NEW_RECORDS},
    ]
    (folder / "connectors.yaml").write_text(yaml.safe_dump_all(connectors), "utf-8")


@pytest.fixture
def run(small, words, tmp_path):
    """Run commands, their words filled in: ``run("topics list {topic}")``."""
    return lambda *lines, **more: small.run(*(line.format(**words, **more) for line in lines), work=tmp_path)


@pytest.fixture
def unfinished(run_kops, words):
    """The journal's entry of an offset to be moved, which was interrupted before anything was done."""
    move = ("offsets", "seek", words["group"], f"{words['topic']}:0=2", "-B", words["servers"])
    plan = plan_of_document(run_kops(*move, "--dry-run", "-o", "json").ok().json)
    journal = Journal(directories(os.environ).state / "journal")
    return journal.close(journal.open(plan), EntryStatus.INTERRUPTED, ()).id


@pytest.fixture
def editor(tmp_path, monkeypatch):
    """Let the editor be a program that moves the offset 2 to 3."""
    program = tmp_path / "editor"
    edit = "path.write_text(path.read_text().replace('  0: 2 ', '  0: 3 '))"
    script = f"import pathlib, sys; path = pathlib.Path(sys.argv[1]); {edit}"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(script)} "$1"\n', "utf-8")
    program.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(program))


def test_only_the_core_is_installed(small):
    version = sys.version_info[:2]
    older = {name for before, names in ONLY_BEFORE.items() if version < tuple(map(int, before.split("."))) for name in names}
    assert CORE <= small.distributions <= CORE | older


def test_the_java_agent_and_the_runner_are_in_the_wheel(small):
    (folder,) = small.folder.glob("lib/python*/site-packages/kops/java")
    agent = built_agent()
    for name in ("kops-agent.jar", "kops-runner.jar"):
        assert (folder / name).read_bytes() == agent.with_name(name).read_bytes()


def test_without_a_jdk_all_but_the_agent_is_built(tmp_path):
    """An agent, or a runner, of other sources is left out too."""
    source = source_copy(tmp_path)
    for name in ("kops-agent.jar", "kops-runner.jar"):
        (source / "src/kops/java" / name).write_bytes(b"of other sources")
    (tmp_path / "no-java").mkdir()
    environment = {"PATH": str(tmp_path / "no-java"), "KOPS_MAVEN_REPOSITORY": "http://127.0.0.1:1"}
    command = [sys.executable, "setup.py", "--quiet", "build_py", "--build-lib", tmp_path / "built"]
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=True, timeout=HANG_SECONDS)
    assert "kops is built without its Java agent, so `kops streams capture` and --app will not work: there is no javac" in done.stderr
    assert (tmp_path / "built/kops/cli/streams/capture.py").is_file()
    assert not list((tmp_path / "built/kops/java").glob("*.jar"))


def test_every_verb_of_the_small_install_is_run():
    lines = [f"{line} " for line in (*WORKING, *CONNECT, *REST, *WITH_JAVA)]
    verbs = {verb for verb, _ in every_verb() if verb.split()[0] not in NOT_PROMISED} - SPECIAL
    assert {verb for verb in verbs if not any(line.startswith(f"{verb} ") for line in lines)} == set()


@pytest.mark.usefixtures("editor")
def test_everyday_verbs_work_and_import_nothing_else(run, words, unfinished):
    outcomes, modules = run(*WORKING, unfinished=unfinished)
    assert failed(WORKING, outcomes) == {}
    assert not {module.partition(".")[0] for module in modules} & EXTRAS
    said = {line: outcome.out for line, outcome in zip(WORKING, outcomes, strict=True)}
    assert "state" in said["doctor"]
    assert said["offsets export {group}"].split() == [f"{words['topic']},0,3"]  # 2 once the entry is finished, which the editor makes 3


def test_verbs_of_connect_work_and_import_nothing_else(run, words, connect_workers, connectors, tmp_path):
    source, sink = words["source"], words["sink"]
    connectors.made.extend([source, sink])
    outcomes, modules = run(*CONNECT, workers=",".join(connect_workers.urls))
    assert failed(CONNECT, outcomes) == {}
    assert not {module.partition(".")[0] for module in modules} & EXTRAS
    assert source not in connect_workers.ask("GET", "/connectors")
    assert connect_workers.ask("GET", f"/connectors/{sink}/config")["errors.tolerance"] == "all"
    wait_for("the records to be written", lambda: (tmp_path / "written").read_text("utf-8").splitlines() == VALUES[5:])


def failed(lines: Sequence[str], outcomes: Sequence[Outcome]) -> dict[str, tuple[int, str]]:
    """Return the exit code and the errors of the commands that failed."""
    return {
        line: (outcome.code, outcome.err)
        for line, outcome in zip(lines, outcomes, strict=True)
        if outcome.code not in ((0, 1) if line.startswith(FINDS) else (0,)) or "kops: error" in outcome.err
    }


def test_the_others_say_which_extra_they_need_and_change_nothing(run, home):
    outcomes, _ = run("context add small --bootstrap-servers {servers}", "context use small", *REST, "journal list -o json")
    for (line, extra), outcome in zip(REST.items(), outcomes[2:-1], strict=True):
        said = outcome.out if line.startswith("doctor") else outcome.err
        assert f"the extra '{extra}' of kops, which is not installed" in said, (line, outcome)
        assert "pip install kops" not in said
        if not line.startswith("doctor"):
            assert outcome.code == 2, (line, outcome)
            assert "add it with: " in said, line
            assert "pyspark<4.3,>=4.0" in said, line
    assert [entry["operation"] for entry in json.loads(outcomes[-1].out)] == ["topics.create"]  # the fixture's


@pytest.fixture
def mirror(monkeypatch):
    """A Maven repository that has what the cache has of the default sets; what was asked for."""
    cache, asked = directories(os.environ).cache / "jars", []
    plugin_folder(cache.parent, FILE_STREAM)
    files = {
        f"/{place}": (cache if folder == SETS[0] else cache / "connect-plugins") / folder / Path(place).name
        for folder in SETS
        for place in pinned()[folder]
    }

    class Files(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            if self.path not in files:
                self.send_error(404)
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(files[self.path].read_bytes())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    threading.Thread(target=server.serve_forever).start()
    monkeypatch.setenv("KOPS_MAVEN_REPOSITORY", f"http://127.0.0.1:{server.server_port}/")
    yield asked
    server.shutdown()
    server.server_close()


@pytest.mark.usefixtures("home")
def test_a_sandbox_needs_only_java(wheel, mirror, kafka_jar_files, tmp_path, monkeypatch):
    monkeypatch.setenv("KOPS_CACHE_DIR", str(tmp_path / "cold"))
    monkeypatch.delenv("KOPS_JARS_DIR", raising=False)
    installed = install(wheel, tmp_path / "environment", java=True)
    try:
        (up, *others), modules = installed.run(*WITH_JAVA, work=tmp_path)
    finally:
        (down,), _ = installed.run("sandbox down --name core --delete", work=tmp_path)
    for outcome in (up, *others, down):
        outcome.ok()
    doctor, plugin = others[-2:]
    assert up.json["state"] == "running"
    assert not {module.partition(".")[0] for module in modules} & EXTRAS
    assert sorted(path.removeprefix("/") for path in mirror) == sorted(place for name in SETS for place in pinned()[name])
    found = {check["name"]: check for check in doctor.json}
    assert (found["kafka jars"]["status"], found["spark-kafka jars"]["status"]) == ("ok", "optional")
    assert "the extra 'state' of kops, which is not installed" in found["spark-kafka jars"]["found"]
    assert plugin.json[0]["jars"] == len(pinned()[SETS[1]])


def test_formats_of_a_registry_need_their_extra(small):
    done = subprocess.run([small.python, "-I", "-c", NEED_SCHEMAS], capture_output=True, text=True, check=True, timeout=HANG_SECONDS)
    lines = done.stdout.splitlines()
    assert len(lines) == 3, done
    assert all("the extra 'schemas' of kops, which is not installed" in line and "fastavro<2,>=1.12" in line for line in lines)


def test_the_schemas_extra_is_all_that_formats_of_a_registry_need(wheel, tmp_path):
    installed = install(wheel, tmp_path / "environment", "schemas")
    assert "pyspark" not in installed.distributions
    done = subprocess.run([installed.python, "-I", "-c", NEED_SCHEMAS], capture_output=True, text=True, check=True, timeout=HANG_SECONDS)
    assert done.stdout == ""


def test_the_state_extra_is_all_that_spark_needs(wheel, broker, monkeypatch, tmp_path):
    monkeypatch.setenv("SPARK_HOME", str(spark_home()))  # the same jars, of whose classes there is an archive
    installed = install(wheel, tmp_path / "environment", "state", java=True)
    assert not installed.distributions & {"grpcio", "fastavro"}
    program, kafka = Program("count", "long", value="string").named(f"extra-{uuid.uuid4().hex[:8]}"), Cluster(broker.bootstrap_servers)
    kafka.create_all({program.topic: 1, program.changelog: 1})
    kafka.produce(program.topic, [Record(key, b"v", 1_000_000) for key in (b"a", b"b", b"a")])
    kafka.commit(program.application, {(program.topic, 0): 3})
    (tmp_path / "state.yaml").write_text(json.dumps(program.state_file()), "utf-8")
    try:
        (rebuilt,), _ = installed.run(f"state rebuild {tmp_path}/state.yaml --yes -B {broker.bootstrap_servers}", work=tmp_path)
        rebuilt.ok()
        assert {record.key: record.value for record in kafka.read(program.changelog)} == {
            key: count.to_bytes(8, "big") for key, count in ((b"a", 2), (b"b", 1))
        }
    finally:
        kafka.delete_all([program.topic, program.changelog])


@pytest.mark.long
def test_a_resolving_install_downloads_at_most_30_mb(tmp_path):
    """Asks the package index that pip is set up with."""
    wheel = build_wheel(tmp_path)
    downloaded = tmp_path / "downloaded"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:", "--dest", str(downloaded), str(wheel)]
    subprocess.run(command, check=True, timeout=HANG_SECONDS)
    assert sum(file.stat().st_size for file in downloaded.iterdir()) <= MOST_BYTES
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True, timeout=HANG_SECONDS)
    python = environment / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--find-links", str(downloaded), str(wheel)], check=True)
    done = subprocess.run([python, "-m", "kops", "doctor"], capture_output=True, text=True, check=False, timeout=HANG_SECONDS)
    assert f"{python} -m pip install" in done.stdout

"""Installs of kops' wheel. With its core dependencies, without Java, everyday verbs work and the others say which extra they need;
with an extra, what it requires is enough for its verbs."""

import json
import subprocess
import sys
import uuid

import pytest
from confluent_kafka import Producer

from kops.spark.driver.launch import spark_home
from support.captured import built_agent
from support.connect_answers import connect_worker
from support.core_install import build_wheel, install, source_copy
from support.programs import Program, Record
from support.streams_apps import Cluster
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

WORKING = (
    "doctor",
    "completion bash",
    "plugins list",
    "context add small --bootstrap-servers {servers} --connect-urls {worker}",
    "context use small",
    "context list",
    "context show",
    "context test",
    "cluster describe",
    "cluster health",
    "cluster brokers",
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
    "connect list",
    "topics truncate {new} --to end --confirm {new}",
    "topics delete {new} --confirm {new}",
    "topics alter {topic} --config retention.ms=7200000 --plan-out {folder}/plan.json",
    "apply {folder}/plan.json --yes",
    "journal list",
    "journal show last",
    "groups delete {group}-copy --confirm {group}-copy",
    "diagnose {group}",
)
FINDS = ("diagnose", "cluster health", "topics diff")
"""Verbs whose exit code 1 means that something was found."""
REST = {
    "state rebuild {folder}/state.yaml --yes": "state",
    "state verify {folder}/state.yaml": "state",
    "state snapshot {folder}/state.yaml --to {folder}/snapshot": "state",
    "replay run {topic} --to {new}-copy --yes": "state",
    "replay archive {topic} --to {folder}/archive": "state",
    "changelog stats {topic} --spark": "state",
    "changelog inspect {topic} --spark": "state",
    "sandbox up --name another": "state",
    "demo": "state",
    "doctor --fetch": "state",
}


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
def run(small, broker, topics, home, tmp_path, monkeypatch):
    """Run commands, their names filled in; a topic with records and a group that read one of them are there."""
    monkeypatch.setenv("KOPS_CACHE_DIR", str(home / "cold"))
    monkeypatch.delenv("KOPS_JARS_DIR", raising=False)
    name = f"small-{uuid.uuid4().hex[:8]}"
    topics("create", name, "--partitions", 1, "--yes").ok()
    monkeypatch.delenv("KOPS_BOOTSTRAP_SERVERS")
    producer = Producer(broker.client)
    for number in range(20):
        producer.produce(name, key=f"k{number % 5}", value=f"v{number}", partition=0)
    producer.flush()
    commit(broker, name, f"{name}-group")
    (tmp_path / "topics").mkdir()
    (tmp_path / "topics" / "topics.yaml").write_text(f"name: {name}-new\npartitions: 3\nconfig:\n  retention.ms: 3600000\n", "utf-8")
    (tmp_path / "state.yaml").write_text(
        json.dumps(
            {"application": name, "stores": {"t": {"from": {"topic": name, "key": "string", "value": "string"}, "changelog": name}}}
        ),
        "utf-8",
    )
    words = {"servers": broker.bootstrap_servers, "topic": name, "group": f"{name}-group", "new": f"{name}-new", "folder": str(tmp_path)}

    def lines(*given, **more):
        return small.run(*(line.format(**words, **more) for line in given), work=tmp_path)

    return lines


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
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert "kops is built without its Java agent, so `kops streams capture` and --app will not work: there is no javac" in done.stderr
    assert (tmp_path / "built/kops/cli/streams/capture.py").is_file()
    assert not list((tmp_path / "built/kops/java").glob("*.jar"))


def test_everyday_verbs_work_and_import_nothing_else(run):
    with connect_worker({}) as worker:
        outcomes, modules = run(*WORKING, worker=worker)
    failed = {
        line: (outcome.code, outcome.err)
        for line, outcome in zip(WORKING, outcomes, strict=True)
        if outcome.code not in ((0, 1) if line.startswith(FINDS) else (0,)) or "kops: error" in outcome.err
    }
    assert failed == {}
    assert not {module.partition(".")[0] for module in modules} & EXTRAS
    assert "state" in outcomes[0].out


def test_the_others_say_which_extra_they_need_and_change_nothing(run, home):
    outcomes, _ = run("context add small --bootstrap-servers {servers}", "context use small", *REST, "journal list -o json")
    for (line, extra), outcome in zip(REST.items(), outcomes[2:-1], strict=True):
        said = outcome.out if line.startswith("doctor") else outcome.err
        assert f"the extra '{extra}' of kops, which is not installed" in said, (line, outcome)
        assert "pip install kops" not in said
        if not line.startswith("doctor"):
            assert outcome.code == 2, (line, outcome)
            assert "add it with: " in said, line
            assert "pyspark<4.1,>=4.0" in said, line
    assert [entry["operation"] for entry in json.loads(outcomes[-1].out)] == ["topics.create"]  # the fixture's


def test_formats_of_a_registry_need_their_extra(small):
    done = subprocess.run([small.python, "-I", "-c", NEED_SCHEMAS], capture_output=True, text=True, check=True, timeout=60)
    lines = done.stdout.splitlines()
    assert len(lines) == 3, done
    assert all("the extra 'schemas' of kops, which is not installed" in line and "fastavro<2,>=1.9" in line for line in lines)


def test_the_schemas_extra_is_all_that_formats_of_a_registry_need(wheel, tmp_path):
    installed = install(wheel, tmp_path / "environment", "schemas")
    assert "pyspark" not in installed.distributions
    done = subprocess.run([installed.python, "-I", "-c", NEED_SCHEMAS], capture_output=True, text=True, check=True, timeout=60)
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
    subprocess.run(command, check=True, timeout=600)
    assert sum(file.stat().st_size for file in downloaded.iterdir()) <= MOST_BYTES
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True, timeout=120)
    python = environment / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--find-links", str(downloaded), str(wheel)], check=True)
    done = subprocess.run([python, "-m", "kops", "doctor"], capture_output=True, text=True, check=False, timeout=60)
    assert f"{python} -m pip install" in done.stdout

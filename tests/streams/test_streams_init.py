"""Real applications of many kinds: the template of a state file that `kops state init` writes, and where clusters differ from programs."""

import time
import uuid
from functools import cache

import pytest
import yaml

from kops.gateways.machine.jars import KAFKA_VERSION
from support.captured import built_agent
from support.programs import Record
from support.streams import java_command
from support.streams_apps import wait_for
from support.streams_instances import JAVA_SOURCES, Instances, forget_groups

pytestmark = [pytest.mark.streams, pytest.mark.broker]

START = int(time.time()) // 3600 * 3_600_000 - 7_200_000
"""Recent, for brokers delete what is older than the windows."""
OPEN = "TODO"
INPUTS = ("in", "users", "left", "right", "orders", "customers")
OUTPUTS = ("word-counts", "out", "regions")
KINDS = (
    "count-of-words",
    "filtered-sum",
    "tumbling",
    "hopping",
    "session",
    "versioned",
    "grouped-table",
    "inner-join-of-tables",
    "foreign-key-join",
    "table-optimized",
)


@pytest.fixture(scope="module")
def applications(cluster, tmp_path_factory):
    """All of them, run to the end of their input and stopped; gives the prefix of their names, and what describe() prints of each."""
    prefix = f"drafted-{uuid.uuid4().hex[:8]}"
    topics = {f"{prefix}-{name}": 2 for name in INPUTS} | {f"{prefix}-{name}": 1 for name in OUTPUTS}
    cluster.create_all(topics)
    words = ["apple pear", "pear", "plum apple apple"]
    lines = [Record(b"k%d" % (at % 4), words[at % 3].encode(), START + 37_000 * at) for at in range(30)]
    rows = [Record(b"u%d" % at, b"u%d" % (at % 3), START + at) for at in range(9)]
    cluster.produce_all({f"{prefix}-{name}": lines if name == "in" else rows for name in INPUTS})
    with Instances(cluster.servers, tmp_path_factory.mktemp("drafted")) as instances:
        texts = {kind: instances.text(prefix, kind) for kind in KINDS}
        for kind in KINDS:
            settings = {"processing_guarantee": guarantee_of(kind), "statestore_cache_max_bytes": 0}
            instances.start(kind, prefix, f"{prefix}-{kind}", kind, **settings)
        instances.wait_until_running()
        for kind in KINDS:
            wait_for(f"{kind} to be through", lambda kind=kind: is_through(cluster, f"{prefix}-{kind}", texts[kind]))
        for kind in KINDS:
            instances.stop(kind)
    yield prefix, texts
    cluster.delete_all(cluster.topics(prefix))
    forget_groups(cluster, *(f"{prefix}-{kind}" for kind in KINDS))


def guarantee_of(kind):
    return "exactly_once_v2" if kind in ("session", "grouped-table") else "at_least_once"


def is_through(cluster, application, text):
    """Return whether all topics that it reads are committed to their ends, its repartition topics too."""
    committed = cluster.committed(application)
    outer = [topic for topic in cluster.topics(application.split("-")[0]) if f"[{topic}]" in text]
    inner = [topic for topic in cluster.topics(f"{application}-") if not topic.endswith("-changelog")]
    ends = {(topic, at): high for topic in (*outer, *inner) for at, (_low, high) in cluster.ends(topic).items()}
    return bool(outer) and all(committed.get(at, 0) == high for at, high in ends.items())


@pytest.fixture(scope="module")
def program(applications, run_kops_alone, tmp_path_factory):
    """Capture the program of one kind, once with the same settings; returns the path of the capture."""
    prefix, _texts = applications
    built_agent()

    @cache
    def capture(kind, *settings, name=None):
        file = tmp_path_factory.mktemp("captured") / f"{kind}.json"
        words = (prefix, kind, f"{prefix}-{name or kind}", guarantee_of(kind), *settings)
        run_kops_alone("streams", "capture", "--out", file, "--", *java_command("OneTopology", sources=JAVA_SOURCES), *words).ok()
        return file

    return capture


FURTHER = ("count-of-words", "filtered-sum", "tumbling", "grouped-table", "inner-join-of-tables")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.long) if kind in (*FURTHER, "versioned") else kind for kind in KINDS]
)
def test_a_cluster_does_not_differ_from_the_program_that_made_its_topics(applications, program, run_kops, cluster, kind):
    """But for a topic of the application's own that serves as a changelog, and whose records are deleted."""
    prefix, _texts = applications
    shown = run_kops("streams", "describe", "--capture", program(kind), "-B", cluster.servers, "-o", "json").ok().json
    deleted = {"difference": "setting", "setting": "cleanup.policy", "program": "compact", "cluster": "delete"}
    found = [{"topic": f"{prefix}-users", "store": "users-store", **deleted}] if kind == "table-optimized" else []
    assert (shown["topology_from"], shown["differences"], shown["program_notes"]) == ("description", found, [])


def test_where_a_cluster_differs_from_another_build_of_the_program(applications, program, run_kops, cluster):
    prefix, _texts = applications
    name = f"{prefix}-session"
    file = program("session", "topic.segment.ms=1234567")
    arguments = ("streams", "describe", "--capture", file, "-B", cluster.servers)
    (row,) = run_kops(*arguments, "-o", "json").ok().json["differences"]
    differs = {"difference": "setting", "setting": "segment.ms", "program": "1234567"}
    assert row == {"topic": f"{name}-sessions-changelog", "store": "sessions", "cluster": "604800000", **differs}
    assert "setting segment.ms" in run_kops(*arguments).ok().out
    rows = run_kops(*arguments[:3], program("hopping", name="session"), *arguments[4:], "-o", "json").ok().json["differences"]
    assert {(row["topic"].removeprefix(f"{name}-"), row["store"], row["difference"], row["program"]) for row in rows} == {
        ("page-views-changelog", "page-views", "missing", None),
        ("page-views-repartition", None, "missing", None),
        ("sessions-changelog", None, "not in program", None),
    }


ORIGIN = {"topic": OPEN, "key": OPEN, "value": OPEN}
COUNTED = {"from": ORIGIN, "aggregate": OPEN}
WINDOWED = {"type": OPEN, "from": ORIGIN, "window": OPEN, "aggregate": OPEN}
TEMPLATES = {
    "count-of-words": {"counts-store": COUNTED},
    "session": {"sessions": WINDOWED},
    "versioned": {"versions": {"type": "versioned", "from": ORIGIN, "history_retention": "1h"}},
    "grouped-table": {"per-region": COUNTED},
}


@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_template_has_the_stores_of_the_live_changelogs(applications, run_kops, cluster, tmp_path, kind):
    prefix, _texts = applications
    file, arguments = tmp_path / "state.yaml", ("state", "init", f"{prefix}-{kind}", "-B", cluster.servers)
    run_kops(*arguments, "--out", file).ok()
    shown = run_kops(*arguments, "-o", "json").ok().json
    body = yaml.safe_load(file.read_text())
    assert body == shown["state_file"]
    assert set(shown) == {"application", "state_file", "open", "notes"}
    assert body["application"] == f"{prefix}-{kind}"
    assert {name: body["stores"][name] for name in TEMPLATES[kind]} == TEMPLATES[kind]
    refused = run_kops("state", "rebuild", file, "--dry-run", "-B", "127.0.0.1:1")
    assert refused.code == 2
    assert f"still open: {', '.join(one['field'] for one in shown['open'])}" in refused.err


@pytest.mark.spark
def test_a_template_that_is_filled_in_computes_what_the_application_wrote(applications, run_kops, cluster, tmp_path):
    prefix, _texts = applications
    file = tmp_path / "state.yaml"
    run_kops("state", "init", f"{prefix}-count-of-words", "--out", file, "-B", cluster.servers).ok()
    text = file.read_text()
    for was, answer in {
        "version: TODO": f'version: "{KAFKA_VERSION}"',
        "guarantee: TODO": "guarantee: at_least_once",
        "{topic: TODO, key: TODO, value: TODO}": f"{{topic: {prefix}-in, key: string, value: string}}",
        "aggregate: TODO": "aggregate: {count: true}",
        "# key_by: value.item ": "key_by: value ",
        "# key_as": "explode: split(value, ' ')\n    key_as",
    }.items():
        assert text.count(was) == 1, text
        text = text.replace(was, answer)
    file.write_text(text)
    (row,) = run_kops("state", "verify", file, "-B", cluster.servers, "-o", "json").ok().json
    assert (row["verdict"], row["keys"] > 0) == ("proven", True)


def test_an_application_that_is_not_there_or_has_no_such_store(applications, run_kops, cluster):
    prefix, _texts = applications
    missing = run_kops("state", "init", f"{prefix}-session", "--store", "session", "-B", cluster.servers)
    assert (missing.code, "has no store session" in missing.err, "did you mean sessions?" in missing.err) == (2, True, True), missing.err
    assert run_kops("state", "init", f"{prefix}-nothing", "-B", cluster.servers).code != 0

"""`kops state init` beside real applications of many kinds: what it drafts, what it leaves open, and that the filled-in draft is right."""

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


@pytest.fixture
def draft(applications, run_kops, cluster, tmp_path):
    """Run ``kops state init`` for one kind; returns its outcome, and the path of a file with the draft."""
    prefix, texts = applications

    def run(kind, *more):
        text = tmp_path / f"{kind}.txt"
        text.write_text(texts[kind])
        arguments = ("state", "init", f"{prefix}-{kind}", "-B", cluster.servers, *(more or ("--topology", text)))
        file = tmp_path / f"{kind}.yaml"
        file.unlink(missing_ok=True)
        run_kops(*arguments, "--out", file).ok()
        return run_kops(*arguments, "-o", "json").ok().json, file

    return run


def expected(prefix):
    """Return for each kind its stores as they are drafted."""
    origin = {"from": {"topic": f"{prefix}-in", "key": "string", "value": "string"}}

    timed = {"from": {**origin["from"], "timestamp": OPEN}}

    def table(name, **more):
        return {"from": {"topic": f"{prefix}-{name}", "key": "string", "value": "string", **more}}

    def hidden(name, number):
        return f"{prefix}-{name}-STATE-STORE-{number:010}"

    by_key = {"key_by": OPEN, "key_as": "string"}
    left, right = hidden("left", 0), hidden("right", 3)
    orders, customers = hidden("orders", 0), hidden("customers", 3)
    joined = {"type": OPEN, "value": OPEN, "as": "string"}
    repartition = {"repartition": f"{prefix}-filtered-sum-by-value-repartition"}
    return {
        "count-of-words": {"counts-store": {**origin, "explode": OPEN, **by_key, "aggregate": OPEN}},
        "filtered-sum": {"sums": {**origin, "where": OPEN, **by_key, **repartition, "aggregate": OPEN}},
        "tumbling": {
            "per-minute": {"type": "window", **timed, "window": {"size": "1m", "grace": "0ms", "retention": "1m"}, "aggregate": OPEN}
        },
        "hopping": {
            "page-views": {
                "type": "window",
                **timed,
                **by_key,
                "window": {"size": OPEN, "grace": OPEN, "retention": "6s"},
                "aggregate": OPEN,
            }
        },
        "session": {"sessions": {"type": "session", **timed, "window": {"gap": OPEN, "grace": OPEN, "retention": "1m"}, "aggregate": OPEN}},
        "versioned": {"versions": {"type": "versioned", **table("users", timestamp=OPEN), "history_retention": "1h"}},
        "grouped-table": {
            hidden("users", 0): table("users"),
            "per-region": {"from": {"table": hidden("users", 0)}, **by_key, "aggregate": OPEN},
        },
        "inner-join-of-tables": {
            left: table("left"),
            right: table("right"),
            "joined": {"from": {"table": left}, "join": {"table": right, **joined}},
        },
        "foreign-key-join": {
            orders: table("orders"),
            customers: table("customers"),
            "enriched": {"from": {"table": orders}, "join": {"table": customers, "on": OPEN, **joined}},
        },
        "table-optimized": {"users-store": table("users")},
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_draft_says_what_is_known_and_marks_what_is_not(applications, draft, run_kops, kind):
    prefix, _texts = applications
    shown, file = draft(kind)
    body = yaml.safe_load(file.read_text())
    assert body == shown["state_file"]
    assert set(shown) == {"application", "state_file", "open", "skipped", "notes"}
    assert body["application"] == f"{prefix}-{kind}"
    assert body["stores"] == expected(prefix)[kind]
    assert body["streams"]["guarantee"] == guarantee_of(kind)
    assert body["streams"].get("topology_optimization") == ("all" if kind == "table-optimized" else None)
    assert [one["store"] for one in shown["skipped"]] == (["fk-subscription-store"] if kind == "foreign-key-join" else [])
    assert all(one["todo"] for one in shown["open"])
    refused = run_kops("state", "rebuild", file, "--dry-run", "-B", "127.0.0.1:1")
    assert refused.code == 2
    assert f"still open: {', '.join(one['field'] for one in shown['open'])}" in refused.err


ANSWERS = {
    "count-of-words": {"explode": "split(value, ' ')", "key_by": "value", "aggregate": {"count": True}},
    "tumbling": {"aggregate": {"count": True}},
    "grouped-table": {"key_by": "value", "aggregate": {"count": True}},
    "versioned": {},
}


@pytest.mark.spark
@pytest.mark.parametrize("kind", ANSWERS)
def test_a_draft_that_is_filled_in_computes_what_the_application_wrote(draft, run_kops, cluster, kind):
    _shown, file = draft(kind)
    body = yaml.safe_load(file.read_text())
    body["streams"]["version"] = KAFKA_VERSION
    for store in body["stores"].values():
        store |= {name: answer for name, answer in ANSWERS[kind].items() if store.get(name) == OPEN}
        store["from"].pop("timestamp", None)
    file.write_text(yaml.safe_dump(body))
    verified = run_kops("state", "verify", file, "-B", cluster.servers, "-o", "json").ok().json
    assert all(row["keys"] for row in verified)


def expected_of_the_program(prefix):
    """Return the stores as they are drafted from the program itself: only what its functions compute is open."""
    described = expected(prefix)
    counted = {"aggregate": {"count": True}}
    origin = {"from": {"topic": f"{prefix}-in", "key": "string", "value": "string"}}
    joined = described["inner-join-of-tables"]["joined"]
    enriched = described["foreign-key-join"]["enriched"]
    versions = described["versioned"]["versions"]
    versions["from"].pop("timestamp")
    return {
        "count-of-words": {"counts-store": {**described["count-of-words"]["counts-store"], **counted}},
        "filtered-sum": described["filtered-sum"],
        "tumbling": {"per-minute": {"type": "window", **origin, "window": {"size": "1m", "grace": "0ms", "retention": "1m"}, **counted}},
        "hopping": {
            "page-views": {
                "type": "window",
                **origin,
                "key_by": OPEN,
                "key_as": "string",
                "window": {"size": "5s", "advance": "2s", "grace": "1s", "retention": "6s"},
                **counted,
            }
        },
        "session": {"sessions": {"type": "session", **origin, "window": {"gap": "1m", "grace": "0ms", "retention": "1m"}, **counted}},
        "versioned": {"versions": versions},
        "grouped-table": {**described["grouped-table"], "per-region": {**described["grouped-table"]["per-region"], **counted}},
        "inner-join-of-tables": {
            **described["inner-join-of-tables"],
            "joined": {**joined, "join": {**joined["join"], "type": "inner"}},
        },
        "foreign-key-join": {
            **described["foreign-key-join"],
            "enriched": {**enriched, "join": {**enriched["join"], "type": "inner"}},
        },
        "table-optimized": described["table-optimized"],
    }


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


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=pytest.mark.long) if kind in FURTHER else kind for kind in KINDS])
def test_a_draft_from_the_program_leaves_only_what_its_functions_compute(applications, program, run_kops, cluster, kind):
    prefix, _texts = applications
    shown = run_kops("state", "init", "--capture", program(kind), "-B", cluster.servers, "-o", "json").ok().json
    assert shown["application"] == f"{prefix}-{kind}"
    assert shown["state_file"]["stores"] == expected_of_the_program(prefix)[kind]
    streams = {"version": KAFKA_VERSION, "guarantee": guarantee_of(kind), "cache": False}
    assert shown["state_file"]["streams"] == (streams | {"topology_optimization": "all"} if kind == "table-optimized" else streams)
    assert shown["notes"] == []


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["session", pytest.param("versioned", marks=pytest.mark.long)])
def test_a_draft_from_the_program_that_has_nothing_open_computes_what_it_wrote(program, run_kops, cluster, tmp_path, kind):
    file = tmp_path / "state.yaml"
    done = run_kops("state", "init", "--capture", program(kind), "-B", cluster.servers, "--out", file).ok()
    assert "nothing is open" in done.err
    (row,) = run_kops("state", "verify", file, "-B", cluster.servers, "-o", "json").ok().json
    assert row["keys"]
    assert (row["status"], row["different"], row["missing"], row["unexpected"]) == ("equal", 0, 0, 0)


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


def test_draft_without_a_description_has_more_open_fields(applications, draft):
    prefix, _texts = applications
    shown, _file = draft("tumbling", "--store", "per-minute")
    assert shown["state_file"]["stores"] == expected(prefix)["tumbling"]
    shown, _file = draft("count-of-words", "--store", "counts-store")
    store = shown["state_file"]["stores"]["counts-store"]
    assert (store["from"]["topic"], store["key_by"], store["aggregate"]) == (f"{prefix}-in", OPEN, OPEN)
    shown, _file = draft("versioned", "--store", "versions")
    assert shown["state_file"]["stores"] == expected(prefix)["versioned"]

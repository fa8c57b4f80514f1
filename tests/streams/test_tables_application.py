"""A real application with a join and a grouped table, broken half way, beside a twin that never was; and a recreated versioned store."""

import json
import shutil
import uuid

import pytest

from support.programs import Record
from support.streams import compacted_view
from support.streams_apps import run_all_to_the_end, run_to_the_end
from support.streams_cases import START
from support.table_cases import HISTORY_MS, observable
from support.tables import TableProgram
from support.verified import checks, findings, summaries

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

PARTITIONS = 3
JSON = {"key": "string", "value": {"format": "json", "schema": "region string, age int"}}
ZERO, REGIONS = bytes(8), ("north", "south", "west", "left by all")


def regions(application: str) -> TableProgram:
    """Users joined with their preferences, people under 30 counted per region."""
    return TableProgram(
        (
            {"name": "users", "topic": f"{application}-in-users", "key": "string", "value": "json"},
            {"name": "preferences", "topic": f"{application}-in-preferences", "key": "string", "value": "json"},
            {"name": "people", "join": {"left": "users", "right": "preferences", "kind": "inner", "as": "json"}},
            {"name": "young", "filter": {"table": "people", "field": "age", "op": "lt", "value": 30}},
            {
                "name": "per-region",
                "group": {"table": "young", "field": "region", "as": "string"},
                "aggregate": {"kind": "count", "as": "long"},
            },
        ),
        {
            "users": {"from": {"topic": f"{application}-in-users", **JSON}},
            "preferences": {"from": {"topic": f"{application}-in-preferences", **JSON}},
            "people": {
                "from": {"table": "users"},
                "join": {
                    "table": "preferences",
                    "value": "named_struct('region', left.region, 'age', right.age)",
                    "as": {"format": "json", "schema": "region string, age int"},
                },
            },
            "per-region": {
                "from": {"table": "people"},
                "where": "value.age < 30",
                "key_by": "value.region",
                "aggregate": {"count": True},
            },
        },
        application=application,
        output=f"{application}-out",
        config=(("processing.guarantee", "exactly_once_v2"), ("statestore.cache.max.bytes", "0")),
    )


def compact(value: object) -> bytes:
    """Return JSON as Jackson writes it."""
    return json.dumps(value, separators=(",", ":")).encode()


def movements(half: int) -> tuple[list[Record], list[Record]]:
    """People who appear, move, age, leave and come back; one region is left by all of them in the first half."""
    users, preferences = [], []
    for at in range(half * 150, half * 150 + 150):
        person, region = b"person-%d" % (at * 7 % 40), REGIONS[at * 5 % 3] if half or at > 20 else REGIONS[3]
        gone = at % 11 == 10
        users.append(Record(person, None if gone else compact({"region": region}), START + 20 * at))
        age = compact({"age": 20 + at * 3 % 17})
        preferences.append(Record(b"person-%d" % (at * 3 % 40), None if at % 13 == 12 else age, START + 20 * at + 7))
    if not half:
        everybody = range(40)
        users += [Record(b"person-%d" % at, b'{"region":"north"}', START + 20 * 150 + at) for at in everybody]
    return users, preferences


@pytest.mark.long
def test_after_a_rebuild_the_application_counts_on_as_its_twin_does(cluster, run_kops, tmp_path):
    names = [f"regions-{uuid.uuid4().hex[:8]}-{who}" for who in ("untouched", "broken")]
    untouched, broken = programs = [regions(name) for name in names]
    cluster.create_all({f"{name}-{topic}": PARTITIONS for name in names for topic in ("in-users", "in-preferences", "out")})
    state_file = tmp_path / "state.yaml"
    state_file.write_text(json.dumps(broken.state_file("exactly_once_v2")), encoding="utf-8")
    common = (str(state_file), "-B", cluster.servers)

    def process(half: int) -> None:
        users, preferences = movements(half)
        for program in programs:
            cluster.produce_all({f"{program.application}-in-users": users, f"{program.application}-in-preferences": preferences})
        run_all_to_the_end(cluster.servers, [(program, tmp_path / program.application) for program in programs])

    def view(program: TableProgram, store: str):
        return compacted_view(cluster.read(program.changelog(store)))

    def counts(program: TableProgram):
        return {key: int.from_bytes(entry.value, "big") for key, entry in view(program, "per-region").items() if entry.value != ZERO}

    process(0)
    healthy = run_kops("state", "verify", *common, "-o", "json").ok().json
    assert {row["store"]: row["verdict"] for row in healthy} == dict.fromkeys(broken.stores, "proven")
    assert view(broken, "per-region")[b"left by all"].value == ZERO
    before = {store: view(broken, store) for store in ("users", "preferences", "people")}
    for store in broken.stores:
        cluster.empty(broken.changelog(store))
    shutil.rmtree(tmp_path / broken.application / "state")
    run_kops("state", "rebuild", *common, "--yes").ok()
    run_kops("state", "verify", *common).ok()
    assert {store: view(broken, store) for store in before} == before
    assert counts(broken) == counts(untouched)
    process(1)
    for store in ("users", "preferences", "people"):
        assert view(broken, store) == view(untouched, store), store
    assert counts(broken) == counts(untouched)
    assert sum(counts(broken).values()) > 0
    ends = [
        {
            topic.removeprefix(program.application): at
            for (topic, _), at in cluster.committed(program.application).items()
            if "-in-" in topic
        }
        for program in programs
    ]
    assert ends[0] == ends[1]
    cluster.delete_all(topic for name in names for topic in cluster.topics(name))


def test_versioned_store_is_recreated_and_the_application_restores_it(cluster, prefix, run_kops, tmp_path):
    topic = f"{prefix}-in"
    program = TableProgram(
        ({"name": "v", "topic": topic, "key": "string", "value": "string", "history_ms": HISTORY_MS},),
        {"v": {"type": "versioned", "history_retention": f"{HISTORY_MS}ms", "from": {"topic": topic, "key": "string", "value": "string"}}},
        application=prefix,
    )
    changelog = program.changelog("v")
    cluster.create(topic, PARTITIONS)
    times = [START + at * 1_000 - (at % 7) * 2_600 for at in range(300)]  # some late, by more than the history, or by less
    made = [
        Record(b"key-%d" % (at * 5 % 17), None if at % 9 == 8 else b"%d" % at, time, (), at % PARTITIONS) for at, time in enumerate(times)
    ]
    cluster.produce(topic, made[:200])
    run_to_the_end(cluster.servers, program, tmp_path)
    file = tmp_path / "state.yaml"
    file.write_text(json.dumps(program.state_file()), encoding="utf-8")
    common = (str(file), "-B", cluster.servers)
    run_kops("state", "verify", *common).ok()
    right, settings = observable(cluster.read(changelog)), cluster.config(changelog)
    assert settings["min.compaction.lag.ms"] == str(HISTORY_MS + 86_400_000)
    cluster.produce(changelog, [Record(b"key-0", b"never", times[199], (), 0)])
    doubtful = "--accept-doubtful"  # records came late, and nothing that survived shows what became of them
    damaged = (*common, "--damaged", "v", doubtful)
    refused = run_kops("state", "rebuild", *damaged, "--yes")
    assert refused.code == 5
    assert "--write replace" in refused.err
    cluster.recreate(changelog, PARTITIONS - 1)
    cluster.produce(changelog, [Record(b"key-0", b"never", times[199], (), 0)])
    refused = run_kops("state", "rebuild", *damaged, "--yes")
    assert refused.code == 5
    assert "--write replace" in refused.err
    done = run_kops("state", "rebuild", *damaged, "--write", "replace", "--confirm", changelog).ok()
    assert f"STATE_DIR/{prefix}" in done.err
    assert (observable(cluster.read(changelog)), cluster.config(changelog)) == (right, settings)
    assert cluster.topics(changelog)[changelog] == PARTITIONS
    again = run_kops("state", "rebuild", *common, doubtful, "--write", "replace", "--confirm", changelog).ok()
    assert "nothing to do" in again.err
    run_kops("undo", "last", "-B", cluster.servers, "--confirm", prefix).ok()
    assert [record.value for record in cluster.read(changelog)] == [b"never"]
    assert cluster.topics(changelog)[changelog] == PARTITIONS - 1
    run_kops("undo", "last", "-B", cluster.servers, "--confirm", prefix).ok()
    assert (observable(cluster.read(changelog)), cluster.config(changelog)) == (right, settings)
    snapshot = str(tmp_path / "snapshot")
    run_kops("state", "snapshot", str(file), "--to", snapshot, "-B", cluster.servers).ok()
    cluster.delete(changelog)
    run_kops("state", "restore", snapshot, "--yes", "-B", cluster.servers).ok()
    assert (observable(cluster.read(changelog)), cluster.config(changelog)) == (right, settings)
    assert "nothing to do" in run_kops("state", "restore", snapshot, "--yes", "-B", cluster.servers).ok().err
    shutil.rmtree(tmp_path / "state")
    cluster.produce(topic, made[200:])
    run_to_the_end(cluster.servers, program, tmp_path)
    run_kops("state", "verify", *common).ok()


def test_a_table_whose_topic_is_its_changelog_is_explained_and_never_written(cluster, prefix, run_kops, tmp_path):
    topic = f"{prefix}-in"
    program = TableProgram(
        ({"name": "t", "topic": topic, "key": "string", "value": "string"},),
        {"t": {"from": {"topic": topic, "key": "string", "value": "string"}}},
        application=prefix,
        config=(("topology.optimization", "all"),),
    )
    cluster.create(topic, PARTITIONS, {"cleanup.policy": "compact"})
    made = [Record(b"key-%d" % (at % 7), b"%d" % at, START + at, (("h", b"1"),), at % PARTITIONS) for at in range(60)]
    cluster.produce(topic, made)
    run_to_the_end(cluster.servers, program, tmp_path)
    assert program.changelog("t") not in cluster.topics(prefix)
    cluster.produce(topic, [Record(b"later", b"1", START, (), 0)])
    file = tmp_path / "state.yaml"
    body = program.state_file()
    body["streams"]["topology_optimization"] = "all"
    file.write_text(json.dumps(body), encoding="utf-8")
    common = (str(file), "-B", cluster.servers)
    verified = run_kops("state", "verify", *common, "-o", "json").ok()
    assert (verified.json[0]["verdict"], verified.json[0]["keys"]) == ("proven", 7 * PARTITIONS)
    assert f"{topic} itself is its changelog" in verified.err
    for origin in ("changelog", "input"):
        asked = run_kops("state", "query", *common, "--all", "--from", origin, "-o", "json").ok().json
        held = {(row["key"], row["partition"]): row["value"] for row in asked}
        assert held == {(record.key.decode(), record.partition): record.value.decode() for record in made}, origin  # the last of each
    ends = cluster.ends(topic)
    assert "nothing to do" in run_kops("state", "rebuild", *common, "--yes").ok().err
    run_kops("state", "rebuild", *common, "--at", "end", "--yes").ok()
    assert cluster.ends(topic) == ends
    assert cluster.committed(prefix)[topic, 0] == ends[0][1]


def test_a_table_that_its_topic_restores_with_bytes_that_cannot_be_decoded_is_not_equal(cluster, prefix, run_kops, tmp_path):
    """The application skipped them as it read them, holds them once it has restored the table, and ends when it reads them."""
    topic, eight = f"{prefix}-in", (8).to_bytes(8, "big")
    program = TableProgram(
        ({"name": "t", "topic": topic, "key": "string", "value": "long"},),
        {"t": {"from": {"topic": topic, "key": "string", "value": "long"}}},
        application=prefix,
        config=(
            ("topology.optimization", "all"),
            ("default.deserialization.exception.handler", "org.apache.kafka.streams.errors.LogAndContinueExceptionHandler"),
        ),
    )
    cluster.create(topic, 1, {"cleanup.policy": "compact"})
    values = {b"sound": [eight], b"repaired": [b"abc", eight], b"broken": [eight, b"abc"], b"gone": [eight, b"abc", None]}
    made = [Record(key, value, START + at) for key, some in values.items() for at, value in enumerate(some)]
    cluster.produce(topic, made)
    run_to_the_end(cluster.servers, program, tmp_path)
    cluster.produce(topic, [Record(b"sound", (9).to_bytes(8, "big"), START + 9)])  # not read yet
    file = tmp_path / "state.yaml"
    body = program.state_file()
    body["streams"]["topology_optimization"] = "all"
    file.write_text(json.dumps(body), encoding="utf-8")
    common = (str(file), "-B", cluster.servers, "-o", "json")

    asked = run_kops("state", "query", *common, "--all", "--from", "input", "--on-error", "skip").ok()
    held = {row["key"]: (row["value"], row["partition"]) for row in asked.json}
    assert held == {"sound": (8, 0), "repaired": (8, 0), "broken": (8, 0)}

    found = run_kops("state", "verify", *common, "--on-error", "skip")
    assert found.code == 1
    (row,) = found.json
    assert (row["verdict"], checks(row)) == ("doubtful", {"undecodable_keys": "warning"})
    (at,) = (at for at, record in enumerate(made) if (record.key, record.value) == (b"broken", b"abc"))
    assert f"the newest records of 1 keys cannot be decoded ({topic}:0 offset {at})" in summaries(row)
    assert "they do not count" not in found.err

    shutil.rmtree(tmp_path / "state")
    cluster.produce(topic, [Record(b"broken", eight, START + 10)])
    with pytest.raises(AssertionError, match="SerializationException"):
        run_to_the_end(cluster.servers, program, tmp_path)
    repaired = run_kops("state", "verify", *common, "--on-error", "skip", "--at", "end").ok()
    assert repaired.json[0]["verdict"] == "proven"


@pytest.mark.long
@pytest.mark.parametrize("cache", ["0", "1048576"])
def test_tables_whose_stores_keep_no_timestamps_have_those_of_their_records(cluster, prefix, run_kops, tmp_path, cache):
    """A join of them is doubted: after a restart the program no longer knows the time of the other side."""
    topics = {name: f"{prefix}-in-{name}" for name in ("left", "right")}
    form = {"key": "string", "value": "string"}
    program = TableProgram(
        (
            *({"name": name, "topic": topic, **form, "timestamped": False} for name, topic in topics.items()),
            {"name": "both", "join": {"left": "left", "right": "right", "kind": "inner", "as": "string"}},
        ),
        {
            **{name: {"from": {"topic": topic, **form}, "timestamped": False} for name, topic in topics.items()},
            "both": {"from": {"table": "left"}, "join": {"table": "right", "value": "concat(left, '|', right)", "as": "string"}},
        },
        application=prefix,
        config=(("statestore.cache.max.bytes", cache),),
    )
    cluster.create_all(dict.fromkeys(topics.values(), PARTITIONS))
    state_file = tmp_path / "state.yaml"
    state_file.write_text(json.dumps(program.state_file()), encoding="utf-8")
    common = (str(state_file), "-B", cluster.servers)
    for half in range(2):
        for side, topic in enumerate(topics.values()):
            times = [START + half * 40_000 - at % 30 * 2_000 + side for at in range(60)]  # falling
            cluster.produce(
                topic, [Record(b"k%d" % (at % 20), b"%d" % (half * 60 + at), time) for at, time in enumerate(times) if side or not half]
            )
        run_to_the_end(cluster.servers, program, tmp_path)
    held = {store: compacted_view(cluster.read(program.changelog(store))) for store in program.stores}
    found = {row["store"]: row for row in run_kops("state", "verify", *common, "-o", "json").json}
    assert {(found[side]["verdict"], len(findings(found[side]))) for side in topics} == {("proven", 0)}
    assert checks(found["both"])["forgotten_times"] == "note"
    for store in topics:
        cluster.empty(program.changelog(store))
    shutil.rmtree(tmp_path / "state")
    done = run_kops("state", "rebuild", *common, "--yes", "--store", "left", "--store", "right").ok()
    assert "timestamped: false" not in done.out + done.err
    assert {store: compacted_view(cluster.read(program.changelog(store))) for store in topics} == {store: held[store] for store in topics}

"""State from history that Kafka has deleted: an archive first, the topic's tail after it, as the real applications have it.

Two applications, one of streams and windows, one of tables, process the first half of their input, which is archived and then deleted up
to some offset; then the second half. What they have then is what must come back: appended, in recreated changelogs (one of the tables is
versioned), and in those of another application.
"""

import json
import os
import random
import shutil

import pytest
from confluent_kafka import Producer

from support.programs import KeyBy, Program, Record, Several, Where, Window
from support.skipped import LONG
from support.streams import compacted_view
from support.streams_apps import Cluster, run_all_to_the_end
from support.streams_cases import START
from support.table_cases import observable
from support.tables import TableProgram

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

PARTITIONS, HALF, STEP = 3, 210, 100
HISTORY_MS = 10**12
"""The times of these records lie years back: versions are compacted away that are older than a history and a day."""
CONFIG = (
    ("processing.guarantee", "exactly_once_v2"),
    ("windowstore.changelog.additional.retention.ms", str(10**12)),
    ("statestore.cache.max.bytes", "0"),
)
HOPS = Window("window", 500, advance=200, grace=300, retention=10**9)
VISITS = Window("session", 250, grace=100, retention=10**9)
PROGRAMS = (
    Program("count", "long", value="string", store="count"),
    Program("concat_or_delete", "string", value="string", store="words"),
    Program("concat", "string", value="string", store="visits", window=VISITS, where=Where("not_null")),
    Program("count", "long", value="string", store="by-value", key_by=KeyBy(repartition="by-value")),
    *((Program("concat", "string", value="string", store="hops", window=HOPS, where=Where("not_null")),) if os.environ.get(LONG) else ()),
)
JSON = {"key": "string", "value": {"format": "json", "schema": "l int, r int"}}


def records(half: int) -> list[Record]:
    """Return records of every partition in turn, with stragglers, null values and texts that delete."""
    random_ = random.Random(f"archive {half}")
    made = []
    for at in range(half * HALF, half * HALF + HALF):
        back = 0 if at % HALF < PARTITIONS or random_.random() < 0.6 else random_.choice([1, 100, 250, 351, 900])
        value = None if at % 17 == 16 else b"" if at % 13 == 12 else f"{at % 40}é,".encode()
        headers = (("trace", b"x"), ("trace", None)) if at % 5 == 0 else ()
        made.append(Record(b"k%d-%d" % (random_.randrange(4), at % PARTITIONS), value, START + at * STEP - back, headers, at % PARTITIONS))
    return made


def rows(half: int, topic: int) -> list[Record]:
    """Return the rows of a table, deleted now and then."""
    start, name = half * HALF, b"lr"[topic : topic + 1]
    return [
        Record(b"p%d" % (at * (7, 3)[topic] % 30), None if at % 11 == 10 else b'{"%s":%d}' % (name, at), START + 2 * at + topic)
        for at in range(start, start + HALF)
    ]


def produce_in_transactions(servers, topic, made):
    """Write records in three transactions, of which the second is aborted and the third writes what it had again."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic})
    producer.init_transactions()
    middle = len(made) // 2
    for chunk, commits in ((made[:middle], True), (made[middle:], False), (made[middle:], True)):
        producer.begin_transaction()
        for r in chunk:
            producer.produce(topic, r.value, r.key, r.partition, timestamp=r.timestamp, headers=list(r.headers))
        producer.flush()
        producer.commit_transaction() if commits else producer.abort_transaction()
    Cluster(servers).settle(topic)


def joined(application: str) -> TableProgram:
    """Two tables, one of them versioned, and their join, all of them stored."""
    topics = {name: f"{application}-in-{name}" for name in ("left", "right")}
    value = "named_struct('l', left.l, 'r', right.r)"
    versioned = {"right": {"history_ms": HISTORY_MS}}
    return TableProgram(
        (
            *(
                {"name": name, "topic": topic, "key": "string", "value": "json", **versioned.get(name, {})}
                for name, topic in topics.items()
            ),
            {"name": "both", "join": {"left": "left", "right": "right", "kind": "inner", "as": "json"}},
        ),
        {
            "left": {"from": {"topic": topics["left"], **JSON}},
            "right": {"type": "versioned", "history_retention": f"{HISTORY_MS}ms", "from": {"topic": topics["right"], **JSON}},
            "both": {"from": {"table": "left"}, "join": {"table": "right", "value": value, "as": {"format": "json"}}},
        },
        application=application,
        config=CONFIG,
    )


def held(cluster, changelogs):
    """Return what stores hold: of the versioned one every version."""
    read = {store: cluster.read(changelog) for store, changelog in changelogs.items()}
    return {store: observable(found, HISTORY_MS) if store == "right" else compacted_view(found) for store, found in read.items()}


def test_what_is_archived_counts_and_what_is_missing_is_refused(cluster, prefix, run_kops, tmp_path):
    streams, tables = f"{prefix}-streams", joined(f"{prefix}-tables")
    several = Several(
        tuple(Program(**{**vars(each), "application": streams, "topic": f"{streams}-in", "output": f"{streams}-out"}) for each in PROGRAMS),
        CONFIG,
    )
    topic, sides = several.topic, [f"{tables.application}-in-{name}" for name in ("left", "right")]
    cluster.create_all({topic: PARTITIONS, f"{streams}-out": PARTITIONS, **dict.fromkeys(sides, PARTITIONS)}, {"retention.ms": "-1"})
    files = {}
    for name, program in (("streams", several), ("tables", tables)):
        files[name] = tmp_path / f"{name}.yaml"
        files[name].write_text(json.dumps(program.state_file("exactly_once_v2")), encoding="utf-8")
    stores = {each.store: each.changelog for each in several.programs} | {name: tables.changelog(name) for name in tables.stores}

    def kops(*arguments):
        return run_kops(*arguments, "-B", cluster.servers)

    def process(half):
        produce_in_transactions(cluster.servers, topic, records(half))
        cluster.produce_all({side: rows(half, number) for number, side in enumerate(sides)})
        run_all_to_the_end(cluster.servers, [(several, tmp_path / "streams"), (tables, tmp_path / "tables")])

    process(0)
    archives = {each: ("--from-archive", str(tmp_path / each)) for each in (topic, *sides)}
    kops("replay", "archive", topic, "--to", tmp_path / topic, "--range", "..40").ok()
    archived = {each: kops("replay", "archive", each, "--to", tmp_path / each, "-o", "json").ok().json["records"] for each in archives}
    assert archived == dict.fromkeys(archives, HALF)
    ends = {each: {number: high for number, (_, high) in cluster.ends(each).items()} for each in archives}
    process(1)
    for each in archives:
        cluster.trim(each, {0: ends[each][0], 1: ends[each][1] - 9})  # up to where the archive ends, into it, and not at all
    before = held(cluster, stores)
    assert min(map(len, before.values())) > 5
    for changelog in stores.values():
        cluster.empty(changelog)
    for name in files:
        shutil.rmtree(tmp_path / name / "state")

    refused = kops("state", "rebuild", files["streams"], "--yes")
    assert (refused.code, f"{topic}:0 begins at offset {ends[topic][0]}: older records are gone" in refused.err) == (5, True)
    of_tables = archives[sides[0]] + archives[sides[1]]
    doubtful = ("--accept-doubtful",)  # records came late, and nothing survived that would tell what became of them
    done = kops("state", "rebuild", files["streams"], *archives[topic], *doubtful, "--yes", "-o", "json").ok()
    kops("state", "rebuild", files["tables"], *of_tables, *doubtful, "--write", "replace", "--confirm", tables.application).ok()
    assert held(cluster, stores) == before
    other, named = f"{prefix}-other", ("right", "both")
    kops("state", "rebuild", files["tables"], *(f"--store={name}" for name in named), *of_tables, *doubtful, "--into", other, "--yes").ok()
    assert held(cluster, {name: f"{other}-{name}-changelog" for name in named}) == {name: before[name] for name in named}
    share = kops("journal", "show", done.json["journal_id"], "-o", "json").ok().json["plan"]["arguments"]["archives"][0]
    left = sum(high for _, high in cluster.ends(topic).values()) - sum(ends[topic].values())
    assert (share["topic"], share["records"], share["topic_records"]) == (topic, HALF, left)
    assert 0 < share["bytes"] < 100_000
    assert f"{topic}: {HALF} records (about " in done.err

    equal = kops("state", "verify", files["streams"], "--store", "words", "--store", "visits", *archives[topic], "-o", "json").ok()
    assert {row["store"]: row["verdict"] for row in equal.json} == {"words": "computed", "visits": "doubtful"}
    assert kops("state", "diff", files["tables"], "--store", "both", *of_tables, "-o", "json").ok().json == []
    incomplete = kops("state", "verify", files["streams"], "--store", "count", "-o", "json")
    assert (incomplete.code, incomplete.json[0]["verdict"]) == (7, "impossible")
    one = kops("state", "verify", files["tables"], "--store", "left", *of_tables)
    assert (one.code, "of which no store is made" in one.err) == (2, True)
    early = kops("state", "verify", files["streams"], "--store", "count", *archives[topic], "--at", f"@{START + 10 * STEP}")
    assert (early.code, "in the archive only" in early.err) == (5, True)

    cluster.trim(topic, {2: ends[topic][2] + 7})
    gap = kops("state", "verify", files["streams"], *archives[topic])
    assert (gap.code, f"{topic}:2 from offset {ends[topic][2]} to {ends[topic][2] + 7}" in gap.err) == (2, True)
    next((tmp_path / sides[0] / "records").rglob("*.parquet")).unlink()
    damaged = kops("state", "verify", files["tables"], *of_tables)
    assert (damaged.code, "do not hold what the manifest says" in damaged.err) == (5, True)
    cluster.recreate(sides[1])
    another = kops("state", "verify", files["tables"], *archives[sides[1]])
    assert (another.code, "deleted and recreated" in another.err) == (2, True)

"""Joins, grouped tables and filters of tables against what the real Kafka Streams holds, over random inputs.

Where the order in which two topics were read shows only in a timestamp, the row must say so; where it is the order of time, all is equal.
"""

from collections import Counter
from dataclasses import replace

import pytest

from kops.core.murmur2 import partition_for
from support.programs import REDUCERS, Program
from support.streams import compacted_view
from support.table_cases import KEYS, Case, Frames, cases, in_partitions, job, marked
from support.table_programs import (
    BY_TIME,
    HISTORY,
    LEFT,
    RIGHT,
    TEXT,
    foreign,
    from_topic,
    inputs,
    join_program,
    mark_region,
    regions,
    same,
    table,
)
from support.tables import TableProgram, encoded_records, views

pytestmark = [pytest.mark.streams, pytest.mark.spark]

COUNT = 60
OLDER = 30


@pytest.fixture(scope="module")
def computed(spark):
    """Return what kops computes: (case, key) -> (value, timestamp, doubt), for a store."""
    shuffled = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "2")

    def compute(program: TableProgram, store: str, several: list[Case], mark, *, loose=False):
        from kops.spark.stores.jobs import VIEWS
        from kops.spark.stores.streams import merged_view

        wanted = job(program, store, len(several), loose=loose)
        rows = (merged_view if len(wanted.sources) > 1 and not wanted.store.table else VIEWS[wanted.store.type])(
            Frames(spark, in_partitions(several, mark)), wanted
        ).rows.collect()
        grouped_store = wanted.store.key_by is not None
        found = {}
        for row in rows:
            if row.value is not None:
                case = int(bytes(row.key).split(b":")[0]) if grouped_store else row.partition
                assert (case, bytes(row.key)) not in found
                found[case, bytes(row.key)] = bytes(row.value), row.timestamp, row.doubt
        return found

    yield compute
    spark.conf.set("spark.sql.shuffle.partitions", shuffled)


def expected(oracle, program, store, several, mark):
    return {
        (number, key): (entry.value, entry.timestamp)
        for number, case in enumerate(several)
        for key, entry in views(oracle, program, marked(case, mark, number), [store])[store].items()
    }


def without_doubt(found):
    return {at: (value, timestamp) for at, (value, timestamp, _doubt) in found.items()}


@pytest.mark.parametrize("name", BY_TIME)
def test_read_in_the_order_of_time_all_is_equal(oracle, computed, name):
    program, stores, mark = BY_TIME[name]
    several = inputs(program, COUNT)
    for store in stores:
        assert without_doubt(computed(program, store, several, mark)) == expected(oracle, program, store, several, mark), store


@pytest.mark.parametrize("kind", ["inner", "left", "outer"])
def test_read_in_any_order_a_join_differs_only_in_timestamps_that_it_doubts(oracle, computed, kind):
    from kops.spark.staging.difference import SURE, TIMED

    program = join_program(kind)
    several = inputs(program, COUNT, by_time=False)
    found, wanted = computed(program, "j", several, same), expected(oracle, program, "j", several, same)
    assert {at: value for at, (value, _, _) in found.items()} == {at: value for at, (value, _) in wanted.items()}
    differing = {at for at in wanted if found[at][1] != wanted[at][1]}
    assert all(found[at][2] == TIMED for at in differing)
    doubts = Counter(doubt for _, _, doubt in found.values())
    assert set(doubts) <= {SURE, TIMED}
    assert bool(differing) == (kind != "inner")
    assert doubts[SURE] > doubts[TIMED]


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_read_in_any_order_groups_over_a_join_have_the_same_members(oracle, computed, kind):
    program = regions(kind)
    several = inputs(program, COUNT, by_time=False)
    zero = bytes(8)
    found, wanted = (
        {at: entry[0] for at, entry in held.items() if entry[0] != zero}
        for held in (
            computed(program, "g", several, mark_region, loose=True),
            expected(oracle, program, "g", several, mark_region),
        )
    )
    assert found == wanted
    assert found


def test_the_versions_of_a_store_are_those_that_can_be_asked_for(oracle, computed):
    """Asked of the store itself, at every time that it answers for; what its changelog has besides does not count."""
    program = TableProgram(
        ({**table("v", "left", "string"), "history_ms": HISTORY},),
        {"v": {"type": "versioned", "history_retention": f"{HISTORY}ms", **from_topic("left", TEXT)}},
    )
    several = cases({"left": LEFT}, COUNT)
    found: dict[int, dict[bytes, dict[int, bytes | None]]] = {}
    for (case, at), (value, timestamp, _doubt) in computed(program, "v", several, same).items():
        assert at[-8:] == timestamp.to_bytes(8, "big")
        found.setdefault(case, {}).setdefault(at[:-8], {})[timestamp] = value[1:] if value[:1] == b"\x01" else None
    for number, case in enumerate(several):
        newest = max((record.timestamp for _, record in case.piped), default=0)
        asked = [[key.decode(), time] for key in KEYS for time in range(newest - HISTORY, newest + 2)]
        answers = oracle.ask({**program.as_json(), "ask": asked}, encoded_records(case.piped))["asked"] if case.piped else ()
        for (key, time), answer in zip(asked, answers, strict=False):
            versions = {at: value for at, value in found.get(number, {}).get(key.encode(), {}).items() if at <= time}
            latest = max(versions, default=None)
            value = None if latest is None else versions[latest]
            assert (answer.value, answer.timestamp if value is not None else 0) == (value, latest if value is not None else 0)


@pytest.mark.parametrize(
    ("kind", "aggregate"), [("plain_last", {}), ("plain_concat", {"aggregate": {"reducer": REDUCERS["concat"], "as": "string"}})]
)
def test_a_plain_store_has_the_timestamp_of_the_last_record(oracle, computed, kind, aggregate):
    program = TableProgram((), {"p": {"type": "plain", **from_topic("left", TEXT), **aggregate}})
    spec = Program(kind, "string", value="string", topic="left", store="p").as_json()
    several = cases({"left": LEFT}, COUNT)
    wanted = {
        (number, key): (entry.value, entry.timestamp)
        for number, case in enumerate(several)
        for key, entry in compacted_view(oracle.ask(spec, encoded_records(case.piped)).get("app-p-changelog", ()), partitions=False).items()
    }
    assert without_doubt(computed(program, "p", several, same)) == wanted


@pytest.mark.parametrize("kind", ["count", "max", "last"])
def test_several_topics_of_one_stream(oracle, computed, kind):
    """The merged stream counts and finds extremes whatever the order; the last value says where it does not know."""
    from kops.spark.staging.difference import MIXED

    aggregate = {"count": True} if kind == "count" else {kind: "value", "as": "string"}
    program = TableProgram((), {"m": {"from": {"topics": ["left", "right"], **TEXT}, "aggregate": aggregate}})
    spec = Program(kind, "long" if kind == "count" else "string", value="string", topic="left", store="m").as_json()
    spec["from"]["topics"] = ["left", "right"]
    several = cases({"left": LEFT, "right": RIGHT}, COUNT, by_time=False)
    wanted = {
        (number, key): (entry.value, entry.timestamp)
        for number, case in enumerate(several)
        for key, entry in compacted_view(oracle.ask(spec, encoded_records(case.piped)).get("app-m-changelog", ()), partitions=False).items()
    }
    found = computed(program, "m", several, same)
    assert {at: timestamp for at, (_, timestamp, _) in found.items()} == {at: timestamp for at, (_, timestamp) in wanted.items()}
    assert all(found[at][:2] == wanted[at] or found[at][2] == MIXED for at in wanted)
    assert any(doubt == MIXED for _, _, doubt in found.values()) == (kind == "last")


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_a_foreign_key_join_has_the_same_values_and_says_which_timestamps_are_sure(oracle, spark, computed, kind):
    from kops.spark.staging.difference import SURE
    from kops.spark.stores.jobs import VIEWS

    program = foreign(kind)
    several = inputs(program, COUNT, by_time=False)

    def own(topic: str, record, number: int):
        """Give the right side's keys, and what the left side says of them, to one case alone."""
        if topic == "right":
            return replace(record, key=b"%d:" % number + record.key)
        return replace(record, value=record.value and record.value.replace(b'"f":"', b'"f":"%d:' % number))

    rows = {topic: [] for topic in ("left", "right")}
    wanted, offsets = {}, Counter()
    for number, case in enumerate(several):
        piped = [(topic, own(topic, record, number)) for topic, record in case.piped]
        for topic, record in piped:
            at = number if topic == "left" else partition_for(record.key, len(several))
            offsets[topic, at] += 1
            rows[topic].append((bytearray(record.key), record.value and bytearray(record.value), at, offsets[topic, at], record.timestamp))
        held = views(oracle, program, piped, ["j"])["j"]
        wanted |= {(number, key): (entry.value, entry.timestamp) for key, entry in held.items()}
    view = VIEWS["table"](Frames(spark, rows), job(program, "j", len(several)))
    held = [row for row in view.rows.collect() if row.value is not None]
    found = {(row.partition, bytes(row.key)): (bytes(row.value), row.timestamp, row.doubt) for row in held}
    assert {at: value for at, (value, _, _) in found.items()} == {at: value for at, (value, _) in wanted.items()}
    assert all(found[at][1] == wanted[at][1] for at in found if found[at][2] == SURE)
    assert {doubt == SURE for _, _, doubt in found.values()} == {True, False}


@pytest.mark.parametrize("name", [*BY_TIME, "foreign-inner", "foreign-left"])
def test_kafka_streams_4_1_holds_the_same(oracle, older_oracle, name):
    """All cases in one task, in any order: each has keys of its own, but those that others refer to, and later times."""
    program, _, mark = BY_TIME.get(name) or (foreign(name.removeprefix("foreign-")), (), same)
    refers = name not in BY_TIME
    several = inputs(program, COUNT, by_time=False)
    piped = [
        (topic, replace(record, key=own + record.key, timestamp=record.timestamp + 1_000 * number))
        for number, case in enumerate(several[:OLDER])
        for topic, record in marked(case, mark, number)
        for own in [b"" if refers and topic == "right" else b"%d:" % number]
    ]
    wanted = views(oracle, program, piped, program.stores)
    assert views(older_oracle, program, piped, program.stores) == wanted
    assert all(wanted.values())

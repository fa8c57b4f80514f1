"""Where the order of records is not known, or not all of them are there: what is reported of windows then is true."""

import random
import struct
from dataclasses import replace

import pytest

from kops.spark.windows.stream_time import read_in_order, stream_times_of_pieces, with_stream_time, with_task
from support.programs import KeyBy, Program, Record, Window
from support.windows_cases import Setup, expected
from support.windows_in_spark import Topic, computed, job_of

pytestmark = [pytest.mark.spark, pytest.mark.streams]

ORDERS = 6
BY_VALUE = KeyBy()


def sources(seed: int, spread: int) -> list[list[Record]]:
    """Return records of two partitions whose values are keys that both have."""
    random_ = random.Random(seed)
    made = []
    for _ in range(2):
        latest, records = 100, []
        for _ in range(12):
            latest += random_.randrange(spread)
            records.append(Record(b"k", random_.choice([b"a", b"b"]), latest - random_.choice([0, 0, random_.randrange(spread)])))
        made.append(records)
    return made


def interleaved(random_: random.Random, partitions: list[list[Record]]) -> list[Record]:
    """Return the records in one of the orders that a repartition topic may have: each partition's own is kept."""
    turns = [at for at, records in enumerate(partitions) for _ in records]
    random_.shuffle(turns)
    feeds = [iter(records) for records in partitions]
    return [next(feeds[at]) for at in turns]


def views_of(oracle, program: Program, orders: list[list[Record]]) -> list[dict[bytes, tuple[bytes, int]]]:
    programs = []
    for at in range(len(orders)):
        by = replace(BY_VALUE, repartition=f"by-{at}")
        programs.append(replace(program, topic=f"in-{at}", store=f"store-{at}", key_by=by))
    return [expected(Setup("", program), written, held) for written, held in oracle.several(programs, orders)]


@pytest.mark.parametrize("kind", ["window", "sliding-window", "session"])
@pytest.mark.parametrize("grace", [0, 10, 10_000])
def test_after_a_new_key_a_result_is_only_called_sure_when_every_order_gives_it(spark, oracle, kind, grace):
    program = Program("count", "long", value="string", window=Window(kind, 10, grace=grace), key_by=BY_VALUE)
    partitions = sources(grace, 6)
    views = views_of(oracle, program, [interleaved(random.Random(at), partitions) for at in range(ORDERS)])
    found, seen = computed(program, Topic(spark, partitions), 1)
    values = [{key: value for key, (value, _timestamp) in view.items()} for view in views]
    if any(view != values[0] for view in values):
        assert seen.noted["boundary"] > 0
    if not seen.noted["boundary"]:
        mine = {key: value for key, (value, _timestamp) in found[0].items()}
        assert all(view == mine for view in values)
        assert seen.noted["timed"] > 0 or all(view == found[0] for view in views)
    assert bool(seen.noted["boundary"]) == (grace < 10_000), "a case that proves nothing"


@pytest.mark.parametrize("kind", ["window", "sliding-window", "session"])
def test_after_a_new_key_the_order_of_one_partition_is_known(spark, oracle, kind):
    program = Program("concat", "string", value="string", window=Window(kind, 10, grace=3), key_by=BY_VALUE)
    records = [*sources(5, 9)[0], Record(b"k", b"a", 1)]
    (wanted,) = views_of(oracle, program, [records])
    found, seen = computed(program, Topic(spark, [records]), 1)
    assert found[0] == wanted
    assert (seen.noted["boundary"], seen.mixed, seen.noted["timed"]) == (0, 0, 0)
    assert seen.noted["late"] > 0


def test_new_keys_with_their_windows_go_where_the_key_alone_would(spark):
    program = Program("count", "long", value="string", window=Window("window", 10), key_by=BY_VALUE)
    names = ["21", "foobar", "a-little-bit-long-string", "", "x"]
    found, _ = computed(program, Topic(spark, [[Record(b"k", name.encode(), 100 + at) for at, name in enumerate(names)]]), 5)
    from kops.core.murmur2 import partition_for

    assert {key[:-12]: partition for partition, rows in found.items() for key in rows} == {
        name.encode(): partition_for(name.encode(), 5) for name in names
    }


def test_stream_time_is_the_same_when_partitions_are_read_in_pieces(spark):
    random_ = random.Random(3)
    partitions = [[Record(b"k", b"v", random_.randrange(1000)) for _ in range(count)] for count in (50, 0, 7, 21)]
    topic = Topic(spark, partitions, first=5)
    job = job_of(Program("count", "long", value="string", window=Window("window", 10)), topic, 4)
    kept = topic.frame.selectExpr("partition", "offset", "timestamp_ms", "key", "1 as v")
    for piece in (4, 7, 1000):
        pieces = read_in_order(topic, job.source, piece).selectExpr("partition", "offset", "timestamp_ms", "key", "1 as v")
        rows = with_stream_time(with_task(pieces, None), stream_times_of_pieces(kept, piece)).collect()
        assert len(rows) == 78
        for row in rows:
            before = [record.timestamp for record in partitions[row.partition][: row.offset - 5]]
            assert row.before == max(before, default=-1)


def test_windows_of_records_that_are_gone_are_told_from_those_that_are_whole(spark):
    program = Program("count", "long", value="string", window=Window("window", 10, retention=50))
    old, new = [Record(b"k", b"v", 100)], [Record(b"k", b"v", at) for at in (130, 155, 170)]
    assert computed(program, Topic(spark, [old + new]), 1)[1].noted["trimmed"] == 0
    whole = computed(program, Topic(spark, [old + new], first=7), 1)[1].noted
    assert (whole["trimmed"], whole["uncovered"]) == (1, 0)
    lost = computed(program, Topic(spark, [new], first=7), 1)[1].noted
    assert (lost["trimmed"], lost["uncovered"]) == (1, 1)


def test_windows_that_a_later_one_in_the_changelog_would_expire_are_counted(spark):
    program = Program("count", "long", value="string", window=Window("window", 10, retention=50))
    topic = Topic(spark, [[Record(b"k", b"v", at) for at in (100, 130, 140)]])

    def changelog(start):
        key = b"k" + struct.pack(">qi", start, 0)
        rows = [(0, bytearray(key), bytearray(b"x"), 1, False)]
        return spark.createDataFrame(rows, "partition int, key binary, value binary, timestamp bigint, odd boolean")

    assert computed(program, topic, 1, changelog=changelog(140))[1].noted["hidden"] == 0
    assert computed(program, topic, 1, changelog=changelog(150))[1].noted["hidden"] == 1
    assert computed(program, topic, 1, changelog=changelog(900))[1].noted["hidden"] == 3


@pytest.mark.parametrize(("kind", "counts"), [("sum", 1), ("count", 0)])
def test_null_values_are_counted_where_nobody_knows_what_becomes_of_them(spark, kind, counts):
    program = Program(kind, "long", value="long", window=Window("session", 10))
    records = [Record(b"k", struct.pack(">q", 4), 5), Record(b"k", None, 6)]
    found, seen = computed(program, Topic(spark, [records]), 1)
    assert seen.noted["null_values"] == counts
    ((value, _timestamp),) = found[0].values()
    assert value == struct.pack(">q", 4 if kind == "sum" else 2)

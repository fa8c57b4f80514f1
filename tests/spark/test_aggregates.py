"""Aggregations where the order, the width or the partition matters. What Kafka Streams itself gives is in tests/streams."""

import random
import struct

import pytest

from kops.core.errors import ConfigError
from kops.core.murmur2 import partition_for
from kops.spark.staging.difference import MIXED, SURE
from kops.spark.stores.aggregates import aggregated
from kops.spark.stores.partitions import with_partitions
from kops.spark.stores.prepare import prepare

pytestmark = pytest.mark.spark


@pytest.fixture
def held(records_of):
    """Return what a store holds: (partition, key) -> (value, timestamp, doubt)."""

    def compute(state, rows, *, partitions=None):
        file, store = state
        prepared = prepare(records_of(rows), file, store)
        frame = aggregated(prepared, prepared.kept(), store)
        if partitions:
            frame = with_partitions(frame, partitions)
        return {(row.partition, bytes(row.key)): (row.value and bytes(row.value), row.timestamp, row.doubt) for row in frame.collect()}

    return compute


def doubles(seed, keys=5, count=600):
    rng = random.Random(seed)
    values = [0.1, 0.2, 0.3, 1e16, -1e16, 1e-9, 7.0]
    return [
        (rng.randrange(2), b"k%d" % rng.randrange(keys), struct.pack(">d", rng.choice(values)), 1000 + rng.randrange(99))
        for _ in range(count)
    ]


@pytest.mark.parametrize("name", ["double", "float"])
def test_floating_sums_are_added_in_the_order_of_offsets(held, store_of, name):
    import numpy

    kind, code = (numpy.float64, ">d") if name == "double" else (numpy.float32, ">f")
    rows = doubles(3)
    sums, times = {}, {}
    for partition, key, value, timestamp in rows:
        place = (partition, key)
        sums[place] = sums.get(place, kind(0)) + kind(struct.unpack(">d", value)[0])
        times[place] = max(times.get(place, 0), timestamp)
    found = held(store_of({"sum": "cast(value as float)" if name == "float" else "value", "as": name}, value="double"), rows)
    assert found == {place: (struct.pack(code, total), times[place], SURE) for place, total in sums.items()}


def test_the_order_is_only_unknown_where_partitions_meet_and_additions_round(held, store_of):
    def row(partition, key, value):
        return (partition, b"x", b'{"item":"%s","price":%s}' % (key, value), 5)

    rows = [
        row(0, b"one", b"19.99"),
        row(0, b"one", b"0.01"),
        row(0, b"two", b"19.99"),
        row(1, b"two", b"0.1"),
        row(0, b"whole", b"25.5"),
        row(1, b"whole", b"2000"),
    ]
    state = store_of(
        {"sum": "value.price", "as": "double"}, value={"format": "json", "schema": "item string, price double"}, key_by="value.item"
    )
    found = held(state, rows, partitions=3)
    doubts = {key: doubt for (_, key), (_, _, doubt) in found.items()}
    assert doubts == {b"one": SURE, b"two": MIXED, b"whole": SURE}
    assert all(partition == partition_for(key, 3) for partition, key in found)


def test_sums_wrap_around_in_their_width(held, store_of):
    rows = [(0, b"k", struct.pack(">q", 2**62), 1) for _ in range(3)]
    assert held(store_of({"sum": "value", "as": "long"}), rows)[(0, b"k")][0] == struct.pack(">q", -(2**62))
    small = [(0, b"k", struct.pack(">i", 2**31 - 1), 1), (0, b"k", struct.pack(">i", 2), 1)]
    assert held(store_of({"sum": "value", "as": "int"}, value="int"), small)[(0, b"k")][0] == struct.pack(">i", -(2**31) + 1)


@pytest.mark.parametrize(("kind", "wanted"), [("last", b"c"), ("first", b"b")])
def test_last_and_first_go_by_offset_and_the_time_is_the_greatest(held, store_of, kind, wanted):
    rows = [(0, b"k", b"b", 30), (0, b"k", b"a", 99), (0, b"k", b"c", 10), (1, b"k", b"z", 1)]
    found = held(store_of({kind: "value"}, value="string"), rows)
    assert found == {(0, b"k"): (wanted, 99, SURE), (1, b"k"): (b"z", 1, SURE)}


def test_a_table_keeps_the_last_record_with_its_own_time_and_knows_what_was_deleted(held):
    from kops.core.statefile import parse_state_file

    file = parse_state_file("f", {"application": "a", "stores": {"s": {"from": {"topic": "t", "key": "string", "value": "string"}}}})
    rows = [(0, b"k", b"new", 50), (0, b"k", b"newer", 40), (0, b"gone", b"x", 1), (0, b"gone", None, 9), (0, None, b"x", 1)]
    assert held((file, file.stores[0]), rows) == {(0, b"k"): (b"newer", 40, SURE), (0, b"gone"): (None, 9, SURE)}


def test_records_that_do_not_count_are_counted(records_of, store_of):
    from kops.spark.job import FATES

    rows = [
        (0, b"k", b"\x00" * 8, 1),
        (0, b"k", b"\x00", 1),
        (0, None, b"\x00" * 8, 1),
        (0, b"k", None, 1),
        (0, b"\xff", b"\x00" * 8, 1),
        (0, b"k", b"\x00" * 7 + b"\x09", 1),
    ]
    file, store = store_of({"sum": "value", "as": "long"}, where="value is null or value < 5")
    prepared = prepare(records_of(rows), file, store)
    fates = {FATES.get(row.fate, "kept"): row["count"] for row in prepared.judged.groupBy("fate").count().collect()}
    assert fates == {"kept": 1, "undecodable": 2, "null_key": 1, "null_value": 1, "filtered": 1}
    assert [(row.offset, row.part) for row in prepared.undecodable.orderBy("offset").collect()] == [(1, "value"), (4, "key")]


def test_each_member_of_a_value_is_a_record_in_its_place(records_of, store_of, held):
    rows = [(0, b"k", b"a b", 1), (0, b"k", b"b  a", 3), (1, b"k", b"", 2), (0, b"k", None, 4), (0, b"k", b"a\xff", 5)]
    words = "filter(split(value, ' '), word -> word != '')"
    counts = store_of({"count": True}, value="string", explode=words, key_by="value")
    prepared = prepare(records_of(rows), *counts)
    assert prepared.judged.selectExpr(f"{prepared.records} as records").first().records == len(rows)
    assert [(row.offset, row.part) for row in prepared.undecodable.collect()] == [(3, "value")]
    two = struct.pack(">q", 2)
    assert held(counts, rows) == {(None, b"a"): (two, 3, SURE), (None, b"b"): (two, 3, SURE)}
    assert held(store_of({"last": "value", "as": "string"}, value="string", explode=words), rows) == {(0, b"k"): (b"a", 3, SURE)}
    numbers = [(0, b"k", b"0.1 1e16 -1e16 0.2", 1)]
    sums = store_of({"sum": "cast(value as double)", "as": "double"}, value="string", explode="split(value, ' ')")
    assert held(sums, numbers) == {(0, b"k"): (struct.pack(">d", 0.1 + 1e16 - 1e16 + 0.2), 1, SURE)}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"where": "value"}, ["stores.s.where", "condition"]),
        ({"where": "vlaue > 1"}, ["stores.s.where", "vlaue"]),
        ({"where": "not sql at all"}, ["stores.s.where"]),
        ({"key_by": "value"}, ["stores.s.key_by", "bigint"]),
        ({"explode": "value"}, ["stores.s.explode", "bigint", "array"]),
        ({"aggregate": {"sum": "key", "as": "long"}}, ["stores.s.aggregate.sum", "string"]),
    ],
)
def test_expressions_that_cannot_be(records_of, store_of, fields, said):
    file, store = store_of(fields.pop("aggregate", {"sum": "value", "as": "long"}), **fields)
    with pytest.raises(ConfigError) as error:
        prepare(records_of([(0, b"k", b"\x00" * 8, 1)]), file, store)
    for words in said:
        assert words in error.value.message

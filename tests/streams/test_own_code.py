"""The runner of an application's own code, beside TopologyTestDriver and by itself, with every line of versions.

Both run the program on the library of the version; the driver without caches, in one task and with a commit after each record,
so the runner gets the same settings where the two are compared. What the driver cannot do stands by itself: partitions, several
sub-topologies, offsets, caches, what is thrown.
"""

import base64
import struct
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder

from kops.core.murmur2 import partition_for
from kops.formats import runner_frames as frames
from kops.formats.streams import offset_metadata
from kops.formats.streams.offset_metadata import OffsetMetadata
from kops.gateways.machine.jars import class_path
from support.own_code import BETWEEN, Failed, Host, Row, batch_of, jars_of_streams, runner_classes
from support.own_tasks import INPUTS, NO_CACHE, ONE_EACH, by_topic, changes, last, records, shuffled
from support.patience import HANG_SECONDS
from support.streams import compiled, java_with

LONG = ("2.8.2", "3.3.2", "3.6.2", "3.9.1", "4.1.1", "4.3.1", *BETWEEN)
VERSIONS = (*(pytest.param(version, marks=pytest.mark.long) for version in LONG), "4.4.0")
LOADED_BESIDE = Path(__file__).parent / "own_code_loader" / "LoadedBeside.java"
LETTERS = "app-by-letter-repartition"
HEADERS = {"dsl.store.format": "headers"}
"""Stores that keep the headers of records (KIP-1271)."""
TRANSACTIONS = {"enable.transactional.statestores": "true"}
"""Stores that keep what is put apart until the commit (KIP-892)."""


@pytest.fixture(scope="module", params=VERSIONS)
def host(request):
    with Host(request.param) as started:
        yield started


@pytest.mark.parametrize("memory", ["true", "false"])
@pytest.mark.parametrize("program", INPUTS)
def test_a_task_writes_what_the_driver_says(host, program, memory):
    given = shuffled(*(records(topic, 120) for topic in INPUTS[program]))
    expected = by_topic(host.driven(program, given, NO_CACHE))
    host.start(program, ONE_EACH, NO_CACHE, memory=memory)
    written, facts = host.task(0, 0, given, commit_records="1", keep="all")
    assert by_topic(written) == expected
    assert any(topic.endswith("-changelog") for topic in expected)
    assert facts["processed"] == facts["records"] == str(len(given))
    assert facts["wall_clock_schedules"] == facts["stream_time_schedules"] == ("1" if program == "processor" else "0")
    assert facts["without_key"] == facts["unknown_partitions"] == ""


@pytest.mark.parametrize("program", sorted(INPUTS.keys() - {"processor", "outer_join", "stream_join"}))
def test_a_program_that_keeps_all_in_its_stores_may_begin_afresh_after_each_record(host, program):
    """Its stores are then what their changelogs restore, and hold the same.

    Left out are punctuators on stream time, which begin to count afresh, and stores of joined streams, whose keys have a number that does.
    """
    given = shuffled(*(records(topic, 60) for topic in INPUTS[program]))
    found = []
    for restarts in (False, True):
        host.start(program, ONE_EACH, NO_CACHE, restarts="true")
        written, facts = host.task(0, 0, given, 1, changelogs="last", restarts=restarts)
        assert facts["processed"] == str(len(given))
        found.append({(row.topic, row.key): row.value for row in written if row.topic.endswith("-changelog")})
    assert found[0]
    assert found[1] == found[0]


@pytest.mark.parametrize("program", ["versioned", "optimized", "global"])
def test_versions_tables_of_their_own_topic_and_global_tables_are_there_after_a_restart(host, program):
    """What they pass on to a topic of others shows it."""
    if program == "versioned" and host.version < "3.5":
        pytest.skip("from Kafka Streams 3.5 on")
    given, names = records("in", 60), [replace(row, key=row.value, value=b"name " + row.value) for row in records("names", 60)]
    found = []
    for restarts in (False, True):
        host.start(program, {**ONE_EACH, "names": 1}, NO_CACHE)
        if program == "global":
            host.read_global(names)
        versions = {"versions": "app-versions-changelog"} if program == "versioned" else {}
        written, _ = host.task(0, 0, given, 5, changelogs="last", keep="all", restarts=restarts, **versions)
        found.append(
            {
                topic: sorted((row.key, row.value or b"") for row in written if row.topic == topic)
                for topic in {row.topic for row in written}
            }
        )
    assert found[0]
    assert found[1] == found[0]


def test_an_outer_join_that_need_not_wait_for_the_clock(host):
    """It stands still here, and the library sends results that found no match once a second."""
    if host.version < "3.1":
        pytest.skip("from Kafka Streams 3.1 on results wait")
    alone = [replace(row, key=row.key + b"-alone") for row in records("other", 120)]
    given = shuffled(records("in", 120), alone)
    at_once = {**NO_CACHE, "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": "0"}
    expected = by_topic(host.driven("outer_join", given, at_once))
    written = []
    for config in (NO_CACHE, at_once):
        host.start("outer_join", ONE_EACH, config)
        written.append(by_topic(host.task(0, 0, given, commit_records="1", keep="all")[0]))
    assert written[1] == expected
    assert len(written[0]["out"]) < len(expected["out"])


def test_punctuators_on_stream_time_are_called_as_often_as_wanted(host):
    """Between which records they are is up to a thread of Kafka Streams."""
    given = records("in", 60)
    host.start("processor", ONE_EACH, NO_CACHE)
    each, often, once = (host.task(0, 0, given, punctuate_records=count)[0] for count in ("1", "7", "1000"))
    deleted = [sum(row.value is None for row in rows) for rows in (each, often, once)]
    assert deleted[0] > deleted[1] > deleted[2] > 0


def test_a_store_in_memory_is_not_told_from_one_in_rocksdb(host):
    given = shuffled(records("in", 60), records("other", 60))
    rows = []
    for memory in ("true", "false"):
        host.start("iterates", ONE_EACH, NO_CACHE)
        rows.append(host.task(0, 0, given, memory=memory)[0])
    assert rows[0] == rows[1]
    assert len({row.value for row in rows[0] if row.key == b"seen"}) > 10


PASSES = {"default.production.exception.handler": "com.acme.Passing"}


def sizes(row):
    """Return the most that a record may take, and what it takes in a batch of its own, without compression (kafka-python's encoder)."""
    key, headers = row.value[:1], [(name, value) for name, value in row.headers]
    batch = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 20)
    batch.append(0, row.timestamp, key, row.value, headers)
    return DefaultRecordBatchBuilder.estimate_size_in_bytes(key, row.value, headers), len(batch.build())


@pytest.mark.parametrize("value", [b"a", b"a" * 62, b"a" * 63, b"a" * 9000])
@pytest.mark.parametrize("headers", [(), (("h\xe9", b"1"), ("none", None))])
def test_a_record_that_is_too_large_is_refused_to_the_byte(host, value, headers):
    """By the producer's own limit, or by that of the topic, where compression counts."""
    row = Row("in", 0, 0, 1_000_000, b"k", value, headers)
    most, alone = sizes(row)
    for limits, bounds, refused in (
        ({"producer.max.request.size": str(most)}, {}, False),
        ({"producer.max.request.size": str(most - 1)}, {}, True),
        ({"producer.buffer.memory": str(most - 1)}, {}, True),
        ({}, {f"limit.{LETTERS}": str(alone)}, False),
        ({}, {f"limit.{LETTERS}": str(alone - 1)}, True),
        *(({"producer.compression.type": codec}, {f"limit.{LETTERS}": "500"}, False) for codec in ("gzip", "zstd", "lz4")),
    ):
        host.start("repartition", {**ONE_EACH, LETTERS: 1}, {**NO_CACHE, **PASSES, **limits}, **bounds)
        written, facts = host.task(0, 0, [row])
        assert ([each.topic for each in written], facts.get(f"refused.{LETTERS}")) == (([], "1") if refused else ([LETTERS], None)), limits
        assert facts["skipped"] == "0"


def test_what_is_refused_ends_a_program_that_does_not_pass_over_it(host):
    host.start("repartition", {**ONE_EACH, LETTERS: 1}, {**NO_CACHE, "producer.max.request.size": "1000"})
    with pytest.raises(Failed) as failed:
        host.task(0, 0, [Row("in", 0, 0, 1_000_000, b"k", b"a" * 2000)])
    assert failed.value.reported["by"] == "program"
    assert failed.value.reported["class"] == "org.apache.kafka.common.errors.RecordTooLargeException"


def test_a_versioned_store(host):
    if host.version < "3.5":
        pytest.skip("from Kafka Streams 3.5 on")
    given = records("in", 100)
    expected = by_topic(host.driven("versioned", given, NO_CACHE))
    host.start("versioned", ONE_EACH, NO_CACHE)
    assert by_topic(host.task(0, 0, given, commit_records="1", keep="all")[0]) == expected
    assert len(expected["app-versions-changelog"]) == 100


@pytest.mark.parametrize("more", [{}, HEADERS, TRANSACTIONS], ids=["plain", "headers", "transactions"])
@pytest.mark.parametrize("memory", ["true", "false"])
@pytest.mark.parametrize("program", ["count", "sum", "window", "session"])
def test_a_task_goes_on_from_what_its_changelogs_hold(host, program, memory, more):
    """As an application does that was stopped, lost its local state, and started again; without late records, since it forgets the time."""
    skip_before(host, more)
    given = sorted(shuffled(*(records(topic, 120) for topic in INPUTS[program])), key=lambda row: row.timestamp)
    host.start(program, ONE_EACH, NO_CACHE | more, memory=memory)
    whole = last(changes(host.task(0, 0, given)[0]))
    before = list({(row.topic, row.key): row for row in changes(host.task(0, 0, given[: len(given) // 2])[0])}.values())
    after, facts = host.task(0, 0, given[len(given) // 2 :], restored=before)
    assert facts["records"] == str(len(given) - len(given) // 2)
    found = last(before) | last(changes(after))
    assert {key: row for key, row in found.items() if row[0] is not None} == {key: row for key, row in whole.items() if row[0] is not None}
    alone = last(changes(host.task(0, 0, given[len(given) // 2 :])[0]))
    assert {**last(before), **alone} != found, "the task did not need what was restored"


def test_a_task_goes_on_at_the_stream_time_that_was_committed(host):
    host.start("count", ONE_EACH, NO_CACHE)
    (row,) = changes(host.task(0, 0, records("in", 1))[0])
    written = offset_metadata.encode(OffsetMetadata(7_000_000, {}))
    if host.version < "3.3":
        written = base64.b64encode(struct.pack(">bq", 1, 7_000_000)).decode()  # StreamTask.encodeTimestamp of then
    time = {"committed_in": "1", "metadata_in": written}
    assert host.task(0, 0, [], restored=[row], **time)[1]["stream_time"] == "7000000"
    assert host.task(0, 0, [], restored=[row])[1]["stream_time"] == "-1"
    with pytest.raises(Failed, match="no store of the task has the changelog"):
        host.task(0, 0, [], restored=[replace(row, topic="app-other-changelog")])


@pytest.mark.parametrize("more", [HEADERS, TRANSACTIONS], ids=["headers", "transactions"])
@pytest.mark.parametrize("memory", ["true", "false"])
@pytest.mark.parametrize("program", ["count", "window", "session", "tables", "iterates"])
def test_stores_of_newer_versions(host, program, memory, more):
    skip_before(host, more)
    config = NO_CACHE | more
    given = shuffled(*(records(topic, 120) for topic in INPUTS.get(program, ["in", "other"])))
    expected = by_topic(host.driven(program, given, config))
    host.start(program, ONE_EACH, config, memory=memory)
    written, _ = host.task(0, 0, given, commit_records="1", keep="all")
    assert by_topic(written) == expected


def skip_before(host, more):
    needed = "4.4" if more == TRANSACTIONS else "4.3" if more else ""
    if host.version < needed:
        pytest.skip(f"from Kafka Streams {needed} on")


def test_a_table_whose_topic_is_its_changelog_writes_none(host):
    host.start("optimized", ONE_EACH, NO_CACHE)
    written, facts = host.task(0, 0, records("in", 30))
    assert (written, facts["dropped.out"]) == ([], "30")


def test_a_pattern_is_of_the_topics_that_there_are(host):
    host.start("pattern", {"in": 2, "in2": 1, "other": 1}, NO_CACHE)
    assert host.hello["subtopology.0.sources"] == "in,in2"
    written, _ = host.task(0, 0, shuffled(records("in", 20), records("in2", 20)))
    assert len(written) == 40
    [row], _ = host.task(0, 1, [Row("in", 1, 0, 0, b"k", b"v")])
    assert row.partition == 1


def test_global_stores_are_read_first(host):
    names, given = records("names", 20), records("in", 60, lambda at: b"k%d" % (at % 6))
    expected = by_topic(host.driven("global", given, NO_CACHE, names))
    host.start("global", {"names": 2, "in": 1}, NO_CACHE)
    host.read_global(names[:7])
    host.read_global(names[7:])
    written, facts = host.task(0, 0, given, commit_records="1")
    assert by_topic(written) == expected
    assert facts["global_records"] == "20"


def test_internal_topics_are_rows_and_others_are_counted(host):
    host.start("count", ONE_EACH, NO_CACHE)
    assert host.hello["kafka"] == host.version
    assert host.hello["subtopology.0.changelogs"] == "app-counts-changelog"
    written, facts = host.task(0, 0, records("in", 50))
    assert {row.topic for row in written} == {"app-counts-changelog"}
    assert [row.offset for row in written] == list(range(50))
    assert facts["dropped.out"] == "50"


@pytest.mark.parametrize("program", ["repartition", "partitioner"])
def test_what_is_repartitioned_goes_to_the_next_sub_topology(host, program):
    given = [records("in", 40, lambda at: b"%c%d" % (b"abcde"[at % 5], at), seed=partition) for partition in range(3)]
    given = [[Row("in", at, *list(vars(row).values())[2:]) for row in rows] for at, rows in enumerate(given)]
    host.start(program, {"in": 3, LETTERS: 3, "out": 3}, NO_CACHE)
    assert host.hello["subtopology.1.repartition"] == LETTERS
    between = []
    for partition in range(3):
        written, _ = host.task(0, partition, given[partition])
        assert {row.topic for row in written} == {LETTERS}
        assert [row.timestamp for row in written] == [row.timestamp for row in given[partition]]
        assert [row.headers for row in written] == [row.headers for row in given[partition]]
        between += written
    counted = Counter()
    for partition in range(3):
        its = [row for row in between if row.partition == partition]
        own = {row.value[-1] % 3 if program == "partitioner" else partition_for(row.key, 3) for row in its}
        assert own <= {partition}
        fed = [Row(LETTERS, partition, at, row.timestamp, row.key, row.value, row.headers) for at, row in enumerate(its)]
        written, _ = host.task(1, partition, fed)
        assert {row.partition for row in written} <= {partition}
        counted.update({row.key: 0 for row in written})
        for (topic, key), (value, _, _) in last(written).items():
            assert topic == "app-letters-changelog"
            counted[key] += int.from_bytes(value[-8:], "big")
    assert counted == Counter(row.value[:1] for rows in given for row in rows)


def test_the_partitioner_of_the_programs_producer_is_asked(host):
    partitioner = "org.apache.kafka.clients.producer.RoundRobinPartitioner"
    host.start("repartition", {"in": 1, LETTERS: 3}, {**NO_CACHE, "producer.partitioner.class": partitioner})
    written, _ = host.task(0, 0, records("in", 9))
    assert Counter(row.partition for row in written) == {0: 3, 1: 3, 2: 3}


def test_a_foreign_key_join_takes_rounds_of_its_two_sub_topologies(host):
    orders = records("orders", 60, lambda at: b"k%d@o%d" % (at % 5, at))
    customers = records("customers", 30)
    given = shuffled(customers, orders)
    expected = host.driven("foreign_key", customers + orders, NO_CACHE)
    internal = {row.topic: 1 for row in expected if row.topic.endswith("-topic")}
    assert len(internal) == 2
    host.start("foreign_key", {**ONE_EACH, **internal}, NO_CACHE)
    sources = {int(name.split(".")[1]): topics.split(",") for name, topics in host.hello.items() if name.endswith(".sources")}
    of_orders, of_customers = (next(at for at, topics in sources.items() if topic in topics) for topic in ("orders", "customers"))
    subscribed, _ = host.task(of_orders, 0, [row for row in given if row.topic == "orders"])
    registered = [row for row in subscribed if row.topic in sources[of_customers]]
    answered, _ = host.task(of_customers, 0, customers + registered)
    responses = [row for row in answered if row.topic in sources[of_orders]]
    joined, _ = host.task(of_orders, 0, [row for row in given if row.topic == "orders"] + responses)
    changelogs = {name for name in by_topic(expected) if name.endswith("-changelog")}
    assert len(changelogs) == 4

    def values(rows):
        return {name: value[0] for name, value in last(rows).items() if name[0] in changelogs}

    assert values(answered + joined) == values(expected)


def test_records_have_their_offsets_and_the_task_its_partition(host):
    host.start("processor", {"in": 6, "other": 4, "out": 1}, NO_CACHE)
    given = [Row("in", 5, 1_000_000_007, 1000, b"k", b"v", (("a", b"b"),))]
    (row, deleted), _ = host.task(0, 5, given)
    assert deleted.value is None  # the first stream time is one to punctuate at
    assert (row.topic, row.partition) == ("app-kept-changelog", 5)
    clock = b"" if host.version < "3.2" else b"0"
    assert row.value == b"v|a=b|in:5:1000000007|0_5|" + clock
    with pytest.raises(Failed, match="does not read other:5"):
        host.task(0, 5, [Row("other", 5, 0, 0, b"k", b"v")])


def test_caches_hold_back_until_a_commit(host):
    given = records("in", 300, step=100)
    keys = len({row.key for row in given})
    host.start("count", ONE_EACH, {"commit.interval.ms": "5000", "statestore.cache.max.bytes": "1000000"})
    few, facts = host.task(0, 0, given)
    assert facts["commits"] == str(1 + commits_of(given, 5000))
    assert keys < len(few) <= keys * int(facts["commits"])
    once, facts = host.task(0, 0, given, commit_ms="0")
    assert (len(once), facts["commits"]) == (keys, "1")
    every, facts = host.task(0, 0, given, cache_bytes="0")
    assert len(every) == 300
    by_count, facts = host.task(0, 0, given, commit_ms="0", commit_records="100")
    assert facts["commits"] == "4"
    assert last(few) == last(once) == last(every) == last(by_count)


def test_caches_are_left_out_where_nobody_can_tell(host):
    """The offset of a row counts what was written before it: with a cache, that is less. A join sees what caches let through."""
    cache = dict.fromkeys(NO_CACHE, "1000000")
    for program, without in (
        ("count", {"app-counts-changelog"}),
        ("tables", set()),
        ("untimed", set()),
    ):
        given = shuffled(*(records(topic, 150, step=100) for topic in INPUTS[program]))
        host.start(program, ONE_EACH, cache)
        expected = last(host.task(0, 0, given, commit_ms="0")[0])
        ends, _ = host.task(0, 0, given, changelogs="last", commit_ms="0")
        assert last(ends) == expected
        assert {row.topic for row in ends if row.offset >= len(expected)} == without


def test_a_store_that_keeps_no_timestamps_has_those_of_its_cache(host):
    """As the driver has them with a cache; without one, each row has the time of its own record."""
    cache, given = dict.fromkeys(NO_CACHE, "1000000"), records("in", 150, step=100)
    expected = last(host.driven("untimed", given, cache))
    host.start("untimed", ONE_EACH, cache)
    assert last(host.task(0, 0, given, changelogs="last", commit_ms="0")[0]) == expected
    latest = {row.key: max(each.timestamp for each in given if each.key == row.key) for row in given}
    assert {key: time for (_, key), (_, time, _) in expected.items()} == latest
    host.start("untimed", ONE_EACH, NO_CACHE)
    alone = last(host.task(0, 0, given, changelogs="last", commit_ms="0")[0])
    assert {key: time for (_, key), (_, time, _) in alone.items()} != latest


def sum_of(numbers):
    return sum(numbers).to_bytes(8, "big")


def commits_of(given, interval):
    commits, since, latest = 0, given[0].timestamp, given[0].timestamp
    for row in given:
        latest = max(latest, row.timestamp)
        if latest - since >= interval:
            commits, since = commits + 1, latest
    return commits


def test_the_interval_of_commits_is_that_of_the_guarantee(host):
    host.start("count", ONE_EACH)
    assert host.hello["commit.ms"] == "30000"
    host.start("exactly_once", ONE_EACH)
    assert host.hello["commit.ms"] == "100"


def test_only_the_last_rows_of_changelogs_in_the_order_of_writing(host):
    given = records("in", 100)
    host.start("count", ONE_EACH, NO_CACHE)
    every, _ = host.task(0, 0, given)
    ends, _ = host.task(0, 0, given, changelogs="last")
    latest = {row.key: row for row in every}
    assert ends == sorted(latest.values(), key=lambda row: row.offset)


def test_the_library_chooses_between_partitions_whatever_comes_first(host):
    left, right = records("in", 100), records("other", 100)
    host.start("tables", ONE_EACH, NO_CACHE)
    ways = [left + right, right + left, shuffled(left, right)]
    first, *others = [by_topic(host.task(0, 0, way, 17, order="time", keep="all")[0]) for way in ways]
    assert others == [first, first]
    assert by_topic(host.task(0, 0, left + right, keep="all")[0]) != first


@pytest.mark.parametrize("order", ["given", "time"])
def test_what_a_program_throws_is_told_with_the_record(host, order):
    given = [Row("in", 0, 100 + at, at, b"k", b"%d" % at) for at in range(20)]
    host.start("throws", ONE_EACH)
    with pytest.raises(Failed) as caught:
        host.task(0, 0, given, order=order)
    reported = caught.value.reported
    assert (reported["class"], reported["message"]) == ("java.lang.ArithmeticException", "/ by zero")
    assert (reported["by"], reported["phase"]) == ("program", "process")
    assert (reported["topic"], reported["partition"], reported["offset"]) == ("in", "0", "107")
    written, _ = host.task(0, 0, given[:7])
    assert [row.value for row in written] == [sum_of(range(7))]  # the next task begins afresh


FAILURES = {
    "throws_late": ("commit", "java.lang.IllegalStateException", "no more than 20", "19"),
    "throws_punctuating": ("punctuate", "java.lang.IllegalStateException", "no more time", "6"),
    "lacks_a_class": ("process", "java.lang.NoClassDefFoundError", "com/acme/Missing", "0"),
}


@pytest.mark.parametrize("program", FAILURES)
def test_what_a_program_throws_is_told_with_what_was_done(host, program):
    given = [Row("in", 0, at, 10_000 * at, b"k", b"v") for at in range(20)]
    host.start(program, ONE_EACH)
    with pytest.raises(Failed) as caught:
        host.task(0, 0, given, commit_ms="0")
    reported = caught.value.reported
    assert (reported["phase"], reported["class"], reported["message"], reported["offset"]) == FAILURES[program]
    assert reported["by"] == "program"


def test_a_program_that_does_not_start(host):
    host.start("throws_starting", ONE_EACH)
    with pytest.raises(Failed, match="no licence") as caught:
        host.task(0, 0, [])
    assert (caught.value.reported["by"], caught.value.reported["phase"]) == ("program", "start")
    assert "topic" not in caught.value.reported


def test_a_punctuator_that_is_cancelled_when_it_is_called_first_is_counted(host):
    host.start("once", ONE_EACH)
    _, facts = host.task(0, 0, records("in", 5))
    assert facts["stream_time_schedules"] == "1"


def test_the_clock_stands_where_it_is_told(host):
    if host.version < "3.2":
        pytest.skip("from Kafka Streams 3.2 on a processor can ask for it")
    host.start("processor", ONE_EACH, NO_CACHE, wall_clock="1700000000123")
    rows, _ = host.task(0, 0, records("in", 5))
    assert all(row.value.endswith(b"|1700000000123") for row in rows if row.value)


def test_a_partition_that_has_ended_is_not_waited_for(host):
    host.start("tables", ONE_EACH, NO_CACHE)
    host.ask(frames.TASK, frames.encoded_map({"subtopology": "0", "partition": "0", "order": "time"}))
    waits, _ = host.ask(frames.RECORDS, frames.encoded_batch(batch_of(records("in", 10))))
    goes_on, _ = host.ask(frames.END, frames.encoded_map({"topic": "other"}))
    left, facts = host.ask(frames.FINISH)
    assert (len(waits), len(goes_on), len(left), facts["processed"]) == (0, 10, 0, "10")


@pytest.mark.parametrize("order", ["given", "time"])
def test_a_record_that_cannot_be_read_is_named(host, order):
    given = [Row("in2", 0, at, at, b"k", b"x" if at == 3 else b"12345678") for at in range(6)]
    host.start("unreadable", ONE_EACH)
    with pytest.raises(Failed) as caught:
        host.task(0, 0, given, order=order)
    reported = caught.value.reported
    assert reported["class"] == "org.apache.kafka.common.errors.SerializationException"
    assert (reported["by"], reported["phase"], reported["topic"], reported["offset"]) == ("program", "read", "in2", "3")


def test_the_programs_handler_of_unreadable_records_is_asked(host):
    given = [Row("in2", 0, at, at, b"k", b"x" if at == 3 else b"12345678") for at in range(6)]
    handler = "org.apache.kafka.streams.errors.LogAndContinueExceptionHandler"
    host.start("unreadable", ONE_EACH, {**NO_CACHE, "default.deserialization.exception.handler": handler})
    written, facts = host.task(0, 0, given)
    assert len(written) == 5
    assert facts["skipped"] == "1"


def test_requests_that_cannot_be_served_are_the_runners_to_refuse(host):
    host.start("count", {"out": 1})
    with pytest.raises(Failed, match="how many partitions the topic in has") as caught:
        host.task(0, 0, [])
    assert caught.value.reported["by"] == "runner"
    with pytest.raises(Failed, match="no sub-topology 7"):
        host.task(7, 0, [])
    host.start("count", ONE_EACH)
    with pytest.raises(Failed, match="has a partition 1"):
        host.task(0, 1, [])


@pytest.mark.parametrize("version", ["2.8.2", "4.4.0"])
def test_the_runner_may_be_loaded_beside_the_program(version):
    jars, runner = jars_of_streams(version), runner_classes()
    classes = compiled(LOADED_BESIDE, version, jars)
    ask = frames.frame(frames.CONFIGURE, frames.encoded_map({"partitions.in": "1"}))
    ask += frames.frame(frames.TASK, frames.encoded_map({"subtopology": "0", "partition": "0", "cache.bytes": "0"}))
    ask += frames.frame(frames.RECORDS, frames.encoded_batch(batch_of(records("in", 3)))) + frames.frame(frames.FINISH)
    command = [*java_with(class_path([*jars, classes])), LOADED_BESIDE.stem, str(runner)]
    done = subprocess.run(command, input=ask, capture_output=True, check=True, timeout=HANG_SECONDS)
    kinds, at = [], 0
    while at < len(done.stdout):
        length, kind = frames.HEAD.unpack_from(done.stdout, at)
        at += frames.HEAD.size + length
        kinds.append(kind)
    assert kinds == [frames.HELLO, frames.DONE, frames.OUTPUT, frames.DONE, frames.DONE]

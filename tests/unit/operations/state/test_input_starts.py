"""Where an application began, what its consumer reads and where its keys go: what a state file may say, and what follows from it."""

from types import SimpleNamespace

import pytest

from kops.core.errors import ConfigError, Refused
from kops.core.models import Bounds, CommittedOffset, TopicPartition
from kops.core.statefile import parse_state_file
from kops.core.statefile.sources import Start
from kops.core.times import Position
from kops.operations.state.facts import StoreFacts
from kops.operations.state.input_offsets import COMMITTED, InputOffsets, find_cut, first_offsets
from kops.operations.state.input_starts import find_starts
from kops.operations.state.judge.judge import refuse_unplaced
from kops.operations.state.rules.statement import input_log
from kops.spark.reading.ranges import TopicRange
from support.verdicts import DOUBT, OBSTACLE, kinds, said, worst

ORDERS = {TopicPartition("orders", 0): Bounds(0, 40), TopicPartition("orders", 1): Bounds(10, 40)}


def parsed(start=None, streams=None, *, several=False, **fields):
    source = {"topics": ["orders", "returns"]} if several else {"topic": "orders"}
    store = {"from": {**source, "key": "string", "value": "long"}, "aggregate": {"count": True}, **fields}
    if start is not None:
        store["from"]["start"] = start
    return parse_state_file("state.yaml", {"application": "a", "streams": streams or {}, "stores": {"s": store}})


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (5, Start("offset", 5)),
        ({0: 5, 1: 7}, Start("offset", offsets=((0, 5), (1, 7)))),
        ({"1": 7, "0": 5}, Start("offset", offsets=((0, 5), (1, 7)))),
        ("@2026-11-20T14:05", Start("time", 1_795_183_500_000)),
        ("latest", Start("latest")),
        (None, None),
    ],
)
def test_where_an_application_began(given, meant):
    assert parsed(given).stores[0].source.start == meant


def test_several_topics_begin_at_one_place_or_each_at_its_own():
    assert [source.start for source in parsed(3, several=True).stores[0].inputs] == [Start("offset", 3)] * 2
    by_topic = parsed({"returns": {0: 1}}, several=True).stores[0].inputs
    assert [source.start for source in by_topic] == [None, Start("offset", offsets=((0, 1),))]


@pytest.mark.parametrize(
    ("start", "text"),
    [
        (-1, "is -1"),
        (True, "is True"),
        ("earliest", "is 'earliest'"),
        ("@-1h", "moves with the clock"),
        ("@now", "moves with the clock"),
        ("@2026-11-40", "not a valid time"),
        ({}, "no partition"),
        ({0: "x"}, "not an offset of a partition"),
    ],
)
def test_a_start_that_is_none(start, text):
    with pytest.raises(ConfigError, match=r"stores\.s\.from\.start") as wrong:
        parsed(start)
    assert text in wrong.value.message


def test_a_start_of_a_topic_that_is_not_read():
    with pytest.raises(ConfigError, match="refunds, which is not one of the topics"):
        parsed({"refunds": 1}, several=True)


def test_a_table_that_is_restored_from_its_whole_topic_began_nowhere_else():
    body = {"from": {"topic": "orders", "key": "string", "value": "long", "start": 4}}
    with pytest.raises(ConfigError, match="topology_optimization"):
        parse_state_file("f", {"application": "a", "streams": {"topology_optimization": "all"}, "stores": {"s": body}})


def test_tables_of_one_topic_that_begin_at_two_places():
    left = {"from": {"topic": "orders", "key": "string", "value": "string", "start": 4}}
    right = {"from": {"topic": "orders", "key": "string", "value": "string"}}
    joined = {"from": {"table": "left"}, "join": {"table": "right", "value": "left", "as": "string"}}
    with pytest.raises(ConfigError, match="begins at two places"):
        parse_state_file("f", {"application": "a", "tables": {"left": left, "right": right}, "stores": {"s": joined}})


@pytest.mark.parametrize(
    ("streams", "committed"),
    [
        ({}, False),
        ({"isolation": "read_committed"}, True),
        ({"guarantee": "exactly_once_v2"}, True),
        ({"guarantee": "exactly_once_v2", "isolation": "read_committed"}, True),
    ],
)
def test_what_the_consumer_reads(streams, committed):
    assert parsed(streams=streams).reads_committed is committed


def test_exactly_once_reads_nothing_else_than_what_is_committed():
    with pytest.raises(ConfigError, match=r"streams\.isolation is read_uncommitted"):
        parsed(streams={"guarantee": "exactly_once_v2", "isolation": "read_uncommitted"})


def test_a_partitioner_means_something_behind_a_new_key_and_not_for_windows():
    assert parsed(key_by="value", key_as="long", partitioner="custom").stores[0].custom_partitioner
    with pytest.raises(ConfigError, match="only means something with key_by"):
        parsed(partitioner="custom")
    windows = {"type": "window", "window": {"size": "1m", "grace": "0s", "retention": "1d"}}
    with pytest.raises(ConfigError, match="what was late"):
        parsed(streams={"version": "4.3"}, key_by="value", key_as="long", partitioner="custom", **windows)


def starts(start, times=None, bounds=ORDERS, oldest=None):
    state_file = parsed(start)
    kafka = SimpleNamespace(offsets=SimpleNamespace(at_time=lambda _places, _time: times))
    return find_starts(SimpleNamespace(kafka=kafka), state_file, state_file.stores[0], bounds, oldest)


def test_offsets_after_the_log_start_make_sure_that_nothing_is_missing():
    found = starts({0: 5, 1: 12})
    assert (found.of("orders"), found.findings) == ({0: 5, 1: 12}, ())
    store, bounds = parsed().stores[0], {place.partition: bound for place, bound in ORDERS.items()}
    assert not list(input_log(store, bounds, "delete", "orders", found.of("orders")))
    assert worst(input_log(store, bounds, "delete", "orders", starts({0: 5, 1: 9}).of("orders"))) == OBSTACLE
    assert worst(input_log(store, bounds, "delete", "orders")) == OBSTACLE


def test_latest_is_not_known():
    found = starts("latest")
    assert (found.offsets, kinds(found.findings)) == ({}, [OBSTACLE])
    assert "where it began is not known" in said(found.findings)


def test_latest_is_known_where_the_oldest_commit_of_each_partition_is_offset_0():
    first, second = ORDERS
    found = starts("latest", oldest={first: 0, second: 0})
    assert (found.of("orders"), found.findings) == ({0: 0, 1: 0}, ())
    for oldest, text in (({first: 0, second: 3}, "of orders:1 is at 3"), ({first: 0}, "no commit of orders:1 is known")):
        found = starts("latest", oldest=oldest)
        assert (found.offsets, kinds(found.findings)) == ({}, [OBSTACLE])
        assert text in said(found.findings)
    never_filled = starts("latest", bounds={first: Bounds(0, 40), second: Bounds(0, 0)}, oldest={first: 0})
    assert never_filled.findings == ()


def test_a_time_is_sure_where_nothing_is_gone():
    first, second = ORDERS
    found = starts("@2026-11-20", {first: None, second: 12})
    assert (found.of("orders"), kinds(found.findings)) == ({0: 40, 1: 12}, [DOUBT])
    assert "orders:1: a record that is gone" in said(found.findings)
    assert starts("@2026-11-20", {first: 3, second: 10}).of("orders") == {0: 3}, "the log start says nothing of what was before"
    whole = dict.fromkeys(ORDERS, Bounds(0, 40))
    assert starts("@2026-11-20", {first: 3, second: 10}, whole).findings == ()


def test_offsets_that_cannot_be():
    with pytest.raises(ConfigError, match="has no offset of partition 1"):
        starts({0: 5})
    with pytest.raises(ConfigError, match="names partition 2"):
        starts({0: 5, 1: 5, 2: 5})
    with pytest.raises(Refused, match="began at 50"):
        starts(50)


def facts(start, changelog=2, tasks=2):
    bounds = {number: Bounds(0, 1) for number in range(changelog)}
    return StoreFacts(parsed().stores[0], ORDERS, bounds, {}, tasks=tasks, starts={TopicPartition("orders", 0): start} if start else {})


def test_the_input_counts_from_there():
    cut = InputOffsets({TopicPartition("orders", 0): 30, TopicPartition("orders", 1): 30}, {})
    assert cut.ranges(facts(12), "orders") == {0: (12, 30), 1: (10, 30)}
    assert cut.ranges(facts(35), "orders") == {0: (35, 35), 1: (10, 30)}
    assert first_offsets([facts(12), facts(7)])[TopicPartition("orders", 0)] == 7
    assert first_offsets([facts(12), facts(0)])[TopicPartition("orders", 0)] == 0


def test_a_commit_before_the_start_contradicts():
    committed = {TopicPartition("orders", 0): CommittedOffset(11), TopicPartition("orders", 1): CommittedOffset(30)}
    groups = SimpleNamespace(committed=lambda _groups, **_how: {"a": committed})
    services = SimpleNamespace(kafka=SimpleNamespace(groups=groups))
    with pytest.raises(Refused, match="committed offset is 11"):
        find_cut(services, parsed(), [facts(12)], COMMITTED)
    assert find_cut(services, parsed(), [facts(11)], COMMITTED).offsets[TopicPartition("orders", 0)] == 11
    assert find_cut(services, parsed(), [facts(12)], Position("end")).is_new


def test_a_range_is_trimmed_where_the_application_has_read_what_is_gone():
    ranges = {0: (0, 9), 1: (5, 9), 2: (5, 9), 3: (5, 9)}
    assert TopicRange("orders", ranges, begins={1: 5, 2: 4}).trimmed == {2: (5, 9), 3: (5, 9)}


@pytest.mark.parametrize(("changelog", "fits", "partitions", "spare"), [(2, True, 2, []), (6, True, 6, [2, 3, 4, 5]), (1, False, 2, [])])
def test_a_changelog_may_have_more_partitions_than_the_topic_and_is_never_made_smaller(changelog, fits, partitions, spare):
    found = facts(0, changelog)
    assert (found.fits, found.partitions, found.spare) == (fits, partitions, spare)


def test_keys_that_have_no_place_are_not_written():
    store = SimpleNamespace(name="s", changelog="a-s-changelog")
    with pytest.raises(Refused, match="partition of 3 keys is not known"):
        refuse_unplaced(SimpleNamespace(facts=SimpleNamespace(store=store), actions={-1: {"added": 3}, 0: {"changed": 1}}))
    refuse_unplaced(SimpleNamespace(facts=SimpleNamespace(store=store), actions={0: {"changed": 1}}))

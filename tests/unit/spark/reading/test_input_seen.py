"""What the log of an input shows: offsets without a record, and the latest time."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kops.core.models import Bounds, CommittedOffset, TopicPartition
from kops.core.statefile import parse_state_file
from kops.formats.batches.header import CONTROL, Batch, Gaps
from kops.formats.streams.offset_metadata import OffsetMetadata, encode
from kops.operations.state.compute import ComputedStore
from kops.operations.state.input_offsets import InputOffsets
from kops.operations.state.judge.input import gaps as gaps_of
from kops.operations.state.judge.input import partition_times
from kops.operations.state.judge.judge import is_settled
from kops.operations.state.rules.statement import input_gaps
from kops.operations.state.rules.witnesses import witnesses_of
from kops.spark.reading.input_seen import InputSeen, note, seen_of
from support.verdicts import DOUBT, NOTHING, OBSTACLE, summaries, worst

AT = TopicPartition("in", 0)
TIME = 1_700_000_000_000
ORIGIN = {"topic": "in", "key": "string", "value": "long"}

HALF, ALL = (witnesses_of(live={0: live}, expected=200, actions={0: {"added": 200 - live}}) for live in (100, 200))


def store_of(**fields):
    body = {"from": ORIGIN, **fields}
    return parse_state_file("f", {"application": "app", "stores": {"own": body}}).stores[0]


def batch(first, last, records=None, attributes=0):
    return Batch(0, 0, first, attributes, last, 0, 0, -1, last - first + 1 if records is None else records, 0)


@pytest.mark.parametrize(
    ("batches", "gaps"),
    [
        ([batch(0, 4), batch(5, 9)], []),
        ([batch(0, 4), batch(5, 5, attributes=CONTROL), batch(6, 9)], []),
        ([batch(0, 4), batch(7, 9)], [(5, 6)]),
        ([batch(2, 9)], [(0, 1)]),
        ([batch(0, 4, 3), batch(5, 9, 4)], [(0, 4), (5, 9)]),
        ([batch(0, 4), batch(5, 30, 8)], [(5, 9)]),
        ([batch(0, 4), batch(30, 40)], [(5, 9)]),
        ([batch(0, 9), batch(20, 40)], []),
    ],
    ids=["none", "a marker", "between", "at the start", "inside", "beyond the end", "up to the end", "after the end"],
)
def test_gaps_between_batches(batches, gaps):
    seen = Gaps()
    seen.see(batches, 0, 10)
    assert seen.found == gaps


def test_a_batch_that_begins_before_what_is_read_is_not_judged():
    seen = Gaps()
    seen.see([batch(0, 9, 5), batch(10, 12)], 5, 20)
    assert not seen.found


def test_what_tasks_noted_counts_where_they_read_everything(tmp_path):
    folder = str(tmp_path)
    note(folder, ("in", 0, 0, 10), InputSeen(((3, 4),), TIME))
    note(folder, ("in", 0, 10, 20), InputSeen((), TIME + 5))
    note(folder, ("in-0", 0, 0, 20), InputSeen(((1, 1),), 1))
    assert seen_of(folder, "in", 0, 0, 20) == InputSeen(((3, 4),), TIME + 5)
    assert seen_of(folder, "in", 0, 0, 10) == InputSeen(((3, 4),), TIME)
    assert seen_of(folder, "in", 0, 0, 21) is None
    assert seen_of(folder, "in", 0, 5, 20) is None
    assert seen_of(folder, "in", 1, 0, 20) is None


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({}, NOTHING),
        ({"aggregate": {"count": True}}, OBSTACLE),
        ({"aggregate": {"last": "value"}}, DOUBT),
        ({"aggregate": {"sum": "value"}, "key_by": "value", "key_as": "long", "repartition": "app-own-repartition"}, OBSTACLE),
        ({"aggregate": {"last": "value"}, "where": "value > 1"}, OBSTACLE),
    ],
    ids=["table", "count", "last", "new key", "filtered"],
)
def test_a_gap_is_found_by_what_a_store_needs_of_old_records(fields, kind):
    found = list(input_gaps(store_of(**fields), "in:0 at offset 3"))
    assert worst(found) == kind
    assert all("in:0 at offset 3" in text for text in summaries(found))


def doubts(seen, known, *, start=0, made=(), undecodable=0, timestamp=None, is_new=False, by_rows=None, base=None):
    """Return what contradicts a store of 20 records.

    :param seen: the latest time of what tasks have read as whole batches; ``by_rows``: of what Spark has read
    :param known: the partition time that was committed
    """
    origin = replace(store_of().source, timestamp=timestamp)
    store = SimpleNamespace(inputs=(origin,), others=())
    facts = SimpleNamespace(store=store, input_bounds={AT: Bounds(start, 50)}, starts={}, base=base, waiting={})
    found = SimpleNamespace(facts=facts, counts=SimpleNamespace(dropped={"undecodable": undecodable}, latest=by_rows))
    metadata = "" if known is None else encode(OffsetMetadata(known))
    is_seen = seen is not None
    engine = SimpleNamespace(seen=lambda *place: InputSeen((), seen) if is_seen and place == ("in", 0, start, 20) else None)
    cut = InputOffsets({AT: 20}, {AT: CommittedOffset(20, metadata)}, is_new=is_new)
    state_file = SimpleNamespace(library="kafka-streams")
    return list(partition_times(engine, state_file, found, cut, dict.fromkeys(made)))


@pytest.mark.parametrize("timestamp", [None, "value.at"])
def test_a_time_of_rows_is_compared_for_the_whole_topic(timestamp):
    (found,) = doubts(None, TIME + 1, by_rows=TIME, timestamp=timestamp)
    assert " in in, " in found.summary
    assert not doubts(None, TIME, by_rows=TIME, timestamp=timestamp)


def test_a_partition_time_that_the_records_do_not_have_contradicts():
    (later,) = doubts(TIME, TIME + 1)
    assert "takes times from elsewhere" in later.summary
    assert is_settled(later, HALF, None), "every key would show it"
    (earlier,) = doubts(TIME + 1, TIME)
    assert "never counted" in earlier.summary
    assert not is_settled(earlier, HALF, None), "it may be one key's"
    assert is_settled(earlier, ALL, None)


@pytest.mark.parametrize(
    "found",
    [
        doubts(TIME, TIME),
        doubts(TIME, None),
        doubts(TIME, -1),
        doubts(None, TIME),
        doubts(TIME, TIME + 1, start=5),
        doubts(TIME, TIME + 1, made=[AT]),
        doubts(TIME + 1, TIME, undecodable=1),
        doubts(TIME, TIME + 1, timestamp="value.at"),
        doubts(TIME, TIME + 1, is_new=True),
        doubts(None, TIME + 1, by_rows=TIME, timestamp="wall-clock"),
        doubts(None, TIME + 1, by_rows=TIME, base="snapshot"),
    ],
    ids=[
        "equal",
        "no metadata",
        "unknown",
        "not seen",
        "trimmed",
        "moved by kops",
        "skipped records",
        "an expression",
        "moved to",
        "a clock",
        "a snapshot",
    ],
)
def test_what_no_partition_time_contradicts(found):
    assert not found


@pytest.mark.parametrize(("read", "scanned", "kind"), [(20, (), NOTHING), (17, (), NOTHING), (17, ((3, 5),), OBSTACLE)])
def test_an_input_that_lacks_records_is_looked_through(read, scanned, kind):
    store, looked = store_of(aggregate={"count": True}), []
    facts = SimpleNamespace(store=store, input_bounds={AT: Bounds(0, 50)}, starts={}, base=None, waiting={})
    found = ComputedStore(facts, "", SimpleNamespace(read=read), SimpleNamespace(findings=list))
    seen = lambda *_place: InputSeen(scanned) if looked else None  # noqa: E731
    engine = SimpleNamespace(scan=lambda *asked: looked.append(asked), seen=seen)
    findings = list(gaps_of(engine, found, InputOffsets({AT: 20}, {})))
    assert looked == ([] if read == 20 else [("in", {0: (0, 20)})])
    assert worst(findings) == kind

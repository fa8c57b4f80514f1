"""Columns of many groups go where each partition of each group would go alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.core.errors import UsageProblem
from kops.core.models import Bounds, CommittedOffset, GroupOffsets, TopicPartition
from kops.core.offsets.arithmetic import Landing, ShiftBy, Stay, ToCurrent, ToEarliest, ToLatest, ToOffset, ToTime, metadata_after, resolve
from kops.operations.offsets.rules import Places
from kops.operations.offsets.targets import Targets, topic_moves

STREAMS = "AgAAAAAAAACC"
PARTITIONS = 4

offsets = st.integers(0, 100)
logs = st.tuples(offsets, offsets).map(lambda pair: Bounds(min(pair), max(pair)))
times = st.builds(ToTime, st.integers(0, 3))
steps = st.builds(ShiftBy, st.integers(-50, 50))
strategies = st.one_of(st.sampled_from([ToEarliest(), ToLatest(), ToCurrent()]), st.builds(ToOffset, offsets), steps, times)
commits = st.builds(CommittedOffset, offsets, st.sampled_from(["", "text", STREAMS]), st.none() | st.integers(0, 5))
groups = st.lists(st.dictionaries(st.integers(0, PARTITIONS - 1), commits), min_size=1, max_size=4)


@given(
    groups,
    st.dictionaries(st.integers(0, PARTITIONS - 1), strategies, min_size=1),
    st.dictionaries(st.integers(0, PARTITIONS - 1), logs),
    st.dictionaries(st.tuples(st.integers(0, 3), st.integers(0, PARTITIONS - 1)), offsets),
)
def test_every_group_as_if_it_were_alone(several, places, bounds, at_times):
    found_at = {at: {TopicPartition("t", p): landing(at_times.get((at, p))) for p in range(PARTITIONS)} for at in range(4)}
    targets = Targets(list(places.values()), {TopicPartition("t", p): log for p, log in bounds.items()}, found_at)
    chosen = Places(tuple(places), tuple(range(len(places))))
    for committed in several:
        read = GroupOffsets(
            {"t": {partition: commit.offset for partition, commit in committed.items()}},
            {"t": {partition: commit.leader_epoch for partition, commit in committed.items() if commit.leader_epoch is not None}},
            {"t": {partition: commit.metadata for partition, commit in committed.items() if commit.metadata != ""}},
        )
        moves = topic_moves(targets, read, "t", chosen, strict=False)
        assert moves.partitions == tuple(places)
        for at, (partition, strategy) in enumerate(places.items()):
            before = committed.get(partition)
            assert moves.before.committed(at, partition) == before
            after = expected(strategy, before, bounds.get(partition), at_times, partition)
            assert moves.after.offsets[at] == after
            if after is not None and partition in bounds:
                assert moves.after.metadata.get(partition, "") == metadata_after(before, after)


def expected(strategy, before, log, at_times, partition):
    if log is None or (isinstance(strategy, ShiftBy) and before is None):
        return None if before is None else before.offset
    at = at_times.get((strategy.milliseconds, partition)) if isinstance(strategy, ToTime) else None
    return resolve(strategy, before, log, landing(at)).offset


def landing(offset):
    return None if offset is None else Landing(offset, 0)


def test_a_group_that_was_named_is_refused_where_it_cannot_be_shifted():
    targets = Targets([ShiftBy(1)], {TopicPartition("t", 0): Bounds(0, 9)}, {})
    with pytest.raises(UsageProblem, match="t:0: there is no committed offset to shift from"):
        topic_moves(targets, GroupOffsets(), "t", Places((0,), (0,)), strict=True)
    left = topic_moves(targets, GroupOffsets(), "t", Places((0,), (0,)), strict=False)
    assert (left.after.offsets, left.reasons) == ((None,), ("there is no committed offset to shift from",))


def test_a_partition_that_stays_keeps_the_commit_of_each_group():
    targets = Targets([ToEarliest(), Stay("not known")], {TopicPartition("t", 0): Bounds(0, 9)}, {})
    for committed in ({0: 5, 1: 7}, {0: 5, 1: 8}, {0: 5}):
        moves = topic_moves(targets, GroupOffsets({"t": committed}), "t", Places((0, 1), (0, 1)), strict=True)
        assert (moves.after.offsets, moves.reasons) == ((0, committed.get(1)), ("log start", "not known"))

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.core.errors import UsageProblem
from kops.core.models import Bounds, CommittedOffset
from kops.core.offsets.arithmetic import (
    Landing,
    NewOffset,
    ShiftBy,
    ToCurrent,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
    is_streams_metadata,
    lag_of,
    metadata_after,
    resolve,
)

LOG = Bounds(10, 20)
STREAMS = "AgAAAAAAAACC"

offsets = st.integers(min_value=0, max_value=2**40)
logs = st.tuples(offsets, offsets).map(lambda pair: Bounds(min(pair), max(pair)))
commits = st.none() | st.builds(CommittedOffset, offsets)
strategies = st.one_of(
    st.just(ToEarliest()), st.just(ToLatest()), st.builds(ToOffset, offsets), st.builds(ShiftBy, st.integers(-(2**40), 2**40))
)


@pytest.mark.parametrize(
    ("strategy", "committed", "landing", "target"),
    [
        (ToEarliest(), 15, None, NewOffset(10, "log start")),
        (ToLatest(), 15, None, NewOffset(20, "log end")),
        (ToCurrent(), 15, None, NewOffset(15, "as it is")),
        (ToCurrent(), 99, None, NewOffset(99, "as it is")),
        (ToCurrent(), None, None, NewOffset(20, "no commit yet: log end")),
        (ToOffset(12), 15, None, NewOffset(12)),
        (ToOffset(9), 15, None, NewOffset(10, "9 is below the log start: clamped")),
        (ToOffset(21), 15, None, NewOffset(20, "21 is past the log end: clamped")),
        (ShiftBy(-3), 15, None, NewOffset(12, "15 - 3")),
        (ShiftBy(-30), 15, None, NewOffset(10, "15 - 30 = -15 is below the log start: clamped")),
        (ShiftBy(5), 15, None, NewOffset(20, "15 + 5")),
        (ShiftBy(0), 2, None, NewOffset(10, "2 + 0 = 2 is below the log start: clamped")),
        (ToTime(0), 15, Landing(13, 9), NewOffset(13, "where Kafka finds 1970-01-01T00:00:00.000Z: of 1970-01-01T00:00:00.009Z")),
        (ToTime(0), 15, Landing(13, 0, 1, 14, (13, 0)), NewOffset(13, "first record at or after 1970-01-01T00:00:00.000Z")),
        (
            ToTime(0),
            15,
            Landing(13, 9, 1, 14, (13, 9)),
            NewOffset(13, "first record at or after 1970-01-01T00:00:00.000Z: of 1970-01-01T00:00:00.009Z"),
        ),
        (
            ToTime(0),
            15,
            Landing(13, 9, 1, 16, (15, 1)),
            NewOffset(
                13,
                "a transaction marker is there at or after 1970-01-01T00:00:00.000Z: the next record, 15, is of 1970-01-01T00:00:00.001Z",
            ),
        ),
        (
            ToTime(0),
            15,
            Landing(13, 9, 0, 20),
            NewOffset(13, "no record at or after 1970-01-01T00:00:00.000Z: a transaction marker, and no record up to 20"),
        ),
        (ToTime(0), 15, Landing(8, 9), NewOffset(10, "the first record at or after 1970-01-01T00:00:00.000Z is deleted: log start")),
        (ToTime(0), 15, None, NewOffset(20, "no record at or after 1970-01-01T00:00:00.000Z: log end")),
    ],
)
def test_targets(strategy, committed, landing, target):
    assert resolve(strategy, None if committed is None else CommittedOffset(committed), LOG, landing) == target


def test_the_end_of_an_empty_log():
    assert resolve(ToTime(5), None, Bounds(7, 7), None) == NewOffset(7, "empty: log end")


@pytest.mark.parametrize("strategy", [ToOffset(9, exact=True), ToOffset(21, exact=True), ShiftBy(6, exact=True), ShiftBy(-6, exact=True)])
def test_exact_offsets_are_not_clamped(strategy):
    with pytest.raises(UsageProblem, match="the log has 10 to 20"):
        resolve(strategy, CommittedOffset(15), LOG)


def test_a_shift_needs_a_commit():
    with pytest.raises(UsageProblem):
        resolve(ShiftBy(1), None, LOG)


@given(strategies, offsets.map(CommittedOffset), logs, st.none() | offsets)
def test_targets_lie_within_the_log(strategy, committed, log, at_time):
    assert log.log_start_offset <= resolve(strategy, committed, log, at_time).offset <= log.log_end_offset


@given(commits, logs)
def test_lag_is_what_is_left_to_read(committed, log):
    lag = lag_of(committed, log)
    if committed is None:
        assert lag.lag is None
    else:
        assert lag.lag == len(range(max(committed.offset, log.log_start_offset), log.log_end_offset))
        assert bool(lag.note) == (not log.log_start_offset <= committed.offset <= log.log_end_offset)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (STREAMS, True),
        ("AgAAAAAAAACCAAAAAQAAAAN3aW4AAAAAAAAAfQ==", True),
        (base64.b64encode(b"\x01" + bytes(8)).decode(), True),
        (base64.b64encode(b"\x03" + bytes(8)).decode(), False),
        (base64.b64encode(b"\x02" + bytes(7)).decode(), False),
        (STREAMS + "\0", False),
        ("", False),
        (None, False),
        ("ü", False),
        ("hello", False),
    ],
)
def test_metadata_of_kafka_streams(metadata, expected):
    assert is_streams_metadata(metadata) is expected


def test_metadata_after_a_move():
    assert metadata_after(CommittedOffset(5, STREAMS), 6) == STREAMS
    assert metadata_after(CommittedOffset(5, STREAMS), 4) == ""
    assert metadata_after(CommittedOffset(5, "of another client"), 6) == ""
    assert metadata_after(CommittedOffset(5, None), 6) == ""
    assert metadata_after(None, 6) == ""

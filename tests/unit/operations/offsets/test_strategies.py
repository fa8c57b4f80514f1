from datetime import datetime, timezone

import pytest

from kops.core.errors import UsageProblem
from kops.core.offsets.arithmetic import ShiftBy, ToCurrent, ToEarliest, ToLatest, ToOffset, ToTime
from kops.core.selection import Selection
from kops.operations.offsets.files import file_offsets
from kops.operations.offsets.strategies import Choice, mixes_of, seek_of, seeks_of, strategy_of

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
NOW_MS = 1795262400000


@pytest.mark.parametrize(
    ("choice", "strategy"),
    [
        (Choice(to_earliest=True), ToEarliest()),
        (Choice(to_latest=True), ToLatest()),
        (Choice(to_current=True), ToCurrent()),
        (Choice(to_offset=0), ToOffset(0)),
        (Choice(shift_by=0), ShiftBy(0)),
        (Choice(shift_by=-7), ShiftBy(-7)),
        (Choice(to="start"), ToEarliest()),
        (Choice(to="end"), ToLatest()),
        (Choice(to="current"), ToCurrent()),
        (Choice(to="12"), ToOffset(12)),
        (Choice(to="@-1h"), ToTime(NOW_MS - 3_600_000)),
        (Choice(by_duration="PT1H"), ToTime(NOW_MS - 3_600_000)),
        (Choice(by_duration="1h"), ToTime(NOW_MS - 3_600_000)),
        (Choice(by_duration="-PT1H"), ToTime(NOW_MS + 3_600_000)),
        (Choice(to_datetime="2026-11-21T12:00:00.000"), ToTime(NOW_MS)),
        (Choice(to_datetime="@-1h"), ToTime(NOW_MS - 3_600_000)),
    ],
)
def test_strategies(choice, strategy):
    assert strategy_of(choice, NOW) == strategy


def test_a_strategy_is_needed():
    with pytest.raises(UsageProblem, match="none is given"):
        mixes_of([("topic", "orders")])


@pytest.mark.parametrize(
    "choice",
    [
        Choice(to_offset=-1),
        Choice(to_offset=2**63),
        Choice(by_duration="P99999D"),
        Choice(by_duration="-P9999999999D"),
        Choice(to="-1"),
        Choice(to_datetime="x"),
    ],
)
def test_what_is_no_strategy(choice):
    with pytest.raises(UsageProblem):
        strategy_of(choice, NOW)


def test_seeks():
    assert seek_of("orders:0=12", NOW) == (Selection("orders", (0,)), ToOffset(12, exact=True))
    assert seek_of("orders:0,3-4=+1", NOW) == (Selection("orders", (0, 3, 4)), ShiftBy(1, exact=True))
    assert seek_of("orders=@-1h", NOW) == (Selection("orders"), ToTime(NOW_MS - 3_600_000))
    assert seek_of("orders=start", NOW) == (Selection("orders"), ToEarliest())
    for text in ("orders:0", "orders:0=", "orders:0=-1", "orders:0=+end", "orders:0=+", "orders:0=++1", "=5", "orders:0=1=2", ""):
        with pytest.raises(UsageProblem):
            seek_of(text, NOW)
    with pytest.raises(UsageProblem, match="named twice"):
        seeks_of(["orders:0=1", "orders:0=2"], NOW)


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "[1]",
        '[{"topic": "t"}]',
        '[{"topic": "t", "partition": 0, "offset": -1}]',
        '[{"topic": "t t", "partition": 0, "offset": 1}]',
        "[",
        b"\xff",
    ],
)
def test_broken_files(tmp_path, content):
    file = tmp_path / "offsets"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UsageProblem):
        file_offsets(file, "g", (), NOW)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UsageProblem, match="No such file"):
        file_offsets(tmp_path / "none", "g", (), NOW)


def test_a_file_of_another_group_names_the_groups_that_it_has(tmp_path):
    file = tmp_path / "offsets.csv"
    file.write_text("billing,orders,0,1\n")
    with pytest.raises(UsageProblem) as problem:
        file_offsets(file, "audit", (), NOW)
    assert problem.value.hint == "it has those of billing"

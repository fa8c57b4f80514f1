"""The orders in which a task is run, and which keys they show to depend on it."""

import numpy
import pyarrow
import pytest

from kops.core.streams.program_doubts import BACKWARD, BY_TIME, FORWARD, ORDERS
from kops.formats import runner_frames as frames
from kops.spark.programs.orders import HOW, DifferingKeys, by_time, one_by_one


def batch(topic, *times):
    nothing = pyarrow.nulls(len(times), pyarrow.binary())
    zeros = numpy.zeros(len(times), numpy.int32)
    return frames.Batch([topic], zeros, zeros, numpy.arange(len(times)), numpy.array(times), nothing, nothing, nothing)


def inputs():
    return [iter([batch("left", 1, 5), batch("left", 6)]), iter([batch("right", 2, 3)])]


def sent(items):
    """Return which topics are sent, with the times of the records, and which have ended."""
    return [item if isinstance(item, str) else (item.topics[0], item.timestamp.tolist()) for item in items]


def test_by_time_the_topic_that_lags_behind_comes_next():
    assert sent(by_time(["left", "right"], inputs(), {})) == [("left", [1, 5]), ("right", [2, 3]), "right", ("left", [6]), "left"]


@pytest.mark.parametrize("backward", [False, True])
def test_one_by_one_each_topic_keeps_its_own_order(backward):
    topics = [[("left", [1, 5]), ("left", [6])], [("right", [2, 3])]]
    expected = [each for topic in (reversed(topics) if backward else topics) for each in topic]
    assert sent(one_by_one(["left", "right"], inputs(), {}, backward=backward)) == expected


@pytest.mark.parametrize("backward", [False, True])
def test_answers_come_last(backward):
    right_last = [("left", [1, 5]), ("left", [6]), ("right", [2, 3])]
    assert sent(one_by_one(["left", "right"], inputs(), {"right": 1}, backward=backward)) == right_last
    timed = sent(by_time(["left", "right"], inputs(), {"right": 1, "empty": 2}))
    assert timed == ["empty", ("left", [1, 5]), ("left", [6]), "left", ("right", [2, 3]), "right"]


@pytest.mark.parametrize("backward", [False, True])
def test_answers_to_what_earlier_answers_gave_come_after_those(backward):
    ranks = {"left": 2, "right": 1}
    right_first = [("right", [2, 3]), ("left", [1, 5]), ("left", [6])]
    assert sent(one_by_one(["left", "right"], inputs(), ranks, backward=backward)) == right_first
    assert sent(by_time(["left", "right"], inputs(), ranks)) == [("right", [2, 3]), "right", ("left", [1, 5]), ("left", [6]), "left"]


def test_each_order_is_known():
    assert set(HOW) == set(ORDERS) == {BY_TIME, FORWARD, BACKWARD}
    assert ORDERS[0] == BY_TIME


def table(**rows):
    """Return rows, each by its key: a value and a timestamp."""
    values = [(name.encode(), value, time, b"") for name, (value, time) in rows.items()]
    columns = zip(*values, strict=True) if values else ((), (), (), ())
    kinds = {"key": pyarrow.binary(), "value": pyarrow.binary(), "timestamp": pyarrow.int64(), "headers": pyarrow.binary()}
    return pyarrow.table({name: pyarrow.array(list(column), kinds[name]) for name, column in zip(kinds, columns, strict=True)})


FIRST = {"same": (b"1", 10), "value": (b"1", 10), "time": (b"1", 10), "only": (b"1", 10)}


def test_keys_that_differ_in_their_value_or_only_in_their_time():
    differing = DifferingKeys()
    differing.add(table(**FIRST), [table(same=(b"1", 10), value=(b"2", 10), time=(b"1", 11), more=(b"1", 10))], 0)
    assert differing.facts == {
        "unsure": 3,
        "unsure_times": 1,
        "elsewhere": 1,
        "examples": [key.encode().hex() for key in ("more", "only", "value")],
    }


def test_a_key_counts_once_however_many_orders_differ():
    differing, first = DifferingKeys(), table(**FIRST)
    assert differing.add(first, [table(**{**FIRST, "time": (b"1", 12)})], 0) == {b"time"}
    assert differing.facts == {"unsure": 0, "unsure_times": 1, "elsewhere": 0, "examples": [b"time".hex()]}
    differing = DifferingKeys()
    differing.add(first, [table(**{**FIRST, "time": (b"1", 12)}), table(**{**FIRST, "time": (b"3", 10)}), first], 0)
    assert differing.facts == {"unsure": 1, "unsure_times": 0, "elsewhere": 0, "examples": [b"time".hex()]}


def test_the_keys_of_several_parts_add_up():
    differing = DifferingKeys()
    for names in ("hgf", "edc", "ba"):
        differing.add(table(**dict.fromkeys(names, (b"1", 10))), [table(**{name: (b"1", 11 + (name > "a")) for name in names})], 0)
    assert differing.facts == {"unsure": 0, "unsure_times": 8, "elsewhere": 0, "examples": [name.encode().hex() for name in "abcde"]}
    differing.add(table(z=(b"1", 1)), [table(z=(b"2", 1))], 0)
    assert differing.facts == {"unsure": 1, "unsure_times": 8, "elsewhere": 0, "examples": [b"z".hex()]}


def test_nothing_written_at_all():
    differing = DifferingKeys()
    differing.add(table(), [table()], 0)
    assert differing.facts == {"unsure": 0, "unsure_times": 0, "elsewhere": 0, "examples": []}
    differing.add(table(), [table(more=(b"1", 1))], 0)
    assert differing.facts["unsure"] == 1

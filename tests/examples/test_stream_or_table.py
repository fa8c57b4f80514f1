"""``examples/stream-or-table``: one topic as a stream and as a table; both stores are lost, or damaged, and come back."""

import struct

import pytest

from support import twins
from support.broken_copies import LOCAL_STATES, assert_equal, break_and_rebuild
from support.examples import process
from support.programs import Record

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]


def fruit(*pairs, start=1_700_000_000_000):
    """Records of (name, value), each an older timestamp than the one before: the last record wins, not the newest."""
    return {
        "fruit": [
            Record(name.encode(), None if value is None else struct.pack(">q", value), start - at) for at, (name, value) in enumerate(pairs)
        ]
    }


def numbers(view):
    return {key.decode(): struct.unpack(">q", entry.value)[0] for key, entry in view.items()}


@LOCAL_STATES
def test_both_stores_come_back(copies, local_state):
    settings = {"group.protocol": "streams", "processing.guarantee": "at_least_once"}
    options = {"inputs": ["fruit"], "outputs": ["fruit-sum", "fruit-latest"], "settings": settings}
    twin, broken = both = copies("stream-or-table", "StreamOrTableApplication", 2, **options)
    process(both, fruit(("apple", 1), ("apple", 5)), fruit(("pear", 7), ("plum", 2)))
    assert numbers(twin.view("sum")) == {"apple": 6, "pear": 7, "plum": 2}
    assert numbers(twin.view("latest")) == {"apple": 5, "pear": 7, "plum": 2}
    earlier = twins.keep(broken.state)
    process(both, fruit(("pear", None), ("apple", -2), ("cherry", 4)))
    assert numbers(twin.view("sum")) == {"apple": 4, "pear": 7, "plum": 2, "cherry": 4}
    assert numbers(twin.view("latest")) == {"apple": -2, "plum": 2, "cherry": 4}
    break_and_rebuild(broken, twin, local_state, earlier)
    process(both, fruit(("apple", 3), ("pear", 1), ("plum", None)))
    assert_equal(broken, twin)

"""``examples/word-count``: the store is lost, or damaged, and comes back, and the application continues as its twin does."""

import struct

import pytest

from kops.core.murmur2 import partition_for
from support import twins
from support.broken_copies import LOCAL_STATES, assert_equal, break_and_rebuild
from support.examples import process
from support.programs import Record

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

LINES = ["All streams lead to Kafka", "Hello Kafka streams", "", "Join Kafka Summit", "--- kafka's streams, and a lake", "The lake"]
INPUTS = {"inputs": ["lines", "word-count-app-counts-store-repartition"], "outputs": ["word-counts"]}


def lines(first, last):
    """The same words in every partition of the lines, and a line without a value."""
    made = [Record(b"%d" % at, LINES[at % 6].encode(), 1_700_000_000_000 + at * 37 % 1000, (), at % 3) for at in range(first, last)]
    return {"lines": [*made, Record(b"none", None, 1_700_000_000_999, (), 1)]}


@LOCAL_STATES
def test_counts_come_back_partitioned_by_word(copies, local_state):
    settings = {"processing.guarantee": "exactly_once_v2", "group.protocol": "classic"}
    twin, broken = both = copies("word-count", "WordCountApplication", 2, settings=settings, **INPUTS)
    process(both, lines(0, 6))
    counts = {key.decode(): struct.unpack(">q", entry.value)[0] for key, entry in twin.view("counts-store").items()}
    assert counts == {
        "all": 1, "streams": 3, "lead": 1, "to": 1, "kafka": 4, "hello": 1, "join": 1, "summit": 1, "s": 1, "and": 1, "a": 1, "lake": 2,
        "the": 1,
    }  # fmt: skip
    earlier = twins.keep(broken.state)
    process(both, lines(6, 13))
    view = twin.view("counts-store")
    assert {key: entry.partition for key, entry in view.items()} == {key: partition_for(key, 3) for key in view}
    break_and_rebuild(broken, twin, local_state, earlier, lose=broken.cluster.recreate)
    process(both, lines(13, 20))
    assert_equal(broken, twin)

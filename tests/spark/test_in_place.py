"""A processor that changes the key itself: what it puts stays in the partition of its record."""

import pytest

from kops.core.errors import ConfigError
from kops.spark.job import Job
from kops.spark.reading.ranges import TopicRange
from kops.spark.stores.jobs import VIEWS

pytestmark = pytest.mark.spark

WORDS = {"type": "plain", "explode": "java_split(value, ' ')", "key_by": "value", "in_place": True}
COUNT = {"reducer": "support.reducers:count_members", "as": "long"}


class Held:
    """A source of records that are held in memory."""

    def __init__(self, frame):
        self.frame = frame

    def read(self, _wanted):
        return self.frame


def test_words_are_counted_where_their_line_was(store_of, records_of):
    file, store = store_of(COUNT, value="string", **WORDS)
    assert store.repartition_topic is None
    lines = [(0, b"x", b"a b a", 50), (0, b"x", b"b  ", 40), (1, b"x", b"a", 30), (1, b"x", None, 60)]
    job = Job(file, store, TopicRange("t", {0: (0, 2), 1: (0, 2)}), TopicRange("c", {}), 2)
    view = VIEWS[store.type](Held(records_of(lines)), job)
    found = {(row.partition, bytes(row.key)): (int.from_bytes(row.value, "big"), row.timestamp) for row in view.rows.collect()}
    assert found == {(0, b"a"): (2, 50), (0, b"b"): (2, 40), (1, b"a"): (1, 30)}
    assert view.seen().mixed == 0


def test_members_that_no_reducer_takes_are_refused(store_of, records_of):
    file, store = store_of(COUNT, value="string", **{**WORDS, "explode": "array(named_struct('a', value))", "key_by": "value.a"})
    job = Job(file, store, TopicRange("t", {0: (0, 1)}), TopicRange("c", {}), 1)
    with pytest.raises(ConfigError, match="which a reducer does not take"):
        VIEWS[store.type](Held(records_of([(0, b"x", b"a", 1)])), job)

"""Where a key lives, as far as it is known."""

from dataclasses import replace

import pytest

from kops.core.errors import NotFound, OperationFailed, UsageProblem
from kops.core.streams.models import CLASSIC, STREAMS, Application, Part, StreamsMember, Task
from kops.core.streams.subtopologies import merged, stores_of
from kops.core.streams.topology import parse_topology
from kops.operations.streams.inspection import Inspection
from kops.operations.streams.keys import key_rows
from kops.operations.streams.reset import split_topics

KEY, PARTITION_OF_4 = b"k1", 1
"""As Kafka Streams itself says of this key in tests/streams."""
TOPOLOGY = parse_topology("""
   Sub-topology: 0
    Source: s0 (topics: [in])
      --> p0
    Processor: p0 (stores: [first])
      --> none
      <-- s0
    Source: s1 (topics: [wide])
      --> p1
    Processor: p1 (stores: [second])
      --> none
      <-- s1
   Sub-topology: 1 for global store (will not generate tasks)
    Source: s2 (topics: [countries])
      --> p2
    Processor: p2 (stores: [countries-store])
      --> none
      <-- s2
""")


def member(name, *tasks, standby=()):
    active = tuple(Task(part, number) for part, number in tasks)
    return StreamsMember(name, f"{name}-StreamThread-1-consumer", "127.0.0.1", name, None, active, tuple(Task(*one) for one in standby))


def look(application, changelogs, partitions, topology=None):
    application, _differing = merged(application, topology, partitions)
    stores = tuple(stores_of(application, topology, changelogs, partitions))
    return Inspection(application, topology, partitions, tuple(changelogs), (), (), (), (), None, stores, {})


CLASSIC_APP = Application("app", CLASSIC, "STABLE", parts=(Part("0", ("in",)), Part("1", ("other",))))
TOPICS = {"in": 4, "other": 4, "app-first-changelog": 4}


def test_where_any_part_has_it_at_the_same_instance_that_is_the_answer():
    seen = look(replace(CLASSIC_APP, members=(member("one", ("0", 1), ("1", 1)),)), ["app-first-changelog"], TOPICS)
    (row,) = key_rows(seen, KEY, "k1")
    assert (row["partition"], row["active"]["client_id"], row["task"]) == (PARTITION_OF_4, "one", None)


def test_where_parts_are_apart_both_are_named():
    seen = look(replace(CLASSIC_APP, members=(member("one", ("0", 1)), member("two", ("1", 1)))), ["app-first-changelog"], TOPICS)
    (row,) = key_rows(seen, KEY, "k1")
    assert row["active"] is None
    assert all(text in row["note"] for text in ("(one) (task 0_1)", "(two) (task 1_1)", "--topology"))


def test_the_number_of_partitions_tells_which_part_it_is():
    seen = look(
        replace(CLASSIC_APP, members=(member("one", ("0", 1)), member("two", ("1", 1), standby=[("0", 1)]))),
        ["app-first-changelog"],
        TOPICS | {"other": 3},
    )
    (row,) = key_rows(seen, KEY, "k1")
    assert (row["task"], row["active"]["client_id"], [one["client_id"] for one in row["standby"]]) == ("0_1", "one", ["two"])


def test_nobody_runs_or_nobody_has_the_task():
    (row,) = key_rows(look(CLASSIC_APP, ["app-first-changelog"], TOPICS), KEY, "k1")
    assert (row["partition"], row["note"]) == (PARTITION_OF_4, "no instance runs")
    alone = replace(CLASSIC_APP, parts=CLASSIC_APP.parts[:1], members=(member("one", ("0", 0)),))
    (row,) = key_rows(look(alone, ["app-first-changelog"], TOPICS), KEY, "k1")
    assert "a rebalance is in progress" in row["note"]


def test_a_store_has_the_partitions_of_its_own_sources():
    topics = {"in": 4, "wide": 6, "countries": 2, "app-first-changelog": 6, "app-second-changelog": 6}
    running = Application("app", STREAMS, "STABLE", (member("one", *(("0", number) for number in range(6))),), complete=True)
    rows = {
        row["store"]: row for row in key_rows(look(running, ["app-first-changelog", "app-second-changelog"], topics, TOPOLOGY), KEY, "k1")
    }
    assert rows["first"]["partition"] == PARTITION_OF_4
    assert (rows["countries-store"]["partition"], rows["countries-store"]["active"]["client_id"]) == (None, "one")
    part = Part("0", ("in", "wide"), changelog_topics=("app-first-changelog",))
    (row,) = key_rows(look(replace(running, parts=(part,)), ["app-first-changelog"], topics), KEY, "k1")
    assert "topics of 4, 6" in row["note"]


def test_unknown_stores_are_named():
    seen = look(CLASSIC_APP, ["app-first-changelog"], TOPICS)
    with pytest.raises(NotFound, match="has no store second"):
        key_rows(seen, KEY, "k1", ["second"])
    with pytest.raises(OperationFailed, match="no store of app is known"):
        key_rows(look(CLASSIC_APP, [], TOPICS), KEY, "k1")


@pytest.mark.parametrize(
    ("values", "topics"),
    [
        (["a,b"], ("a", "b")),
        (["a:0,1", "b"], ("a:0,1", "b")),
        (["a:0,3-5,b"], ("a:0,3-5", "b")),
        (["a", "a:1"], ("a", "a:1")),
        ([], ()),
    ],
)
def test_topics_as_apaches_tool_takes_them(values, topics):
    assert split_topics(values) == topics


def test_an_empty_topic_is_refused():
    with pytest.raises(UsageProblem):
        split_topics(["a,,b"])

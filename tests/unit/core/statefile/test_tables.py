"""State files with tables, joins, versioned and plain stores: what they say, and what is refused with the field named."""

import pytest

from kops.core.errors import ConfigError
from kops.core.statefile import parse_state_file
from kops.operations.state.replace import streams_settings

TEXT = {"topic": "t", "key": "string", "value": "string"}
USERS = {"from": {"topic": "users", "key": "string", "value": {"format": "json", "schema": "region string"}}}
PREFERENCES = {"from": {"topic": "preferences", "key": "string", "value": {"format": "json", "schema": "age int"}}}
JOIN = {"table": "preferences", "value": "left.region", "as": "string"}


def parsed(streams=None, tables=None, **stores):
    body = {"application": "a", "streams": streams or {}, "stores": {name.replace("_", "-"): store for name, store in stores.items()}}
    return {store.name: store for store in parse_state_file("state.yaml", body | ({"tables": tables} if tables else {})).stores}


def test_a_grouped_table_over_a_join_reads_both_topics():
    file = parsed(
        users=USERS,
        preferences=PREFERENCES,
        per_region={"from": {"table": "users"}, "join": JOIN, "where": "value <> ''", "key_by": "value", "aggregate": {"count": True}},
    )
    store = file["per-region"]
    assert [source.topic for source in store.inputs] == ["users", "preferences"]
    assert (store.type, store.changelog, store.repartition_topic) == ("table", "a-per-region-changelog", "a-per-region-repartition")
    assert (store.table.join.kind, store.table.where, store.aggregate.kind) == ("inner", "value <> ''", "count")
    assert file["users"].table is None


def test_a_table_without_a_store_stands_under_tables():
    file = parsed(
        tables={"people": {"from": {"table": "users"}, "join": JOIN}},
        users=USERS,
        preferences=PREFERENCES,
        g={"from": {"table": "people"}, "key_by": "value", "aggregate": {"sum": "1", "as": "long"}},
    )
    assert file["g"].table.parent.name == "people"
    assert file["g"].table.joins


def test_with_topology_optimization_the_topic_of_a_table_is_its_changelog():
    file = parsed(
        {"topology_optimization": "all"},
        t={"from": TEXT},
        named={"from": TEXT, "changelog": "own"},
        c={"from": TEXT, "aggregate": {"count": True}},
    )
    assert (file["t"].changelog, file["t"].reuses_source) == ("t", True)
    assert [file[name].changelog for name in ("named", "c")] == ["own", "a-c-changelog"]


def test_versioned_stores_and_several_topics():
    file = parsed(
        v={"type": "versioned", "history_retention": "1h", "from": TEXT},
        m={"from": {"topics": ["x", "y"], "key": "string", "value": "string"}, "aggregate": {"count": True}},
        p={"type": "plain", "from": TEXT},
    )
    assert (file["v"].history_ms, streams_settings(file["v"])["min.compaction.lag.ms"]) == (3_600_000, "90000000")
    assert [source.topic for source in file["m"].inputs] == ["x", "y"]
    assert (file["p"].type, streams_settings(file["p"])["cleanup.policy"]) == ("plain", "compact")


@pytest.mark.parametrize(
    ("stores", "field", "words"),
    [
        ({"s": {"from": {"table": "user"}}}, "stores.s.from.table", "did you mean users"),
        ({"s": {"from": {"table": "c"}}, "c": {"from": TEXT, "aggregate": {"count": True}}}, "stores.s.from.table", "not a table"),
        ({"s": {"from": {"table": "x"}}, "x": {"from": {"table": "s"}}}, "from.table", "of itself"),
        ({"s": {"from": {"table": "users"}, "key_by": "value.region"}}, "stores.s.aggregate", "missing"),
        ({"s": {"from": {"table": "users"}, "aggregate": {"count": True}}}, "stores.s.key_by", "missing"),
        ({"s": {"from": {"table": "users"}, "key_by": "key", "aggregate": {"last": "value"}}}, "stores.s.aggregate", "subtract"),
        ({"s": {"from": {"table": "users"}, "join": {**JOIN, "type": "outer", "on": "left.region"}}}, "join.type", "inner or left"),
        ({"s": {"from": {"table": "users"}, "join": {"table": "preferences", "value": "left"}}}, "join.as", "missing"),
        (
            {"s": {"from": {"table": "users"}, "join": {**JOIN, "table": "longs"}}, "longs": {"from": {**TEXT, "key": "long"}}},
            "join.table",
            "long",
        ),
        ({"s": {"type": "versioned", "from": TEXT}}, "stores.s.history_retention", "missing"),
        ({"s": {"type": "plain", "from": TEXT, "aggregate": {"count": True}}}, "stores.s.aggregate", "timestamp"),
        ({"s": {"from": {"topics": ["x", "y"], "key": "string", "value": "string"}}}, "stores.s.from.topics", "one topic"),
        ({"s": {"from": {"topics": ["x", "x"], "key": "string", "value": "string"}, "aggregate": {"count": True}}}, "from.topics", "twice"),
    ],
)
def test_what_is_wrong_is_named(stores, field, words):
    with pytest.raises(ConfigError) as wrong:
        parsed(users=USERS, preferences=PREFERENCES, **stores)
    assert field in wrong.value.message
    assert words in f"{wrong.value.message} {wrong.value.hint}"

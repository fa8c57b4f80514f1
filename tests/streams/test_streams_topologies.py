"""What `Topology.describe()` prints, for topologies of every kind, by two versions of the library: read back as its own methods say it."""

import pytest
import yaml

from kops.core.records.format_guess import FormatGuess
from kops.core.statefile import parse_state_file
from kops.core.statefile.draft import Facts, StoreFacts, TopicFacts
from kops.core.statefile.draft_stores import drafted
from kops.core.statefile.models import KEY_VALUE, SESSION, VERSIONED, WINDOW
from kops.core.streams.topology import Topology, parse_topology
from kops.core.streams.topology_trace import table_trace, traces
from support.streams_instances import described_topologies

pytestmark = pytest.mark.streams


@pytest.fixture(scope="module", params=[*(pytest.param(version, marks=pytest.mark.long) for version in ("4.1.1", "4.3.1")), "4.4.0"])
def described(request, jdk):
    return described_topologies(request.param)


def nodes(topology: Topology):
    return [
        [part.number, node.kind, node.name, sorted(node.topics), node.pattern, sorted(node.stores), sorted(node.predecessors)]
        for part in sorted(topology.parts, key=lambda part: part.number)
        for node in sorted(part.nodes, key=lambda node: node.name)
    ]


def said(one):
    return [
        [
            node.get("subtopology", node.get("global")),
            node["kind"],
            node["name"],
            node.get("topics") or [topic for topic in [node.get("topic")] if topic],
            node.get("pattern"),
            node.get("stores", []),
            node["predecessors"],
        ]
        for node in sorted(one["nodes"], key=lambda node: (node.get("subtopology", node.get("global")), node["name"]))
    ]


def test_every_node_store_and_topic_is_found(described):
    assert len(described) > 30
    for name, one in described.items():
        for text in (one["text"], f"10:02:11 INFO topology is {one['text']}10:02:12 INFO started\r\n"):
            assert nodes(parse_topology(text)) == said(one), name


def test_internal_topics_inputs_and_outputs(described):
    expected = {
        "count-of-words": ({"counts-store-repartition"}, ("in",), ("word-counts",)),
        "foreign-key-join": (
            {"fk-subscription-registration-topic", "fk-subscription-response-topic"},
            ("orders", "customers"),
            (),
        ),
        "join-with-global-table": (set(), ("in", "countries"), ("out",)),
        "branched": (set(), ("in",), ("long", "short")),
        "topics-by-pattern": (set(), (), ()),
    }
    for name, (internal, inputs, outputs) in expected.items():
        found = parse_topology(described[name]["text"])
        assert (found.internal_topics, found.input_topics, found.output_topics) == (internal, inputs, outputs), name
    assert parse_topology(described["topics-by-pattern"]["text"]).parts[0].patterns == ("events-.*",)
    assert parse_topology(described["topic-by-content"]["text"]).chooses_topics == ("KSTREAM-SINK-0000000001",)


STRING = FormatGuess("string", "as this test says")
FILLED = {
    "topic": "in",
    "key_by": "value",
    "where": "value is not null",
    "explode": "split(value, ' ')",
    "aggregate": {"count": True},
    "type": "inner",
    "value": "left",
    "on": "left",
    "size": "1m",
    "gap": "1m",
    "grace": "0ms",
    "retention": "2m",
    "version": "4.3",
    "timestamp": "timestamp_ms",
    "history_retention": "1h",
}


def filled(body):
    """Return a draft as a person would finish it."""
    answers = (
        FILLED | ({"type": "key-value"} if "from" in body else {}) | (dict.fromkeys(("key", "value"), "string") if "topic" in body else {})
    )
    return {name: filled(value) if isinstance(value, dict) else answers[name] if value == "TODO" else value for name, value in body.items()}


@pytest.mark.parametrize("kind", [KEY_VALUE, WINDOW, SESSION, VERSIONED])
def test_every_store_is_drafted_or_left_out_with_a_reason_and_a_finished_draft_is_a_state_file(described, kind):
    for name, one in described.items():
        topology = parse_topology(one["text"])
        found = traces(topology)
        if not found:
            continue
        hidden = [trace for each in found.values() for table in each.tables if (trace := table_trace(topology, table))]
        facts = {store: StoreFacts(changelog=True, type=kind, key=STRING, value=STRING) for store in found}
        topics = {topic: TopicFacts(STRING, STRING) for topic in topology.input_topics}
        draft = drafted("app", found, hidden, Facts(facts, topics))
        body = yaml.safe_load(draft.text())
        assert body == draft.as_json()["state_file"], name
        if body["stores"] == "TODO":
            assert set(draft.skipped) == set(found), name
            continue
        assert {*body["stores"], *draft.skipped} == set(found), name
        stores = {store.name for store in parse_state_file(name, filled(body)).stores}
        assert stores == set(body["stores"]), name

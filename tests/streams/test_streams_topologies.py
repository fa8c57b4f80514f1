"""What `Topology.describe()` prints, for topologies of every kind, by two versions of the library: read back as its own methods say it."""

import pytest

from kops.core.streams.topology import Topology, parse_topology
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

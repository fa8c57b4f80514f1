"""Where a cluster is not as a captured program says."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kops.core.streams.capture_differences import Difference, differences, internal_topics
from kops.core.streams.capture_file import read_capture

CAPTURED = json.loads((Path(__file__).parent / "capture.json").read_text(encoding="utf-8"))
COUNTS = "many-counts-changelog"


@pytest.fixture
def capture():
    return read_capture(CAPTURED, "c.json")


@pytest.fixture
def cluster(capture):
    """Topics and settings as the program makes them: inputs of 3 partitions, each repartition topic of as many as it says, or 3."""
    topics = {topic for part in capture.subtopologies for topic in part.source_topics or ()}
    internal = [topic for part in capture.subtopologies for topic in (*part.repartition_topics, *part.changelogs)]
    partitions = dict.fromkeys(sorted(topics), 3) | {topic.name: topic.partitions or 3 for topic in internal}
    partitions["many-lengths-changelog"] = 7
    return partitions, {topic.name: dict(topic.settings) for topic in internal}


def test_a_cluster_that_the_program_made_does_not_differ(capture, cluster):
    assert differences(capture, *cluster, internal_topics(capture)) == []


def test_internal_topics_include_those_of_a_foreign_key_join(capture):
    kinds = ("REGISTRATION-0000000027", "RESPONSE-0000000035")
    assert {f"many-KTABLE-FK-JOIN-SUBSCRIPTION-{kind}-topic" for kind in kinds} < set(internal_topics(capture))


def test_a_missing_changelog_is_named_with_its_store(capture, cluster):
    partitions, settings = cluster
    del partitions[COUNTS]
    assert differences(capture, partitions, settings, []) == [Difference("missing", COUNTS, "counts", program="3 partitions")]


def test_a_missing_repartition_topic_is_created_with_as_many_partitions_as_its_program_says(capture, cluster):
    partitions, settings = cluster
    del partitions["many-apart-repartition"]
    assert differences(capture, partitions, settings, []) == [Difference("missing", "many-apart-repartition", program="7 partitions")]


def test_topics_that_the_program_does_not_have(capture, cluster):
    own = [COUNTS, "many-old-changelog"]
    assert differences(capture, *cluster, own) == [Difference("not in program", "many-old-changelog")]


BOTH = (("apart-repartition", None), ("lengths-changelog", "lengths"))


def test_partitions(capture, cluster):
    partitions, settings = cluster
    partitions |= {COUNTS: 4, "many-apart-repartition": 8, "many-lengths-changelog": 8}
    apart, lengths = (Difference("partitions", f"many-{name}", store, program="7", cluster="8") for name, store in BOTH)
    counts = Difference("partitions", COUNTS, "counts", program="3", cluster="4")
    assert differences(capture, partitions, settings, []) == [apart, counts, lengths]


def test_a_repartition_topic_that_got_more_partitions_leaves_its_healthy_changelog_alone(capture, cluster):
    partitions, settings = cluster
    partitions["many-apart-repartition"] = 8
    (only,) = differences(capture, partitions, settings, [])
    assert (only.topic, only.program, only.cluster) == ("many-apart-repartition", "7", "8")
    for name in [topic for topic, count in partitions.items() if topic.endswith("-repartition") and count == 3]:
        (derived,) = differences(capture, {**partitions, "many-apart-repartition": 7, name: 4}, settings, [])  # as many as its input has
        assert (derived.topic, derived.program, derived.cluster) == (name, "3", "4")


def test_tasks_are_unknown_where_a_topic_is_missing_or_a_pattern(capture, cluster):
    partitions, settings = cluster
    partitions[COUNTS] = 4
    without = {topic: count for topic, count in partitions.items() if topic != "clicks"}
    assert differences(capture, without, settings, []) == []
    parts = tuple(replace(part, source_topics=None) for part in capture.subtopologies)
    assert differences(replace(capture, subtopologies=parts), partitions, settings, []) == []


def test_settings(capture, cluster):
    partitions, settings = cluster
    settings["many-windows-changelog"] |= {"cleanup.policy": "delete,compact", "retention.ms": "1"}
    settings[COUNTS] |= {"segment.ms": "5", "max.message.bytes": "7"}
    assert differences(capture, partitions, settings, []) == [
        Difference("setting", COUNTS, "counts", "segment.ms", "600000", "5"),
        Difference("setting", "many-windows-changelog", "windows", "retention.ms", "86760000", "1"),
    ]


@pytest.mark.parametrize(
    ("policy", "found"), [("compact", []), ("compact,delete", []), ("delete", ["cleanup.policy"]), (None, ["cleanup.policy"])]
)
def test_a_topic_that_is_its_own_changelog_must_be_compacted(capture, cluster, policy, found):
    partitions, settings = cluster
    parts = tuple(
        replace(part, changelogs=tuple(replace(topic, is_source_topic=topic.name == COUNTS) for topic in part.changelogs))
        for part in capture.subtopologies
    )
    settings[COUNTS] = {"cleanup.policy": policy, "segment.ms": "1"}
    partitions[COUNTS] = 9
    assert [each.setting for each in differences(replace(capture, subtopologies=parts), partitions, settings, [])] == found

"""What the options of ``topics create`` come to, and changes as JSON."""

import json

import pytest

from kops.core.errors import UsageProblem
from kops.core.models import NewTopic
from kops.core.topics.changes import Changes
from kops.core.topics.changes import TopicRequest as Request


@pytest.mark.parametrize(
    ("request_", "inherited", "settings"),
    [
        (Request(), None, {}),
        (Request(compacted=True), None, {"cleanup.policy": "compact"}),
        (Request(compacted=True, expire_ms=5), None, {"cleanup.policy": "compact,delete", "retention.ms": "5"}),
        (Request(expire_ms=5), None, {"retention.ms": "5"}),
        (Request(expire_ms=5), {"cleanup.policy": "compact"}, {"cleanup.policy": "compact,delete", "retention.ms": "5"}),
        (
            Request(compacted=True),
            {"cleanup.policy": "compact,delete", "segment.ms": "9"},
            {"cleanup.policy": "compact", "segment.ms": "9"},
        ),
        (Request(settings={"segment.ms": "1"}), {"segment.ms": "9", "retention.ms": "3"}, {"segment.ms": "1", "retention.ms": "3"}),
    ],
)
def test_options_to_settings(request_, inherited, settings):
    assert request_.own_settings(inherited) == settings


@pytest.mark.parametrize(
    "request_",
    [Request(compacted=True, settings={"cleanup.policy": "delete"}), Request(expire_ms=1, settings={"retention.ms": "1"})],
)
def test_options_that_contradict_each_other(request_):
    with pytest.raises(UsageProblem, match="contradict"):
        request_.own_settings()


CHANGES = Changes(
    create=(NewTopic("new", 2, 1, {"segment.ms": "1"}),),
    alter={"both": {"segment.ms": "2", "retention.ms": None}, "set": {"segment.ms": "3"}},
    grow={"both": 4, "grown": 5},
    delete=("old",),
)


def test_changes_are_read_back_from_json():
    assert Changes.of_json(json.loads(json.dumps(CHANGES.as_json()))) == CHANGES


def test_changes_without_some_topics():
    assert CHANGES.names == ("new", "both", "set", "grown", "old")
    left = CHANGES.without({"new", "both", "old"})
    assert left == Changes(alter={"set": {"segment.ms": "3"}}, grow={"grown": 5})
    assert not left.without({"set", "grown"})

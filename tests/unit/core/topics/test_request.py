"""What the options of ``topics create`` come to, and what is unsafe about it."""

import pytest

from kops.core.errors import UsageProblem
from kops.core.topics.request import Wish, wished_settings
from kops.core.topics.warnings import Effective, warnings_for

SAFE = {"cleanup.policy": "delete", "retention.ms": "604800000", "min.insync.replicas": "2", "unclean.leader.election.enable": "false"}


@pytest.mark.parametrize(
    ("wish", "inherited", "settings"),
    [
        (Wish(), None, {}),
        (Wish(compacted=True), None, {"cleanup.policy": "compact"}),
        (Wish(compacted=True, expire_ms=5), None, {"cleanup.policy": "compact,delete", "retention.ms": "5"}),
        (Wish(expire_ms=5), None, {"retention.ms": "5"}),
        (Wish(expire_ms=5), {"cleanup.policy": "compact"}, {"cleanup.policy": "compact,delete", "retention.ms": "5"}),
        (Wish(compacted=True), {"cleanup.policy": "compact,delete", "segment.ms": "9"}, {"cleanup.policy": "compact", "segment.ms": "9"}),
        (Wish(settings={"segment.ms": "1"}), {"segment.ms": "9", "retention.ms": "3"}, {"segment.ms": "1", "retention.ms": "3"}),
    ],
)
def test_options_to_settings(wish, inherited, settings):
    assert wished_settings(wish, inherited) == settings


@pytest.mark.parametrize(
    "wish", [Wish(compacted=True, settings={"cleanup.policy": "delete"}), Wish(expire_ms=1, settings={"retention.ms": "1"})]
)
def test_options_that_contradict_each_other(wish):
    with pytest.raises(UsageProblem, match="contradict"):
        wished_settings(wish)


def warned(name="t", factor=3, brokers=3, given=None, **defaults):
    given = given or {}
    return warnings_for(
        [Effective(name, factor, {**SAFE, **{k.replace("_", "."): v for k, v in defaults.items()}, **given}, given)], brokers
    )


def test_a_safe_topic_has_no_warnings():
    assert warned() == []
    assert warned(factor=1, brokers=1, min_insync_replicas="1") == []


@pytest.mark.parametrize(
    ("made", "text"),
    [
        ({"factor": 1, "min_insync_replicas": "1"}, "replication factor 1 on a cluster of 3 brokers"),
        ({"min_insync_replicas": "3"}, "min.insync.replicas 3 equals the replication factor"),
        ({"factor": 1, "brokers": 1}, "min.insync.replicas 2 is above the replication factor 1"),
        ({"given": {"cleanup.policy": "compact"}}, "compaction needs a key on every record"),
        ({"given": {"cleanup.policy": "compact", "retention.ms": "5"}}, "retention.ms has no effect"),
        ({"given": {"cleanup.policy": "compact,delete"}}, "a key that is not written again within 7d disappears"),
        ({"given": {"cleanup.policy": ""}}, "keeps every record for ever"),
        ({"given": {"retention.ms": "60000"}}, "records are deleted after 1m"),
        ({"given": {"unclean.leader.election.enable": "true"}}, "records that were acknowledged can be lost"),
        ({"name": "a.b_c"}, "both '.' and '_'"),
        ({"name": "__mine"}, "names that begin with __"),
    ],
)
def test_unsafe_topics(made, text):
    assert any(text in warning for warning in warned(**made)), warned(**made)


def test_a_warning_names_all_topics_that_it_is_true_of():
    topics = [Effective(f"t{number}", 1, SAFE | {"min.insync.replicas": "1"}, {}) for number in range(7)]
    assert warnings_for(topics, 3) == [
        "t0, t1, t2, t3, t4 and 2 more: replication factor 1 on a cluster of 3 brokers: records are lost with the disk of one of them"
    ]

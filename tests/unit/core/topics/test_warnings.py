"""What becomes unsafe by changing a topic, and what was unsafe before."""

import pytest

from kops.core.topics.warnings import EffectiveSettings, change_warnings, warnings_for

PLAIN = {
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "min.insync.replicas": "2",
    "max.message.bytes": "1048588",
    "delete.retention.ms": "86400000",
}


def warned(before=None, **after):
    old = PLAIN | (before or {})
    new = old | {name.replace("_", "."): value for name, value in after.items()}
    return change_warnings([(EffectiveSettings("t", 3, old, {}), EffectiveSettings("t", 3, new, {}))], 3)


@pytest.mark.parametrize(
    ("after", "text"),
    [
        ({"cleanup_policy": "compact"}, "compaction keeps the latest record of each key and deletes the others, and all without a key"),
        ({"cleanup_policy": "compact,delete"}, "a key that is not written again within 7d disappears"),
        ({"cleanup_policy": ""}, "an empty cleanup.policy keeps every record for ever"),
        ({"min_insync_replicas": "4"}, "min.insync.replicas 4 is above the replication factor 3"),
        ({"retention_ms": "60000"}, "records are deleted after 1m"),
        ({"max_message_bytes": "1000"}, "larger batches of producers are rejected"),
        ({"unclean_leader_election_enable": "true"}, "records that were acknowledged can be lost"),
    ],
)
def test_what_becomes_unsafe(after, text):
    assert any(text in warning for warning in warned(**after)), warned(**after)


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ({"cleanup.policy": "compact"}, {"cleanup_policy": "delete"}, "without compaction the latest records of keys expire"),
        ({"cleanup.policy": ""}, {"cleanup_policy": "delete"}, "records begin to expire: retention.ms is 604800000 (7d)"),
        ({"cleanup.policy": "compact"}, {"delete_retention_ms": "1000"}, "misses deletions of keys"),
    ],
)
def test_what_a_policy_did_until_now(before, after, text):
    assert any(text in warning for warning in warned(before, **after)), warned(before, **after)


def test_what_was_so_before_is_no_news():
    unsafe = {"min.insync.replicas": "4", "unclean.leader.election.enable": "true", "retention.ms": "60000"}
    assert warned(unsafe, segment_ms="60000") == []
    assert warned({"cleanup.policy": "compact", "retention.ms": "-1"}, cleanup_policy="delete") == []
    assert warned(delete_retention_ms="1000") == []


SAFE = {"cleanup.policy": "delete", "retention.ms": "604800000", "min.insync.replicas": "2", "unclean.leader.election.enable": "false"}


def unsafe(name="t", factor=3, brokers=3, given=None, **defaults):
    given = given or {}
    return warnings_for(
        [EffectiveSettings(name, factor, {**SAFE, **{k.replace("_", "."): v for k, v in defaults.items()}, **given}, given)], brokers
    )


def test_a_safe_topic_has_no_warnings():
    assert unsafe() == []
    assert unsafe(factor=1, brokers=1, min_insync_replicas="1") == []


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
    assert any(text in warning for warning in unsafe(**made)), unsafe(**made)


def test_a_warning_names_all_topics_that_it_is_true_of():
    topics = [EffectiveSettings(f"t{number}", 1, SAFE | {"min.insync.replicas": "1"}, {}) for number in range(7)]
    assert warnings_for(topics, 3) == [
        "t0, t1, t2, t3 and 3 more: replication factor 1 on a cluster of 3 brokers: records are lost with the disk of one of them"
    ]

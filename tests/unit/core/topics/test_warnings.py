"""What becomes unsafe by changing a topic, and what was unsafe before."""

import pytest

from kops.core.topics.warnings import Effective, change_warnings

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
    return change_warnings([(Effective("t", 3, old, {}), Effective("t", 3, new, {}))], 3)


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

"""A refusal names the right and the resource that it is about."""

import pytest

from kops.core.errors import AuthorizationFailed, TimedOut
from kops.core.rights import missing_right, reason


@pytest.mark.parametrize(
    ("error", "doing", "right"),
    [
        ("GROUP_AUTHORIZATION_FAILED", "describe group billing", "DESCRIBE on group billing"),
        ("GROUP_AUTHORIZATION_FAILED", "read the committed offsets of group a (b) c", "DESCRIBE on group a (b) c"),
        ("GROUP_AUTHORIZATION_FAILED", "delete group billing", "DELETE on group billing"),
        ("GROUP_AUTHORIZATION_FAILED", "commit offsets of group billing", "READ on group billing"),
        ("GroupAuthorizationFailedError", "delete committed offsets of group billing (orders:0)", "DELETE on group billing"),
        ("TopicAuthorizationFailedError", "commit offsets of group billing (orders:0)", "READ on topic orders"),
        ("TOPIC_AUTHORIZATION_FAILED", "commit orders:0 of group billing", "READ on topic orders"),
        ("TOPIC_AUTHORIZATION_FAILED", "read the committed offset of orders:3 of group billing", "DESCRIBE on topic orders"),
        ("TOPIC_AUTHORIZATION_FAILED", "read the committed offsets of group billing (orders:3)", "DESCRIBE on topic orders"),
        ("TOPIC_AUTHORIZATION_FAILED", "find the log end offset of orders:0", "DESCRIBE on topic orders"),
        ("TOPIC_AUTHORIZATION_FAILED", "find the offset of a time of my.orders-1:12", "DESCRIBE on topic my.orders-1"),
        ("TOPIC_AUTHORIZATION_FAILED", "read orders:0 at offset 5", "READ on topic orders"),
        ("TOPIC_AUTHORIZATION_FAILED", "list the producers of orders:0", "READ on topic orders"),
        ("TOPIC_AUTHORIZATION_FAILED", "describe the settings of topic orders", "DESCRIBE_CONFIGS on topic orders"),
        ("TOPIC_AUTHORIZATION_FAILED", "delete records of orders:0", "DELETE on topic orders"),
        ("TOPIC_AUTHORIZATION_FAILED", "produce to orders", "WRITE on topic orders"),
        ("TOPIC_AUTHORIZATION_FAILED", "create topic orders", "CREATE on topic orders"),
        ("CLUSTER_AUTHORIZATION_FAILED", "describe the settings of broker 1", "DESCRIBE_CONFIGS on the cluster"),
        ("CLUSTER_AUTHORIZATION_FAILED", "describe the client quotas", "DESCRIBE_CONFIGS on the cluster"),
        ("CLUSTER_AUTHORIZATION_FAILED", "list the settings of every client metrics", "DESCRIBE_CONFIGS on the cluster"),
        ("CLUSTER_AUTHORIZATION_FAILED", "alter the client quotas", "ALTER_CONFIGS on the cluster"),
        ("CLUSTER_AUTHORIZATION_FAILED", "alter broker 1", "ALTER_CONFIGS on the cluster"),
        ("CLUSTER_AUTHORIZATION_FAILED", "alter the SCRAM credentials of alice", "ALTER on the cluster"),
        ("CLUSTER_AUTHORIZATION_FAILED", "reassign partitions", "ALTER on the cluster"),
        ("GROUP_AUTHORIZATION_FAILED", "describe the settings of group billing", "DESCRIBE_CONFIGS on group billing"),
        ("GROUP_AUTHORIZATION_FAILED", "alter group billing", "ALTER_CONFIGS on group billing"),
        ("CLUSTER_AUTHORIZATION_FAILED", "list the groups", "DESCRIBE on the cluster"),
        ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "describe transactions", "DESCRIBE on transactional id"),
        ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "abort the transaction of transactional id a b", "WRITE on transactional id a b"),
        ("GROUP_AUTHORIZATION_FAILED", "describe the offsets of group billing", "DESCRIBE on group billing"),
        ("GROUP_AUTHORIZATION_FAILED", "remove members of group billing", "READ on group billing"),
        ("GROUP_AUTHORIZATION_FAILED", "remove member a-1 of group billing", "READ on group billing"),
        ("CLUSTER_AUTHORIZATION_FAILED", "move on broker 1 orders:0", "ALTER on the cluster"),
        ("CLUSTER_AUTHORIZATION_FAILED", "check the levels of features", "ALTER on the cluster"),
        ("GROUP_AUTHORIZATION_FAILED", "describe the offsets of share groups", "DESCRIBE on group"),
        ("GROUP_AUTHORIZATION_FAILED", "move the start offsets of group billing", "READ on group billing"),
        ("GROUP_AUTHORIZATION_FAILED", "delete the start offsets of group billing", "DELETE on group billing"),
        ("TOPIC_AUTHORIZATION_FAILED", "move the start offsets of group billing in orders", "READ on topic orders"),
        ("TOPIC_AUTHORIZATION_FAILED", "delete the start offsets of group billing in orders", "READ on topic orders"),
        ("TopicAuthorizationFailedError", "[Error 29] TopicAuthorizationFailedError: fetching orders:0", "READ on topic orders"),
        ("TransactionalIdAuthorizationFailedError", "[Error 53] X: use transactional id kops-1", "WRITE on transactional id kops-1"),
        ("TopicAuthorizationException", "Not authorized to access topics: [orders]", "READ on topic orders"),
        ("TOPIC_AUTHORIZATION_FAILED", "do something else", None),
        ("SASL_AUTHENTICATION_FAILED", "describe topic orders", None),
    ],
)
def test_missing_right(error, doing, right):
    found = missing_right(error, doing)
    assert (found and f"{found.operation} on {found.resource}") == right


def test_reasons_are_short():
    assert reason(AuthorizationFailed("a long story", needs="READ on topic orders")) == "lacks READ on topic orders"
    assert reason(TimedOut("too late")) == "too late"

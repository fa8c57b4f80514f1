"""Which Kafka release first has a request, to say so where brokers are older."""

from __future__ import annotations

import re
from typing import Any

from kops.core.errors import BrokersTooOld

OLDEST = "2.8"
"""The oldest Apache Kafka that kops is for: the first whose brokers give topics ids and tell their registered brokers."""
TOO_OLD = ("UNSUPPORTED_VERSION", "_UNSUPPORTED_FEATURE")
"""What the clients say of a request, or a version of one, that a broker does not know."""

_SINCE = {
    "OffsetFetch": "2.5",
    "OffsetDelete": "2.4",
    "IncrementalAlterConfigs": "2.3",
    "ListPartitionReassignments": "2.4",
    "DescribeCluster": "2.8",
    "DescribeProducers": "2.8",
    "DescribeTransactions": "3.0",
    "ListTransactions": "3.0",
    "DescribeQuorum": "3.3",
    "DescribeTopicPartitions": "3.8",
    "ConsumerGroupDescribe": "4.0",
    "ShareGroupDescribe": "4.1",
    "StreamsGroupDescribe": "4.1",
}
"""By the request's name, the release in which it can be used as kops does, without early access."""
_NAME = re.compile(r"'(\w+?)(?:Request)?' Kafka protocol")


def too_old(doing: str, error: Any, release: str) -> BrokersTooOld:
    """Return the error for a request that the brokers do not know.

    :param error: kafka-python's ``IncompatibleBrokerVersion``, which names the request
    :param release: of the brokers, as their requests tell it
    """
    named = _NAME.search(str(error))
    since = _SINCE.get(named[1] if named else "")
    needs = f"this needs Kafka {since}" if since else "this needs a newer Kafka"
    return BrokersTooOld(
        f"cannot {doing}: {needs}, and the brokers speak the protocol of {release}",
        hint=f"kops works with Kafka {OLDEST} and newer, and this request not with every one of those; upgrade the brokers to use it",
        kafka_error=TOO_OLD[0],
        kafka_version=release,
        needs_version=since,
    )

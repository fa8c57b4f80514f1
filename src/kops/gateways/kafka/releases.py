"""The first Kafka release that has a request, for errors with older brokers."""

from __future__ import annotations

import re
from typing import Any

from kops.core.errors import BrokersTooOld

OLDEST = "2.8"
"""The oldest Apache Kafka that kops supports: the first whose brokers give topics ids and report their registered brokers."""
TOO_OLD = ("UNSUPPORTED_VERSION", "_UNSUPPORTED_FEATURE")
"""The clients' messages about a request, or a version of one, that a broker does not support."""

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
"""By request name, the first release in which kops' use of it works, without early access."""
_NAME = re.compile(r"'(\w+?)(?:Request)?' Kafka protocol")


def too_old(doing: str, error: Any, release: str) -> BrokersTooOld:
    """Return the error for a request that the brokers do not know.

    :param error: kafka-python's ``IncompatibleBrokerVersion``, which names the request
    :param release: of the brokers, inferred from their requests
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

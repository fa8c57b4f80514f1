"""Errors of both Kafka clients -> KopsError: the one place that knows Kafka's error codes by name, and the release of each request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from kops.core.errors import (
    AuthenticationFailed,
    AuthorizationFailed,
    BrokersTooOld,
    ConfigError,
    GroupActive,
    KopsError,
    NotFound,
    OperationFailed,
    SecurityDisabled,
    TimedOut,
    Unreachable,
    UsageProblem,
)
from kops.core.rights import missing_right

K = TypeVar("K")
T = TypeVar("T")

OLDEST = "2.8"
"""The oldest Apache Kafka that kops supports: the first whose brokers give topics ids and report their registered brokers."""
TOO_OLD = ("UNSUPPORTED_VERSION", "_UNSUPPORTED_FEATURE")
"""The clients' messages about a request, or a version of one, that a broker does not support."""
_SINCE = {
    "AddRaftVoter": "3.9",
    "ConsumerGroupDescribe v1": "4.0",
    "DescribeCluster v2": "4.0",
    "DescribeShareGroupOffsets": "4.1",
    "DescribeShareGroupOffsets v1": "4.2",
    "DescribeUserScramCredentials": "3.5",
    "ListConfigResources": "3.7",
    "ListOffsets v7": "3.0",
    "ListOffsets v8": "3.5",
    "ListOffsets v9": "3.9",
    "ListOffsets v11": "4.2",
    "UpdateFeatures v1": "3.3",
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
"""By request name, and its version where an earlier one is not enough, the first release in which kops' use of it works, without early
access and without ZooKeeper."""
_NAME = re.compile(r"'(\w+?)(?:Request)?' Kafka protocol")
_UNREACHABLE = ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "NETWORK_EXCEPTION")
_AUTHENTICATION = ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "_SSL", "UNSUPPORTED_SASL_MECHANISM", "ILLEGAL_SASL_STATE")
_TIMED_OUT = ("_TIMED_OUT", "_TIMED_OUT_QUEUE", "REQUEST_TIMED_OUT", "_MSG_TIMED_OUT", "_WAIT_COORD", "COORDINATOR_LOAD_IN_PROGRESS")
_NOT_FOUND = (
    *("UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "GROUP_ID_NOT_FOUND"),
    *("_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"),
)
_AUTHORIZATION = (
    "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
)
_USAGE = ("INVALID_CONFIG", "INVALID_PARTITIONS", "INVALID_REPLICATION_FACTOR", "TOPIC_EXCEPTION", "POLICY_VIOLATION", "INVALID_REQUEST")
_GROUP_ACTIVE = (
    *("NON_EMPTY_GROUP", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "GROUP_SUBSCRIBED_TO_TOPIC"),
    *("STALE_MEMBER_EPOCH", "FENCED_MEMBER_EPOCH"),
)
_COORDINATOR_MOVES = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS")
_LEADER_MOVED = (
    *("NOT_LEADER_FOR_PARTITION", "NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE"),
    *("KAFKA_STORAGE_ERROR", "REPLICA_NOT_AVAILABLE"),
)
_NO_LEADER = ("LEADER_NOT_AVAILABLE", "_NOENT")
"""Errors that come from metadata, not from a broker that was queried; librdkafka reports the second one if it applies to all partitions."""
_SECURITY = ("SECURITY_DISABLED",)
_CLIENT_SETTING = ("_INVALID_ARG", "_CONF")
_RESOLVED = "`kops context show --resolved` says where"

_KINDS: tuple[tuple[tuple[str, ...], type[KopsError], str], ...] = (
    (_AUTHENTICATION, AuthenticationFailed, f"check the security settings: {_RESOLVED} each comes from"),
    (_UNREACHABLE, Unreachable, f"check the address and that the brokers run; {_RESOLVED} the address comes from"),
    (_TIMED_OUT, TimedOut, "the outcome is unknown: look before trying again; increase --timeout"),
    (_NOT_FOUND, NotFound, "check the name; `kops topics list` and `kops groups list` show what there is"),
    (_AUTHORIZATION, AuthorizationFailed, "the principal of this context lacks the right; ask for an ACL"),
    (_GROUP_ACTIVE, GroupActive, "stop the application, then try again"),
    (_USAGE, UsageProblem, "the broker refused the request; see its reason"),
    (TOO_OLD, BrokersTooOld, f"kops works with Kafka {OLDEST} and newer, and this request not with every one of those"),
    (_SECURITY, SecurityDisabled, "brokers check rights once authorizer.class.name is set; `kops sandbox up --security acl` has one"),
    (_CLIENT_SETTING, ConfigError, "see -X and the context's settings"),
)
_OF_KAFKA_PYTHON = {"KafkaTimeoutError": "_TIMED_OUT", "KafkaConnectionError": "_TRANSPORT", "NodeNotReadyError": "_TRANSPORT"}
"""Errors that kafka-python raises by itself, with librdkafka's names."""

OF_TLS = "_SSL"
"""librdkafka's name for an error of TLS, which may also mean that the other side does not speak it."""


def is_unreachable(error: Any) -> bool:
    return error.name() in ("_ALL_BROKERS_DOWN", "_RESOLVE")


def is_lost(error: Any) -> bool:
    """Whether an error means that a request was lost with its connection, or never answered."""
    return error.name() in (*_UNREACHABLE, *_TIMED_OUT)


def is_answer(error: Any) -> bool:
    """Whether a broker reported it: librdkafka's own errors have negative codes."""
    return int(error.code()) > 0


def is_moving(error: Any) -> bool:
    """Whether an error means that a group's coordinator is not available yet, or has moved."""
    return error.name() in _COORDINATOR_MOVES


def coordinator_moves(error: KopsError | None) -> bool:
    """Whether a translated error means the same."""
    return error is not None and error.details.get("kafka_error") in _COORDINATOR_MOVES


def leader_moved(error: KopsError) -> bool:
    """Whether the broker that was queried is not the leader of the partition, or has only just become it."""
    return error.details.get("kafka_error") in _LEADER_MOVED


def has_no_leader(error: KopsError) -> bool:
    """Whether the partition has no leader: briefly during an election, or for as long as all replicas are offline."""
    return error.details.get("kafka_error") in _NO_LEADER


def is_authentication(error: Any) -> bool:
    """Whether an error means that the brokers rejected our credentials, or that TLS failed."""
    return error.name() in _AUTHENTICATION


def is_tls(error: Any) -> bool:
    """Whether librdkafka reports that TLS failed."""
    return bool(error.name() == OF_TLS)


def translate(error: Any, doing: str, brokers: Sequence[str] = ()) -> KopsError:
    """Return the kops error for a confluent_kafka.KafkaError.

    :param doing: what was being done: ``delete topic orders``
    :param brokers: bootstrap servers, named when they cannot be reached
    """
    return _problem(error.name(), (error.str() or "").strip() or error.name(), doing, brokers)


def translate_kafka_python(error: Any, doing: str, brokers: Sequence[str]) -> KopsError:
    """Return the kops error for an error of kafka-python, instance or class; for the parameters see ``translate``."""
    kind = error if isinstance(error, type) else type(error)
    text = "" if isinstance(error, type) else str(error).strip()
    name = getattr(kind, "message", "") or _OF_KAFKA_PYTHON.get(kind.__name__, kind.__name__)
    return _problem(name, getattr(kind, "description", "") or text or kind.__name__, doing, brokers)


def translate_error_code(code: int, text: str | None, doing: str) -> KopsError | None:
    """Return the kops error for an error code in a part of an answer to kafka-python; None for success.

    :param text: what the broker says of it
    """
    if not code:
        return None
    from kafka.errors import for_code

    kind = for_code(code)
    name = getattr(kind, "message", "") or kind.__name__
    return _problem(name, text or getattr(kind, "description", "") or kind.__name__, doing, ())


def _problem(name: str, text: str, doing: str, brokers: Sequence[str]) -> KopsError:
    if name in _AUTHENTICATION:
        message = f"{','.join(brokers)} refused the connection: {text}"
    elif name in _UNREACHABLE:
        message = f"no broker answers at {','.join(brokers)}"
    elif name in _GROUP_ACTIVE:
        message = f"could not {doing}: the group has members, or was joined meanwhile"
    elif name in _SECURITY:
        message = "this cluster has no authorizer: everything is allowed, and it keeps no ACLs"
    elif name in _CLIENT_SETTING:
        message = f"a client setting is not valid: {text}"
    else:
        message = f"could not {doing}: {text}"
    kind, hint = next(((kind, hint) for names, kind, hint in _KINDS if name in names), (OperationFailed, None))
    if kind is AuthorizationFailed and (right := missing_right(name, doing)):
        return right.lacking(message, kafka_error=name)
    return kind(message, hint=hint, kafka_error=name)


def all_good(answers: Mapping[K, T | KopsError]) -> dict[K, T]:
    """Return answers without errors.

    :raises KopsError: the first one
    """
    good: dict[K, T] = {}
    for key, answer in answers.items():
        if isinstance(answer, KopsError):
            raise answer
        good[key] = answer
    return good


def group_not_found(group_id: str) -> NotFound:
    return NotFound(f"there is no group {group_id}", hint="`kops groups list` shows the groups of every type", group=group_id)


def request_in(error: Any) -> str:
    """Return the name of the request that kafka-python's ``IncompatibleBrokerVersion`` is about."""
    named = _NAME.search(str(error))
    return named[1] if named else ""


def too_old(doing: str, request: str, release: str, version: int = 0) -> BrokersTooOld:
    """Return the error for a request, or a version of it, that the brokers do not know.

    :param release: of the brokers, inferred from their requests
    """
    since = _SINCE.get(f"{request} v{version}" if version else request)
    needs = f"this needs Kafka {since}" if since else "this needs a newer Kafka"
    return BrokersTooOld(
        f"cannot {doing}: {needs}, and the brokers speak the protocol of {release}",
        hint=f"kops works with Kafka {OLDEST} and newer, and this request not with every one of those; upgrade the brokers to use it",
        kafka_error=TOO_OLD[0],
        kafka_version=release,
        needs_version=since,
    )

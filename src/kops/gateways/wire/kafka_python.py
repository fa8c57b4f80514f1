"""The parts of kafka-python that kops uses below its documented classes: raw requests, coordinators, connections.

Nothing else uses these parts. ``tests/unit/gateways/wire/test_kafka_python.py`` checks that the installed release has them, without a
broker. This module is one of those that are sent to Spark's workers, so it imports nothing of the other gateways.
"""

from __future__ import annotations

import importlib
import re
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

REQUESTS = {
    "AddOffsetsToTxnRequest": "producer",
    "AddPartitionsToTxnRequest": "producer",
    "AlterPartitionReassignmentsRequest": "admin",
    "AlterReplicaLogDirsRequest": "admin",
    "AlterClientQuotasRequest": "admin",
    "ApiVersionsRequest": "metadata",
    "CreateAclsRequest": "admin",
    "DeleteAclsRequest": "admin",
    "DescribeAclsRequest": "admin",
    "DescribeClientQuotasRequest": "admin",
    "DescribeClusterRequest": "admin",
    "DescribeConfigsRequest": "admin",
    "DescribeGroupsRequest": "admin",
    "DescribeLogDirsRequest": "admin",
    "DescribeQuorumRequest": "admin",
    "DescribeUserScramCredentialsRequest": "admin",
    "ElectLeadersRequest": "admin",
    "EndTxnRequest": "producer",
    "FetchRequest": "consumer",
    "FindCoordinatorRequest": "metadata",
    "IncrementalAlterConfigsRequest": "admin",
    "InitProducerIdRequest": "producer",
    "LeaveGroupRequest": "consumer",
    "ListConfigResourcesRequest": "admin",
    "ListOffsetsRequest": "consumer",
    "OffsetCommitRequest": "consumer",
    "OffsetFetchRequest": "consumer",
    "OffsetForLeaderEpochRequest": "consumer",
    "ProduceRequest": "producer",
    "TxnOffsetCommitRequest": "producer",
    "UpdateFeaturesRequest": "admin",
}
"""The requests that kops sends itself, and the module of ``kafka.protocol`` that defines each."""
_LOOKS = re.compile(r"ApiVersions|Describe|Fetch|FindCoordinator|List|Metadata|Offset(Fetch|ForLeaderEpoch)|Sasl|\w+GroupDescribe")
"""By the names of their classes, the requests that change nothing."""


@cache
def request_class(name: str) -> Any:
    """Return the class of a request.

    :param name: one of ``REQUESTS``
    """
    return getattr(importlib.import_module(f"kafka.protocol.{REQUESTS[name]}"), name)


def run(admin: KafkaAdminClient, function: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> Any:
    """Run a coroutine function in the event loop of an admin client."""
    return admin._manager.run(function, *arguments)


def send(admin: KafkaAdminClient, request: Any, broker: int | None = None, milliseconds: int | None = None) -> Any:
    """Start to send a request, in the event loop of an admin client; await the result for its answer.

    :param broker: None for any
    :param milliseconds: to wait for it; None: the client's ``request_timeout_ms``
    """
    return admin._manager.send(request, node_id=broker, request_timeout_ms=milliseconds)


def require_permit(admin: KafkaAdminClient, require: Callable[[str], None]) -> None:
    """Let an admin client ask before it sends a request that is not known to change nothing.

    :param require: gets the name of the request, and raises if it must not be sent
    """
    send_it = admin._manager.send

    def ask(request: Any, *arguments: Any, **options: Any) -> Any:
        names = [kind.__name__ for kind in type(request).__mro__]
        if not any(_LOOKS.match(name) for name in names) and getattr(request, "validate_only", False) is not True:
            require(names[0])
        return send_it(request, *arguments, **options)

    admin._manager.send = ask


def known_brokers(admin: KafkaAdminClient) -> list[Any]:
    """Return the brokers in the latest metadata, each with ``node_id``, ``host``, ``port`` and ``rack``."""
    return list(admin._manager.cluster.brokers())


def avoid(admin: KafkaAdminClient, brokers: Iterable[int], seconds: float) -> None:
    """Send nothing to some brokers for a time, as after connections to them have failed: what any broker may answer goes to others."""
    manager = admin._manager
    for broker in brokers:
        manager._backoff[broker] = (1, time.monotonic() + seconds, manager.socket_connection_setup_timeout_ms(broker))


def broker_release(admin: KafkaAdminClient) -> str:
    """Return the release of the broker that the client first reached, inferred from its request versions, such as ``4.0``."""
    return str(admin._manager.broker_version_data.broker_version_str)


def highest_version(admin: KafkaAdminClient, request: str) -> int | None:
    """Return the highest version of a request that the broker knows which the client first reached; None if it knows none.

    :param request: its name, such as ``AddRaftVoter``
    """
    number = next(number for number, name in request_names().items() if name == request)
    known: tuple[int, int] | None = admin._manager.broker_version_data.api_versions.get(number)
    return None if known is None else known[1]


def release_by_requests(versions: Mapping[int, tuple[int, int]]) -> str:
    """Return the oldest release that knows these versions of requests, such as ``4.0``; the newest that kafka-python knows may be older.

    :param versions: the least and the highest by the number of the request
    """
    from kafka.protocol.broker_version_data import BrokerVersionData

    return str(BrokerVersionData(api_versions=dict(versions)).broker_version_str)


async def by_coordinator(admin: KafkaAdminClient, group_ids: Iterable[str]) -> dict[int, list[str]]:
    """Return groups by the broker that coordinates them; to be run by the client."""
    found: dict[int, list[str]] = defaultdict(list)
    for group_id, broker in (await admin._find_coordinator_ids(list(group_ids))).items():
        found[broker].append(group_id)
    return found


async def transaction_coordinator(admin: KafkaAdminClient, transactional_id: str) -> int:
    """Return the broker that coordinates a transactional id; to be run by the client."""
    return int((await admin._find_coordinator_ids([transactional_id], key_type="TRANSACTION"))[transactional_id])


def forget_coordinators(admin: KafkaAdminClient) -> None:
    """Make the client look up coordinators again: kafka-python caches them forever, and they move."""
    admin._manager.cluster._coordinators.clear()


def request_names() -> dict[int, str]:
    """Return the names of requests by their numbers, those that kafka-python knows."""
    from kafka.protocol.api_key import ApiKey

    return {int(key): key.name for key in ApiKey}


def message_class(fields: dict[str, Any], *, changes: bool = False) -> Any:
    """Return the class of a message that kafka-python does not have.

    :param fields: the message as in Kafka's own JSON
    :param changes: whether it is a request that needs a permit
    """
    from kafka.protocol.api_message import ApiMessage

    def json_patch(cls: Any, json: Any) -> Any:  # noqa: ARG001 - kafka-python passes them
        return fields

    # kafka-python loads the fields of a class by its name, so it needs a name that is known there; `_LOOKS` judges by it too.
    name = "LeaveGroupRequest" if changes else "DescribeGroupsRequest"
    return type(ApiMessage)(name, (ApiMessage,), {"json_patch": classmethod(json_patch), "__module__": __name__})


@cache
def undecoded_offset_fetch(version: int) -> Any:
    """Return the class of an OffsetFetch request whose answer is not decoded: its ``data`` are the bytes after the header."""
    from kafka.protocol.api_header import RequestHeader
    from kafka.protocol.consumer import OffsetFetchRequest, OffsetFetchResponse

    class Answer:
        """Bytes in place of a decoded message."""

        throttle_time_ms = 0  # only matters to clients that send many more requests

        def __init__(self, data: bytes) -> None:
            self.data = data

        @classmethod
        def parse_header(cls, buffer: Any) -> Any:
            return OffsetFetchResponse[version].parse_header(buffer)

        @classmethod
        def decode(cls, buffer: Any) -> Answer:
            return cls(buffer.read())

    class Header(RequestHeader, init=False):  # type: ignore[misc, call-arg]  # kafka-python is untyped
        __slots__ = ()

        def get_response_class(self) -> Any:
            return Answer

    class Request(OffsetFetchRequest, init=False):  # type: ignore[misc, call-arg]
        __slots__ = ()
        header_class = Header

    return Request


def token_provider(token: Callable[[], str], extensions: Mapping[str, str]) -> Any:
    """Return the object from which kafka-python gets its OAuth tokens.

    :param extensions: sent with each (RFC 7628)
    """
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python is untyped
        def token(self) -> str:
            return token()

        def extensions(self) -> dict[str, str]:
            return dict(extensions)

    return Provider()


def connections(**settings: Any) -> Any:
    """Return a client that only maintains connections to brokers, and sends what it is given."""
    from kafka.net.compat import KafkaNetClient

    return KafkaNetClient(**settings)


def reading_metadata(client: Any) -> Any:
    """Read the metadata of a client's topics at once, without the back-off since its last read; return a future."""
    return client._manager.call_soon(client.cluster.refresh_metadata)


def kafka_error() -> type[Exception]:
    """Return the base class of kafka-python's errors, for code outside the gateways that catches them."""
    from kafka.errors import KafkaError

    return KafkaError  # type: ignore[no-any-return]  # kafka-python is untyped


def socket_factory() -> Any:
    """Return the base class of socket factories; kafka-python finds a subclass with ``SCHEMES`` by the scheme of ``proxy_url``."""
    from kafka.net.inet import KafkaNetSocket

    return KafkaNetSocket

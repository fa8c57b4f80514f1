"""Requests that add and remove voters of the metadata log (KIP-853), which kafka-python does not have; these are their schemas."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Sequence
from functools import cache
from typing import Any

from kops.gateways.kafka.groups.messages import Field, field, texts
from kops.gateways.wire.kafka_python import message_class

ADD_VOTER, REMOVE_VOTER = 80, 81
NO_DIRECTORY = "0" * 32
WAIT_MILLISECONDS = 30_000
"""How long the leader waits for a new voter to catch up."""


def add_voter(cluster_id: str, voter: int, directory: str, listeners: Sequence[tuple[str, str, int]]) -> Any:
    """Return the request that makes an observer a voter.

    :param listeners: name, host and port of each of its endpoints
    """
    request, _ = _messages(ADD_VOTER)
    ends = [request.Listener(name=name, host=host, port=port) for name, host, port in listeners]
    return request(
        cluster_id=cluster_id,
        timeout_ms=WAIT_MILLISECONDS,
        voter_id=voter,
        voter_directory_id=_uuid(directory),
        listeners=ends,
    )


def remove_voter(cluster_id: str, voter: int, directory: str) -> Any:
    request, _ = _messages(REMOVE_VOTER)
    return request(cluster_id=cluster_id, voter_id=voter, voter_directory_id=_uuid(directory))


def directory_text(found: str | None) -> str | None:
    """Return the id of a directory as Kafka prints it (``Uuid.toString``); None for none.

    :param found: as kafka-python has it, with hyphens
    """
    known = uuid.UUID(found or NO_DIRECTORY)
    return base64.urlsafe_b64encode(known.bytes).rstrip(b"=").decode() if known.int else None


def _uuid(text: str) -> uuid.UUID:
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))


@cache
def _messages(api_key: int) -> tuple[Any, Any]:
    fields: list[Field] = [field("ClusterId", "string", nullable=True)]
    name = "RemoveRaftVoter"
    if api_key == ADD_VOTER:
        name = "AddRaftVoter"
        fields.append(field("TimeoutMs", "int32"))
    fields += [field("VoterId", "int32"), field("VoterDirectoryId", "uuid")]
    if api_key == ADD_VOTER:
        fields.append(field("Listeners", "[]Listener", *texts("Name", "Host"), field("Port", "uint16")))
    answered = [field("ThrottleTimeMs", "int32"), field("ErrorCode", "int16"), field("ErrorMessage", "string", nullable=True)]
    common = {"apiKey": api_key, "validVersions": "0", "flexibleVersions": "0+"}
    answer = message_class({**common, "type": "response", "name": f"{name}Response", "fields": answered})
    return message_class({**common, "type": "request", "name": f"{name}Request", "fields": fields}, changes=True), answer

"""Who clients are, and what they may use up: SCRAM credentials (KIP-554), quotas (KIP-546)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kops.config.connection import Secret
from kops.core.errors import KopsError
from kops.gateways.kafka.admin import Wire, answer_of
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.translate import translate_error_code
from kops.gateways.wire.kafka_python import request_class

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

Credentials = dict[str, int]
"""Iterations by the name of the mechanism, such as ``SCRAM-SHA-512``."""
_DESCRIBE, _ALTER_QUOTAS = "describe the SCRAM credentials", "alter the client quotas"
_NO_SUCH_USER = "RESOURCE_NOT_FOUND"


class Principals:
    """Every method waits for the answer and raises KopsError if there is none."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._wire = Wire(client)

    def credentials(self) -> dict[str, Credentials]:
        """Return the SCRAM credentials of every user; no password can be read. Needs Kafka 3.5 where there is no ZooKeeper."""
        return {one["user"]: _credentials(one) for one in self._described([])}

    def credentials_of(self, user: str) -> Credentials:
        """Return the SCRAM credentials of a user; empty if there are none."""
        (found,) = self._described([user])
        error = translate_error_code(found["error_code"], found["error_message"], _DESCRIBE)
        if error is None:
            return _credentials(found)
        if error.details.get("kafka_error") == _NO_SUCH_USER:
            return {}
        raise error

    def _described(self, users: Sequence[str]) -> list[dict[str, Any]]:
        answer = self._wire.ask(_DESCRIBE, partial(_describe, users), patient=True)
        found: list[dict[str, Any]] = answer["results"]
        return found

    def set_password(self, user: str, mechanism: str, iterations: int, password: Secret) -> None:
        from confluent_kafka.admin import ScramCredentialInfo, UserScramCredentialUpsertion

        info = ScramCredentialInfo(_mechanism(mechanism), iterations)
        self._alter(user, UserScramCredentialUpsertion(user, info, password.reveal().encode()))

    def delete_credential(self, user: str, mechanism: str) -> None:
        from confluent_kafka.admin import UserScramCredentialDeletion

        self._alter(user, UserScramCredentialDeletion(user, _mechanism(mechanism)))

    def _alter(self, user: str, alteration: Any) -> None:
        asked = self._client.admin.alter_user_scram_credentials([alteration])[user]
        self._client.wait(asked, f"alter the SCRAM credentials of {user}")

    def alter_quotas(self, changes: Sequence[tuple[Mapping[str, str], Mapping[str, float | None]]]) -> list[KopsError | None]:
        """Set and remove quotas in one request; return the error of each entity.

        :param changes: entities, each once, and their values by key; None removes
        """
        answer = self._wire.ask(_ALTER_QUOTAS, lambda admin: _alter_quotas(admin, changes))
        return [translate_error_code(one["error_code"], one["error_message"], _ALTER_QUOTAS) for one in answer["entries"]]


def _alter_quotas(admin: KafkaAdminClient, changes: Sequence[tuple[Mapping[str, str], Mapping[str, float | None]]]) -> dict[str, Any]:
    request = request_class("AlterClientQuotasRequest")
    entry = request.EntryData
    entries = [
        entry(
            entity=[entry.EntityData(entity_type=kind, entity_name=name or None) for kind, name in entity.items()],
            ops=[entry.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()],
        )
        for entity, values in changes
    ]
    return answer_of(admin, request(entries=entries, validate_only=False))


def _describe(users: Sequence[str], admin: KafkaAdminClient) -> dict[str, Any]:
    # None is all of them too, but a broker that is to refuse it fails (DescribeUserScramCredentialsRequest#getErrorResponse), and
    # librdkafka, which asks so, ends the process.
    request = request_class("DescribeUserScramCredentialsRequest")
    return answer_of(admin, request(users=[request.UserName(name=user) for user in users]))


def _mechanism(name: str) -> Any:
    from confluent_kafka.admin import ScramMechanism

    return ScramMechanism[name.replace("-", "_")]


def _credentials(found: Mapping[str, Any]) -> Credentials:
    from kafka.admin import ScramMechanism

    return {ScramMechanism(one["mechanism"]).name.replace("_", "-"): one["iterations"] for one in found["credential_infos"]}

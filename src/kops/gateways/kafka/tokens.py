"""Delegation tokens (KIP-48, KIP-373), whose requests neither client has; these are their schemas."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import cache
from typing import Any

from kops.config.connection import Secret
from kops.config.secrets import from_value
from kops.core.errors import NotFound
from kops.core.tokens import Token
from kops.gateways.kafka.admin import Wire, answer_of
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.groups.messages import Field, field, texts
from kops.gateways.wire.kafka_python import message_class

CREATE, RENEW, EXPIRE, DESCRIBE = 38, 39, 40, 41
DEFAULT = -1
"""For the life of a new token, and for its renewal: what the brokers' settings say."""
AT_ONCE = -1
"""For an expiry: the token is removed."""
_PRINCIPAL = ("PrincipalType", "PrincipalName")


class Tokens:
    """Every method waits for the answer and raises KopsError if there is none. Brokers want a login by SASL, not by a token."""

    def __init__(self, client: Client) -> None:
        self._wire = Wire(client)

    def listed(self) -> list[Token]:
        """Return the tokens that this login may see, by owner and age: its own, those that it may renew, and those of a right."""
        return sorted((_token(one) for one in self._described()), key=lambda token: (token.owner, token.issued, token.id))

    def create(self, owner: str | None, renewers: Sequence[str], life: int) -> tuple[Token, Secret]:
        """Create a token; return it with its HMAC, in base64.

        :param owner: None: the principal of this login
        :param life: in milliseconds, or DEFAULT
        """
        request, _ = _messages(CREATE)
        kind, name = owner.split(":", 1) if owner else (None, None)
        parts = [one.split(":", 1) for one in renewers]
        others = [request.CreatableRenewers(principal_type=of, principal_name=renewer) for of, renewer in parts]
        body = request(owner_principal_type=kind, owner_principal_name=name, renewers=others, max_lifetime_ms=life)
        found = self._wire.ask(f"create a token of {owner or 'this login'}", lambda admin: answer_of(admin, body, binary=True))
        token = Token(
            found["token_id"],
            _principal(found),
            _requester(found),
            found["issue_timestamp_ms"],
            found["expiry_timestamp_ms"],
            found["max_timestamp_ms"],
            tuple(renewers),
        )
        return token, from_value(f"the answer for token {token.id}", base64.b64encode(found["hmac"]).decode())

    def renew(self, token_id: str, period: int) -> int:
        """Return the new expiry.

        :param period: from now on, in milliseconds, or DEFAULT; brokers give no more than their default
        """
        return self._change(RENEW, token_id, f"renew token {token_id}", renew_period_ms=period)

    def expire(self, token_id: str, period: int) -> int:
        """Return the new expiry, which may be later than before.

        :param period: from now on, in milliseconds, or AT_ONCE
        """
        return self._change(EXPIRE, token_id, f"expire token {token_id}", expiry_time_period_ms=period)

    def _change(self, api_key: int, token_id: str, doing: str, **period: int) -> int:
        found = next((one for one in self._described() if one["token_id"] == token_id), None)
        if found is None:
            raise NotFound(f"there is no token {token_id} that this login may see", hint="`kops tokens list` shows those that it may")
        request, _ = _messages(api_key)
        answer = self._wire.ask(doing, lambda admin: answer_of(admin, request(hmac=found["hmac"], **period)))
        return int(answer["expiry_timestamp_ms"])

    def _described(self) -> list[dict[str, Any]]:
        request, _ = _messages(DESCRIBE)
        answer = self._wire.ask(
            "describe delegation tokens", lambda admin: answer_of(admin, request(owners=None), binary=True), patient=True
        )
        return list(answer["tokens"])


def _token(found: dict[str, Any]) -> Token:
    return Token(
        found["token_id"],
        _principal(found),
        _requester(found),
        found["issue_timestamp"],
        found["expiry_timestamp"],
        found["max_timestamp"],
        tuple(map(_principal, found["renewers"])),
    )


def _principal(found: dict[str, Any]) -> str:
    return f"{found['principal_type']}:{found['principal_name']}"


def _requester(found: dict[str, Any]) -> str:
    kind, name = found.get("token_requester_principal_type"), found.get("token_requester_principal_name")
    return f"{kind}:{name}" if kind else ""


@cache
def _messages(api_key: int) -> tuple[Any, Any]:
    """Return the classes of a request and its answer (Kafka's ``common/message``); version 3 has owners and requesters (Kafka 3.3)."""
    principal, requester = (
        texts(*_PRINCIPAL),
        [{**one, "versions": "3+"} for one in texts(*(f"TokenRequester{part}" for part in _PRINCIPAL))],
    )
    throttle, error = field("ThrottleTimeMs", "int32"), field("ErrorCode", "int16")
    asked: list[Field]
    answered: list[Field]
    if api_key == CREATE:
        owner = [{**field(f"Owner{part}", "string", nullable=True), "versions": "3+", "nullableVersions": "3+"} for part in _PRINCIPAL]
        asked = [*owner, field("Renewers", "[]CreatableRenewers", *principal), field("MaxLifetimeMs", "int64")]
        times = [field(f"{name}TimestampMs", "int64") for name in ("Issue", "Expiry", "Max")]
        answered = [error, *principal, *requester, *times, *texts("TokenId"), field("Hmac", "bytes"), throttle]
        name, versions = "CreateDelegationToken", "2-3"
    elif api_key == DESCRIBE:
        asked = [field("Owners", "[]DescribeDelegationTokenOwner", *principal, nullable=True)]
        times = [field(f"{name}Timestamp", "int64") for name in ("Issue", "Expiry", "Max")]
        renewers = field("Renewers", "[]DescribedDelegationTokenRenewer", *principal)
        token = [*principal, *requester, *times, *texts("TokenId"), field("Hmac", "bytes"), renewers]
        answered = [error, field("Tokens", "[]DescribedDelegationToken", *token), throttle]
        name, versions = "DescribeDelegationToken", "2-3"
    else:
        asked = [field("Hmac", "bytes"), field("RenewPeriodMs" if api_key == RENEW else "ExpiryTimePeriodMs", "int64")]
        answered = [error, field("ExpiryTimestampMs", "int64"), throttle]
        name, versions = "RenewDelegationToken" if api_key == RENEW else "ExpireDelegationToken", "2"
    common = {"apiKey": api_key, "validVersions": versions, "flexibleVersions": "2+"}
    answer = message_class({**common, "type": "response", "name": f"{name}Response", "fields": answered})
    request = message_class({**common, "type": "request", "name": f"{name}Request", "fields": asked}, changes=api_key != DESCRIBE)
    return request, answer

"""Quotas of clients (KIP-13, 124, 546, 599, 612): their names and values, their YAML, and which one applies. Pure."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.cluster.models import DEFAULT_ENTITY, Quota
from kops.core.errors import UsageProblem
from kops.core.sizes import parse_size
from kops.core.statefile.fields import known_fields, placed

USER, CLIENT_ID, IP = "user", "client-id", "ip"
TYPES = (USER, CLIENT_ID, IP)
OF_IP = "connection_creation_rate"
UNITS = {
    "producer_byte_rate": "bytes a second, on each broker",
    "consumer_byte_rate": "bytes a second, on each broker",
    "request_percentage": "percent of the time of one thread for requests, on each broker",
    "controller_mutation_rate": "partitions created or deleted a second",
    OF_IP: "new connections a second, on each broker",
}
"""The keys of quotas (``org.apache.kafka.server.config.QuotaConfig``)."""
_WHOLE = ("producer_byte_rate", "consumer_byte_rate", OF_IP)


def entity_of(user: str | None, client_id: str | None, ip: str | None, defaults: Sequence[str] = ()) -> dict[str, str]:
    """Return the entity that options name.

    :param defaults: the types whose default is meant
    :raises UsageProblem: for a combination that Kafka does not have
    """
    named = {kind: name for kind, name in zip(TYPES, (user, client_id, ip), strict=True) if name is not None}
    if twice := [kind for kind in defaults if kind in named]:
        raise UsageProblem(f"both a {twice[0]} and the default {twice[0]} are named", hint=f"pass --{twice[0]} or --default {twice[0]}")
    if empty := [kind for kind, name in named.items() if not name]:
        raise UsageProblem(f"the {empty[0]} is empty", hint=f"the default is --default {empty[0]}")
    found = named | dict.fromkeys(defaults, DEFAULT_ENTITY)
    if not found:
        raise UsageProblem("nothing says whose quota this is", hint="pass --user, --client-id, --ip or --default")
    if IP in found and len(found) > 1:
        raise UsageProblem("an ip has quotas of its own, not together with a user or client id", hint="use two commands")
    return {kind: found[kind] for kind in TYPES if kind in found}


def entity_text(entity: Mapping[str, str]) -> str:
    return ", ".join(f"{kind} {entity[kind]}" if entity[kind] else f"default {kind}" for kind in TYPES if kind in entity)


def parse_value(key: str, text: str, entity: Mapping[str, str]) -> float:
    """Parse the value of a quota.

    :raises UsageProblem: for a key that the entity cannot have, or a value that Kafka does not take
    """
    require_key(key, entity)
    given = text.strip()
    if key.endswith("byte_rate") and given[-1:] in "Bb" and given:
        value = float(parse_size(given, what=key))
    else:
        try:
            value = float(given.removesuffix("%") if key == "request_percentage" else given)
        except ValueError:
            raise UsageProblem(f"{text!r} is not a valid {key}", hint=UNITS[key]) from None
    if not math.isfinite(value) or value <= 0 or (key in _WHOLE and value % 1):
        needs = "a whole number above 0" if key in _WHOLE else "a number above 0"
        raise UsageProblem(f"{key} needs {needs}, and is {text}", hint=f"{UNITS[key]}; `kops quotas remove` takes a quota away")
    return value


def require_key(key: str, entity: Mapping[str, str]) -> None:
    """Refuse a key that an entity cannot have.

    :raises UsageProblem: naming those that it can have
    """
    possible = [OF_IP] if IP in entity else [each for each in UNITS if each != OF_IP]
    if key not in possible:
        raise UsageProblem(f"{entity_text(entity)} has no quota {key!r}", hint=f"it can have: {', '.join(possible)}")


FIELDS = ("user", "client_id", "ip", "defaults", "quotas")
"""Of a YAML document, one an entity; ``defaults`` lists the types whose default is meant."""


def document(quota: Quota) -> dict[str, Any]:
    """Return the quotas of an entity as YAML that :func:`parse_documents` reads."""
    named = {kind.replace("-", "_"): quota.entity[kind] for kind in TYPES if quota.entity.get(kind)}
    defaults = [kind for kind in TYPES if quota.entity.get(kind) == DEFAULT_ENTITY]
    return {**named, **({"defaults": defaults} if defaults else {}), "quotas": {key: number(value) for key, value in quota.values.items()}}


def parse_documents(found: Iterable[tuple[str, Any]]) -> list[Quota]:
    """Read back what :func:`document` made.

    :param found: place (for messages) and YAML of each document, whose scalars are the texts as written
    :raises ConfigError: naming the document and the field
    """
    quotas: dict[str, Quota] = {}
    for place, body in found:
        fields = known_fields(place, "", body, FIELDS, "a quota document")
        user, client_id, ip = (fields.exact(name) if name in fields.body else None for name in FIELDS[:3])
        defaults = fields.sequence("defaults", f"a list of {', '.join(TYPES)}")
        for one in defaults:
            if one not in TYPES:
                raise fields.wrong("defaults", f"has {one!r}", f"one of {', '.join(TYPES)}")
        with placed(fields, ""):
            entity = entity_of(user, client_id, ip, defaults)
        fields.refuse_second("", entity_text(entity), quotas)
        given, values = fields.inside("quotas"), {}
        for key in given.body:
            with placed(given, key):
                values[key] = parse_value(key, given.exact(key, UNITS.get(key)), entity)
        quotas[entity_text(entity)] = Quota(entity, values)
    return list(quotas.values())


def number(value: float | None) -> float | None:
    """Return a whole number without its fraction."""
    return int(value) if value is not None and value % 1 == 0 else value


@dataclass(frozen=True)
class Applied:
    """The quota that applies to a client.

    :param entity: whose quota it is; None if none applies
    :param shared_by: the clients that use up one allowance together
    """

    key: str
    value: float | None
    entity: Mapping[str, str] | None
    shared_by: str

    def as_json(self) -> dict[str, Any]:
        rule = "none applies" if self.entity is None else entity_text(self.entity)
        return {"key": self.key, "value": self.value, "rule": rule, "shared_by": self.shared_by, "unit": UNITS[self.key]}


Place = tuple[str | None, str | None]
"""A user and a client id, either of them None where the entity has none, and ``DEFAULT_ENTITY`` for the default."""


def applied(quotas: Iterable[Quota], key: str, user: str, client_id: str) -> Applied:
    """Return the quota of a client, as ``ClientQuotaManager.DefaultQuotaCallback`` finds it.

    It first decides whose allowance the client uses, then looks for the limit of that. Where quotas of only one kind exist, the other name
    is left out of both.

    :param key: any but that of an ip
    :param user: name of the principal; ``ANONYMOUS`` without a login
    """
    values: dict[Place, float] = {
        (one.entity.get(USER), one.entity.get(CLIENT_ID)): one.values[key] for one in quotas if key in one.values and IP not in one.entity
    }
    tags = _tags(values, user, client_id)
    place = next((each for each in _limits(*tags) if each in values), None)
    if place is None:
        return Applied(key, None, None, "")
    entity = {kind: name for kind, name in zip((USER, CLIENT_ID), place, strict=True) if name is not None}
    return Applied(key, values[place], entity, _sharing(*tags))


def _tags(values: Mapping[Place, float], user: str, client_id: str) -> tuple[str, str]:
    """Return the metric tags of a client: whose allowance it uses (``DefaultQuotaCallback.quotaMetricTags``)."""
    kinds = {(of_user is not None, of_client is not None) for of_user, of_client in values}
    if kinds <= {(False, True)}:
        return "", client_id
    if kinds == {(True, False)}:
        return user, ""
    if kinds == {(True, True)}:
        return user, client_id
    for of_user in (user, DEFAULT_ENTITY):
        pairs = [(of_user, client_id or None), (of_user, DEFAULT_ENTITY)] if client_id else [(of_user, DEFAULT_ENTITY)]
        if (user or of_user == DEFAULT_ENTITY) and any(pair in values for pair in pairs):
            return user, client_id
        if (of_user, None) in values:
            return user, ""
    return "", client_id


def _limits(user: str, client_id: str) -> list[Place]:
    """Return the entities whose limit counts, the first that has one (``DefaultQuotaCallback.findQuota``)."""
    if user and client_id:
        return [(one, other) for one in (user, DEFAULT_ENTITY) for other in (client_id, DEFAULT_ENTITY)]
    if user:
        return [(user, None), (DEFAULT_ENTITY, None)]
    return [(None, client_id), (None, DEFAULT_ENTITY)] if client_id else []


def _sharing(user: str, client_id: str) -> str:
    if user and client_id:
        return f"clients of user {user} with client id {client_id}"
    return f"all clients of user {user}" if user else f"clients of any user with client id {client_id}"


def applied_to_ip(quotas: Iterable[Quota], ip: str) -> Applied:
    """Return the quota of connections from an address, as ``ConnectionQuotas.connectionRateForIp`` finds it.

    :raises UsageProblem: when it is not an address
    """
    try:
        wanted = ipaddress.ip_address(ip)
    except ValueError:
        raise UsageProblem(f"{ip!r} is not an IP address", hint="brokers see addresses, not host names") from None
    own = [one for one in quotas if IP in one.entity and OF_IP in one.values]
    for found in (*(one for one in own if _address(one.entity[IP]) == wanted), *(one for one in own if one.entity[IP] == DEFAULT_ENTITY)):
        return Applied(OF_IP, found.values[OF_IP], found.entity, f"connections from {ip}")
    return Applied(OF_IP, None, None, "")


def _address(text: str) -> Any:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None

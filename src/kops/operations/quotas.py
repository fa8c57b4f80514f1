"""``kops quotas``: quotas of users, client ids and addresses; which one applies to a client."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from kops.core.cluster.models import Quota
from kops.core.errors import KopsError, NotFound
from kops.core.plan import Json, Plan
from kops.core.quotas import IP, OF_IP, TYPES, UNITS, applied, applied_to_ip, entity_text, number, parse_value, require_key
from kops.operations.protocol.entries import Entries, EntriesMutation, Entry
from kops.operations.services import Services

Entity = Mapping[str, str]


def quota_rows(services: Services, entity: Entity) -> list[dict[str, Any]]:
    """Return a row per quota.

    :param entity: only entities that have these names; empty: all
    """
    found = [one for one in services.kafka.details.client_quotas() if entity.items() <= one.entity.items()]
    rows = [
        {
            "entity": entity_text(one.entity),
            **{kind.replace("-", "_"): one.entity.get(kind) or None for kind in TYPES},
            "defaults": [kind for kind in TYPES if one.entity.get(kind) == ""],
            "key": key,
            "value": number(value),
        }
        for one in found
        for key, value in one.values.items()
    ]
    return sorted(rows, key=lambda row: (row["entity"], row["key"]))


def explain_rows(services: Services, user: str, client_id: str, ip: str | None) -> list[dict[str, Any]]:
    """Return the quota of each kind that applies to a client.

    :param ip: the client's address; None: no row for it
    """
    quotas = services.kafka.details.client_quotas()
    found = [applied(quotas, key, user, client_id) for key in UNITS if key != OF_IP]
    return [{**one.as_json(), "value": number(one.value)} for one in (*found, *([applied_to_ip(quotas, ip)] if ip else []))]


def plan_set(services: Services, entity: Entity, given: Sequence[str]) -> Plan[Entries]:
    """Plan to set quotas of an entity.

    :param given: ``KEY=VALUE`` each
    :raises UsageProblem: for a key or value that Kafka does not take
    """
    values = {}
    for text in given:
        key, _, value = text.partition("=")
        values[key] = number(parse_value(key, value, entity))
    return CHANGE_QUOTAS.plan(services, entries(entity, values), notes=notes(entity))


def plan_remove(services: Services, entity: Entity, keys: Sequence[str]) -> Plan[Entries]:
    """Plan to remove quotas of an entity.

    :param keys: empty: all that it has
    :raises NotFound: when there are none
    """
    for key in keys:
        require_key(key, entity)
    own = next((one.values for one in services.kafka.details.client_quotas() if one.entity == entity), {})
    if not own:
        raise NotFound(f"{entity_text(entity)} has no quotas", hint="`kops quotas list` shows all of them")
    return CHANGE_QUOTAS.plan(services, entries(entity, dict.fromkeys(keys or sorted(own))), notes=notes(entity))


def entries(entity: Entity, values: Mapping[str, float | None]) -> dict[str, Entry]:
    """Return what :class:`ChangeQuotas` changes; None removes."""
    return {f"{entity_text(entity)}: {key}": Entry({"entity": dict(entity), "key": key}, value) for key, value in values.items()}


def notes(entity: Entity) -> list[str]:
    """Say when a change of quotas counts."""
    if IP in entity:
        return ["it counts on each broker by itself, for new connections: those that exist stay"]
    return ["it counts on each broker by itself, at once, also for clients that are connected; `kops quotas explain` says what applies"]


class ChangeQuotas(EntriesMutation):
    name: ClassVar[str] = "quotas.change"
    what: ClassVar[str] = "quota"

    def read(self, services: Services, keys: Mapping[str, Json]) -> dict[str, Json]:
        quotas = {_identity(one.entity): one for one in services.kafka.details.client_quotas()}
        none = Quota({}, {})
        return {target: number(quotas.get(_identity(key["entity"]), none).values.get(key["key"])) for target, key in keys.items()}

    def write(self, services: Services, entries: Mapping[str, Entry]) -> Mapping[str, KopsError | None]:
        by_entity: dict[tuple[tuple[str, str], ...], dict[str, Entry]] = defaultdict(dict)
        for target, one in entries.items():
            by_entity[_identity(one.key["entity"])][target] = one
        changes = [(dict(entity), {one.key["key"]: one.value for one in some.values()}) for entity, some in by_entity.items()]
        errors = services.kafka.principals.alter_quotas(changes)
        return {target: error for some, error in zip(by_entity.values(), errors, strict=True) for target in some}


def _identity(entity: Entity) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(entity.items()))


CHANGE_QUOTAS = ChangeQuotas()

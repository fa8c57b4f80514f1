"""Quotas that slow down the consumers of a group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kops.core.cluster.models import DEFAULT_ENTITY, Quota, sizes_by_replica
from kops.core.errors import KopsError
from kops.core.findings import Finding, Severity, command
from kops.core.groups.look import GroupLook
from kops.core.models import TopicPartition
from kops.core.quotas import entity_text
from kops.core.sizes import size_text
from kops.operations.diagnose.check import GROUP, Check
from kops.operations.diagnose.incident import Incident

RATE = "consumer_byte_rate"
USED_ABOVE = 0.7
"""A client that gets this share of its quota is held back by it: brokers delay answers so that the average stays below."""
LEAST_MS = 10_000


@dataclass(frozen=True)
class _Limited:
    """A client of a group with a quota.

    :param used: bytes a second that it reads from the broker from which it reads most, by its commits; None if unknown
    :param broker: that broker
    """

    client_id: str
    quota: Quota
    used: float | None = None
    broker: int | None = None


def _look(incident: Incident) -> Mapping[str, list[_Limited]]:
    quotas = [one for one in incident.services.kafka.details.client_quotas() if RATE in one.values]
    found: dict[str, list[_Limited]] = {name: [] for name in incident.groups}
    for name, look in incident.groups.items():
        clients = {one.owner for one in look.partitions if one.owner is not None and (one.behind or one.unknown)}
        limited = {client: quota for client in clients if (quota := _quota_of(client, quotas)) is not None}
        if limited:
            rates = _rates(incident, look, set(limited))
            found[name] = [_Limited(client, quota, *rates.get(client, (None, None))) for client, quota in sorted(limited.items())]
    return found


def _quota_of(client_id: str, quotas: Iterable[Quota]) -> Quota | None:
    """Return the quota of a client id (KIP-55); those that name users come first, but nothing shows which user a member is."""
    by_entity = {tuple(sorted(one.entity.items())): one for one in quotas}
    for name in (client_id, DEFAULT_ENTITY):
        if (found := by_entity.get((("client-id", name),))) is not None:
            return found
    users = [
        one for one in by_entity.values() if "user" in one.entity and one.entity.get("client-id", client_id) in (client_id, DEFAULT_ENTITY)
    ]
    return min(users, key=lambda one: one.values[RATE], default=None)


def _rates(incident: Incident, look: GroupLook, clients: set[str]) -> dict[str, tuple[float, int]]:
    """Return the bytes per second that clients read from the broker that they read most from."""
    read: dict[TopicPartition, float] = {}
    for one in look.partitions:
        pace = look.history.pace(one.partition)
        if one.owner in clients and pace is not None and pace.per_second is not None and look.at - pace.last < LEAST_MS * 6:
            read[one.partition] = pace.per_second
        elif one.owner in clients and one.moved and look.seconds:
            read[one.partition] = one.moved / look.seconds
    cluster = incident.cluster
    answers = incident.services.kafka.log_dirs.describe_or_errors(sorted(cluster.live), set(read)).values() if read else ()
    sizes = sizes_by_replica(folder for answer in answers if not isinstance(answer, KopsError) for folder in answer)
    leaders = {place: partition.leader for place, partition in cluster.partitions() if partition.leader is not None}
    sums: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for one in look.partitions:
        place, bounds = one.partition, one.bounds
        if place in read and place in leaders and bounds is not None and bounds.offsets and sizes.get(place) and one.owner is not None:
            sums[one.owner][leaders[place]] += read[place] * max(sizes[place].values()) / bounds.offsets
    return {client: max(((rate, broker) for broker, rate in by_broker.items()), default=(0.0, -1)) for client, by_broker in sums.items()}


def _find(seen: Mapping[str, list[_Limited]], _incident: Incident) -> Iterable[Finding]:
    for name, clients in seen.items():
        for one in clients:
            limit, users, whose = one.quota.values[RATE], "user" in one.quota.entity, entity_text(one.quota.entity)
            has = f"client id {one.client_id} may read {size_text(int(limit))} a second from each broker ({RATE}, {whose})"
            facts = {"group": name, "client_id": one.client_id, "quota": limit, "entity": dict(one.quota.entity), "used": one.used}
            commands = (_without(one.quota), command("groups", "lag", name))
            if one.used is None:
                text = f"{has}; whether that holds it back is not known, since too few commits were seen"
                yield Finding(Severity.NOTE, "has_quota", f"group {name}", text, commands, facts)
            elif one.used >= USED_ABOVE * limit:
                text = f"{'may be' if users else 'is'} throttled: {has}, and reads {size_text(int(one.used))} from broker {one.broker}"
                text += "; as which user it logs in cannot be seen" if users else "; since when is not recorded"
                yield Finding(Severity.WARNING, "throttled", f"group {name}", text, commands, facts)


def _without(quota: Quota) -> str:
    """Return the command that removes a quota."""
    entity = [word for kind, name in quota.entity.items() for word in ((f"--{kind}", name) if name else ("--default", kind))]
    return command("quotas", "remove", *entity, RATE)


CHECK = Check("quotas", GROUP, ("throttled", "has_quota"), "Kafka 2.6; DESCRIBE_CONFIGS on the cluster", _look, _find)

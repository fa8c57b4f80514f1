"""Whether an action is allowed, and by which entry, as Kafka's ``StandardAuthorizer`` decides. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kops.core.acls.models import ALL, ALLOW, ANY, DENY, Acl, Resource

EVERYONE = "User:*"
IMPLIES = {"DESCRIBE": ("DESCRIBE", "READ", "WRITE", "DELETE", "ALTER"), "DESCRIBE_CONFIGS": ("DESCRIBE_CONFIGS", "ALTER_CONFIGS")}
"""An operation, and those whose ALLOW grants it; a DENY denies only its own operation."""


@dataclass(frozen=True)
class Brokers:
    """What the brokers' settings say.

    :param super_users: principals that may do anything (``super.users``); None: set, but not known
    :param allow_unlisted: whether what has no entry is allowed (``allow.everyone.if.no.acl.found``); None: set, but not known
    """

    super_users: Collection[str] | None = ()
    allow_unlisted: bool | None = False


@dataclass(frozen=True)
class Decision:
    """A decision.

    :param allowed: None: it depends on settings that are not known
    :param rule: ``super user``, ``entry``, ``no entries`` (of that resource), ``no match`` (none of them is about this)
    :param acl: the entry that decides
    :param beside: the other entries that say the same, and for a DENY the ALLOWs that it overrules
    """

    allowed: bool | None
    rule: str
    acl: Acl | None = None
    beside: tuple[Acl, ...] = ()


def applies(acl: Acl, principal: str, host: str, operation: str) -> bool:
    """Whether an entry that is about the resource is about this action, too (``StandardAuthorizerData.findResult``)."""
    if acl.principal not in (principal, EVERYONE) or acl.host not in (ANY, host):
        return False
    if acl.permission == ALLOW:
        return acl.operation in (ALL, *IMPLIES.get(operation, (operation,)))
    return acl.operation in (ALL, operation)


def decide(  # noqa: PLR0917 - the parts of a question
    acls: Iterable[Acl], principal: str, operation: str, resource: Resource, host: str, brokers: Brokers
) -> Decision:
    """Decide like ``StandardAuthorizerData.authorize``.

    :param host: the client's address, as :func:`java_address` writes it
    """
    if brokers.super_users is not None and principal in brokers.super_users:
        return Decision(True, "super user")
    here = [acl for acl in acls if acl.covers(resource)]
    about = [acl for acl in here if applies(acl, principal, host, operation)]
    by_permission = {permission: [acl for acl in about if acl.permission == permission] for permission in (DENY, ALLOW)}
    for permission, some in by_permission.items():
        if some:
            allowed = _unless_super(permission == ALLOW, brokers)
            return Decision(allowed, "entry", some[0], (*some[1:], *(by_permission[ALLOW] if permission == DENY else ())))
    if here:
        return Decision(_unless_super(False, brokers), "no match")
    if brokers.allow_unlisted is None:
        return Decision(None, "no entries")
    return Decision(_unless_super(brokers.allow_unlisted, brokers), "no entries")


def _unless_super(allowed: bool, brokers: Brokers) -> bool | None:
    """Return a decision, or None for a denial that does not hold for super users, who are not known."""
    return None if not allowed and brokers.super_users is None else allowed


def java_address(text: str) -> str | None:
    """Return an address as brokers compare it (``InetAddress.getHostAddress``): IPv6 without ``::``; None if it is not an address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    scope = f"%{address.scope_id}" if address.scope_id else ""
    return ":".join(f"{int(part, 16):x}" for part in address.exploded.partition("%")[0].split(":")) + scope

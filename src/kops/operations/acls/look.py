"""ACLs looked at: listed, explained, audited, exported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kops.config.connection import Connection
from kops.core.acls.audit import audit
from kops.core.acls.decide import Brokers, Decision, decide, java_address
from kops.core.acls.files import documents
from kops.core.acls.models import ANY, MATCH, Acl, Filter, Resource
from kops.core.errors import BrokersTooOld, KopsError, UsageProblem, answer_or_error
from kops.core.findings import Finding
from kops.operations.services import Services

_SUPER, _UNLISTED, _CLASS = "super.users", "allow.everyone.if.no.acl.found", "authorizer.class.name"
KNOWN_CLASSES = ("org.apache.kafka.metadata.authorizer.StandardAuthorizer", "kafka.security.authorizer.AclAuthorizer")


def rows(acls: Iterable[Acl]) -> list[dict[str, Any]]:
    return [
        {
            "principal": acl.principal,
            "permission": acl.permission,
            "operation": acl.operation,
            "resource": acl.type,
            "name": acl.name,
            "pattern": acl.pattern,
            "host": acl.host,
        }
        for acl in acls
    ]


def list_acls(services: Services, filters: Filter) -> list[Acl]:
    return services.kafka.acls.matching(filters)


def own_principal(connection: Connection) -> str | None:
    """Return the principal of a connection as brokers name it by default; None for certificates and tokens, whose mapping they know."""
    if connection.uses_sasl:
        return f"User:{connection.username}" if connection.username else None
    return None if connection.uses_tls else "User:ANONYMOUS"


def brokers_of(services: Services) -> Brokers:
    """Return what the settings of a broker say of rights; brokers leave out settings that are not set, and hide the values of these."""
    broker = services.kafka.cluster().brokers[0].id
    settings = answer_or_error(lambda: services.kafka.topics.broker_settings(broker))
    if isinstance(settings, KopsError):
        return Brokers(None, None)
    named, unlisted = settings.get(_SUPER), settings.get(_UNLISTED)
    users = () if named is None else None if named.value is None else tuple(each.strip() for each in named.value.split(";") if each.strip())
    allowed = False if unlisted is None else None if unlisted.value is None else unlisted.value.lower() == "true"
    return Brokers(users, allowed)


@dataclass(frozen=True)
class Explanation:
    """Whether something is allowed.

    :param by_host: where entries for single hosts decide otherwise, by host
    """

    principal: str
    operation: str
    resource: Resource
    host: str | None
    decision: Decision
    by_host: dict[str, Decision]
    brokers: Brokers

    def as_json(self) -> dict[str, Any]:
        return {
            "principal": self.principal,
            "operation": self.operation,
            "resource": self.resource.type,
            "name": self.resource.name,
            "host": self.host,
            **decision_json(self.decision),
            "by_host": [{"host": host, **decision_json(each)} for host, each in self.by_host.items()],
        }


def decision_json(decision: Decision) -> dict[str, Any]:
    return {
        "allowed": decision.allowed,
        "rule": decision.rule,
        "entry": None if decision.acl is None else str(decision.acl),
        "also": list(map(str, decision.beside)),
    }


def explain(
    services: Services,
    principal: str,
    operation: str,
    resource: Resource,
    host: str | None,
    *,
    super_users: Sequence[str] = (),
    unlisted: bool | None = None,
) -> Explanation:
    """Decide as the brokers do.

    :param host: the client's address; None: any that no entry names
    :param super_users: what ``super.users`` has, if the brokers hide it
    :param unlisted: what ``allow.everyone.if.no.acl.found`` is, if the brokers hide it
    :raises UsageProblem: for a host that is not an address
    """
    address = None if host is None else java_address(host)
    if host is not None and address is None:
        raise UsageProblem(f"{host!r} is not an address", hint="brokers compare the client's address, such as 10.0.0.1, never its name")
    about = Filter(type=resource.type, name=resource.name, pattern=MATCH)
    acls, brokers = services.kafka.acls.matching(about), brokers_of(services)
    brokers = replace(
        brokers,
        super_users=super_users or brokers.super_users,
        allow_unlisted=brokers.allow_unlisted if unlisted is None else unlisted,
    )
    decision = decide(acls, principal, operation, resource, address or "", brokers)
    named = dict.fromkeys(acl.host for acl in acls if acl.host != ANY and acl.covers(resource)) if address is None else {}
    each = {one: decide(acls, principal, operation, resource, one, brokers) for one in named}
    others = {one: found for one, found in each.items() if found.allowed != decision.allowed}
    return Explanation(principal, operation, resource, address, decision, others, brokers)


def audit_acls(services: Services, filters: Filter) -> tuple[list[Finding], dict[str, KopsError], int]:
    """Return the findings about some ACLs among all, what could not be read, and how many ACLs were checked."""
    acls, gaps, known = services.kafka.acls.all(), {}, {}
    looks = {
        "topic": services.kafka.topics.names,
        "group": lambda: [group.group_id for group in services.kafka.groups.listed()],
        "principal": lambda: sorted(services.kafka.principals.credentials()),
    }
    for kind, look in looks.items():
        answer = answer_or_error(look)
        if isinstance(answer, BrokersTooOld):  # and have no such users
            continue
        if isinstance(answer, KopsError):
            gaps["SCRAM users" if kind == "principal" else f"{kind}s"] = answer
        elif answer or kind != "principal":  # without any SCRAM user, all log in by other means
            known[kind] = answer
    chosen = {str(acl) for acl in acls if filters.accepts(acl)}
    return [finding for finding in audit(acls, known) if finding.subject in chosen], gaps, len(chosen)


def export(services: Services, filters: Filter) -> list[dict[str, Any]]:
    """Return ACLs as the documents of a file, one a principal."""
    return documents(list_acls(services, filters))

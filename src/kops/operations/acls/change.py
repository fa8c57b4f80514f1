"""ACLs created and deleted: by entry, by filter, by purpose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from kops.core.acls.decide import Brokers, decide
from kops.core.acls.models import ALLOW, ANY, CLUSTER_NAME, Acl, Filter, Resource, acl_of_text, checked
from kops.core.acls.purposes import Purposes, entries, kept_on_revoke
from kops.core.errors import KopsError, UsageProblem
from kops.core.findings import counted, names_text
from kops.core.plan import Item, Json, Plan, Severity
from kops.operations.acls.look import brokers_of, own_principal
from kops.operations.protocol.entries import Entries, EntriesMutation, Entry
from kops.operations.services import Services

_OWN = (("ALTER", "change ACLs, not even to undo this"), ("DESCRIBE", "list ACLs"))
"""Rights on the cluster that kops needs for ACLs."""
_INACTIVE = ("EMPTY", "DEAD")


class ChangeAcls(EntriesMutation):
    """Creates and deletes ACLs; an ACL that is there has the value True."""

    name: ClassVar[str] = "acls.change"
    what: ClassVar[str] = "ACL"

    def read(self, services: Services, keys: Mapping[str, Json]) -> dict[str, Json]:
        there = set(map(str, services.kafka.acls.all()))
        return {target: True if target in there else None for target in keys}

    def write(self, services: Services, entries: Mapping[str, Entry]) -> Mapping[str, KopsError | None]:
        problems: dict[Acl, KopsError] = {}
        if creating := [acl_of_text(target) for target, entry in entries.items() if entry.value]:
            problems |= services.kafka.acls.create(creating)
        if deleting := [acl_of_text(target) for target, entry in entries.items() if not entry.value]:
            problems |= services.kafka.acls.delete(deleting)
        by_target = {str(acl): problem for acl, problem in problems.items()}
        return {target: by_target.get(target) for target in entries}


CHANGE_ACLS = ChangeAcls()


def plan_create(services: Services, acls: Iterable[Acl]) -> Plan[Entries]:
    """Plan to create ACLs.

    :raises UsageProblem: for an operation that brokers do not check on such a resource
    """
    return plan_acls(services, dict.fromkeys(checked(acls), True), "create {}")


def plan_delete(services: Services, filters: Sequence[Filter]) -> Plan[Entries]:
    """Plan to delete every ACL that a filter accepts."""
    if any(each.is_empty for each in filters):
        raise UsageProblem(
            "this would delete every ACL", hint="name a principal, or --resource, --operation, --host, --permission, --pattern"
        )
    found = dict.fromkeys(acl for each in filters for acl in services.kafka.acls.matching(each))
    return plan_acls(services, found, "delete {}")


def plan_grant(services: Services, principal: str, purposes: Purposes) -> Plan[Entries]:
    """Plan to create the ACLs that purposes need and a principal lacks."""
    return plan_acls(services, dict.fromkeys(checked(entries(principal, purposes)), True), f"grant {principal} {{}}")


def plan_revoke(services: Services, principal: str, purposes: Purposes) -> Plan[Entries]:
    """Plan to delete the ACLs of purposes, but for those that another purpose of the principal needs."""
    removing, there = entries(principal, purposes), services.kafka.acls.all()
    kept = kept_on_revoke(purposes, removing, there)
    plan = plan_acls(services, {acl: None for acl in removing if acl not in kept}, f"revoke from {principal} {{}}")
    items = (*plan.items, *(Item(str(acl), "none", reason=reason) for acl, reason in kept.items()))
    return replace(plan, items=items, warnings=(*plan.warnings, *_other_groups(principal, purposes, removing, there)))


def _other_groups(principal: str, purposes: Purposes, removing: Iterable[Acl], there: Iterable[Acl]) -> Iterator[str]:
    gone = set(removing)
    left = [acl for acl in there if acl not in gone and acl.principal == principal and (acl.permission, acl.type) == (ALLOW, "group")]
    if purposes.consume and left:
        groups = names_text(dict.fromkeys(acl.name for acl in left))
        yield f"{principal} can no longer consume {names_text(purposes.consume)} by its other groups either: {groups}"


def plan_acls(services: Services, wanted: Mapping[Acl, Json], summary: str, *, beside: Iterable[Acl] = ()) -> Plan[Entries]:
    """Plan to create and delete ACLs, and say who loses what.

    :param wanted: True creates, None deletes
    :param summary: a sentence, with ``{}`` where their number stands
    :param beside: ACLs that the same change creates before
    """
    plan = CHANGE_ACLS.plan(services, {str(acl): Entry(None, value) for acl, value in wanted.items()})
    if not plan.has_changes:
        return plan
    changed = {acl_of_text(target): entry.value for target, entry in plan.arguments.wanted.items()}
    before = list(dict.fromkeys((*services.kafka.acls.all(), *beside)))
    after = [acl for acl in before if acl not in changed] + [acl for acl, there in changed.items() if there]
    brokers, own = brokers_of(services), own_principal(services.connection)
    locked = [] if own is None else list(_locked_out(own, before, after, changed, brokers))
    notes = () if own else ("not checked: whether this context keeps its own rights, since only brokers know the principal of its login",)
    warnings = (*locked, *_groups_that_lose(services, before, after, changed, brokers))
    plan = replace(plan, warnings=warnings, notes=notes, summary=summary.format(counted(len(changed), "ACL")))
    return replace(plan, severity=Severity.SEVERE, confirm=own) if own and locked else plan


def _locked_out(own: str, before: Sequence[Acl], after: Sequence[Acl], changed: Iterable[Acl], brokers: Brokers) -> Iterator[str]:
    """Say which right on ACLs the principal of this context loses, if any, from any host."""
    hosts = dict.fromkeys(("", *(acl.host for acl in changed if acl.host != ANY)))
    cluster = Resource("cluster", CLUSTER_NAME)
    for operation, means in _OWN:
        for host in hosts:
            had, has = (decide(acls, own, operation, cluster, host, brokers).allowed for acls in (before, after))
            if had and not has:
                unless = " unless super.users names it, which brokers do not show" if has is None else ""
                at = f" from {host}" if host else ""
                yield f"{own}, the principal of this context, could then no longer {means}{at}{unless}"
                break


def _groups_that_lose(
    services: Services, before: Sequence[Acl], after: Sequence[Acl], changed: Iterable[Acl], brokers: Brokers
) -> Iterator[str]:
    """Say which groups with members a principal can no longer read as, or which of their rights on topics it loses."""
    losing = [acl for acl in changed if acl.type in ("group", "topic") and acl.operation in ("READ", "ALL") and acl.principal != "User:*"]
    if not losing:
        return
    active = [group.group_id for group in services.kafka.groups.listed(partial=True) if group.state not in _INACTIVE]

    def may(acls: Sequence[Acl], principal: str, kind: str, name: str) -> bool | None:
        return decide(acls, principal, "READ", Resource(kind, name), "", brokers).allowed

    for principal in dict.fromkeys(acl.principal for acl in losing):
        read_as = [group for group in active if may(before, principal, "group", group)]
        if not read_as:
            continue
        lost = [group for group in read_as if not may(after, principal, "group", group)]
        if lost:
            yield f"{principal} could then no longer read as {names_text(lost)}, active now (Kafka does not say for which principals)"
        topics = [acl.name for acl in losing if acl.principal == principal and acl.type == "topic"]
        gone = [name for name in topics if may(before, principal, "topic", name) and not may(after, principal, "topic", name)]
        if gone:
            yield f"{principal} could then no longer read {names_text(gone)}; it may read as {names_text(read_as)}, active now"

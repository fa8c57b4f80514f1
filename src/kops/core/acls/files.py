"""ACLs as YAML documents, one a principal: what is allowed and denied on each resource. Written and read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from kops.core.acls.models import (
    ALLOW,
    ANY,
    CLUSTER_NAME,
    DENY,
    LITERAL,
    OPERATIONS,
    PREFIXED,
    Acl,
    parse_operation,
    parse_principal,
    parse_resource,
)
from kops.core.statefile.fields import Fields, known_fields, placed

PERMISSIONS = (("allow", ALLOW), ("deny", DENY))
FIELDS = ("principal", *(field for field, _ in PERMISSIONS))
RIGHT_FIELDS = ("resource", "name", "pattern", "host", "operations")


def documents(acls: Iterable[Acl]) -> list[dict[str, Any]]:
    """Return entries by principal: ``{principal, allow, deny}``, with a literal pattern and host ``*`` left out."""
    made = []
    for principal, some in groupby(sorted(acls), key=lambda acl: acl.principal):
        own = list(some)
        body: dict[str, Any] = {"principal": principal}
        for field, permission in PERMISSIONS:
            if chosen := [acl for acl in own if acl.permission == permission]:
                body[field] = _rights(chosen)
        made.append(body)
    return made


def _rights(acls: Iterable[Acl]) -> list[dict[str, Any]]:
    def place(acl: Acl) -> tuple[str, str, str, str]:
        return acl.type, acl.name, acl.pattern, acl.host

    return [
        {
            "resource": kind,
            "name": name,
            **({} if pattern == LITERAL else {"pattern": pattern}),
            **({} if host == ANY else {"host": host}),
            "operations": sorted(acl.operation for acl in some),
        }
        for (kind, name, pattern, host), some in groupby(sorted(acls, key=place), key=place)
    ]


def parse_documents(found: Iterable[tuple[str, Any]]) -> list[Acl]:
    """Read back what :func:`documents` made.

    Operations that brokers do not check on such a resource are taken: a cluster may have them.

    :param found: place (for messages) and YAML of each document, whose scalars are the texts as written
    :raises ConfigError: naming the document and the field
    """
    acls: dict[Acl, None] = {}
    for place, body in found:
        fields = known_fields(place, "", body, FIELDS, "an ACL document")
        principal = fields.exact("principal", "such as User:alice")
        with placed(fields, "principal"):
            principal = parse_principal(principal)
        if not any(fields.body.get(field) for field, _ in PERMISSIONS):
            raise fields.wrong("", f"neither allows nor denies {principal} anything", "give it allow or deny, with entries")
        for field, permission in PERMISSIONS:
            for number, right in enumerate(fields.sequence(field, "a list of resources with operations")):
                acls |= dict.fromkeys(
                    _acls(known_fields(place, f"{field}[{number}]", right, RIGHT_FIELDS, "an entry"), principal, permission)
                )
    return list(acls)


def _acls(entry: Fields, principal: str, permission: str) -> Iterator[Acl]:
    kind = entry.exact("resource", ", ".join(OPERATIONS))
    if not kind.isdecimal():  # a type that a newer Kafka has is written as its number
        with placed(entry, "resource"):
            kind, _ = parse_resource(kind, named=False)
    name = CLUSTER_NAME if kind == "cluster" and "name" not in entry.body else entry.exact("name", '"*" means all')
    if kind == "cluster" and name != CLUSTER_NAME:
        raise entry.wrong("name", f"is {name}", f"a cluster is called {CLUSTER_NAME}")
    pattern = entry.one_of("pattern", (LITERAL, PREFIXED), LITERAL)
    host = entry.exact("host") if "host" in entry.body else ANY
    operations = entry.sequence("operations", "such as [READ, DESCRIBE]")
    if not operations:
        raise entry.wrong("operations", "is missing", "such as [READ, DESCRIBE]")
    for operation in operations:
        with placed(entry, "operations"):
            yield Acl(
                principal,
                permission,
                operation if str(operation).isdecimal() else parse_operation(str(operation)),
                kind,
                name,
                pattern,
                host,
            )

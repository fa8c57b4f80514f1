"""ACLs as YAML documents, one a principal: what is allowed and denied on each resource. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from kops.core.acls.models import ALLOW, ANY, DENY, LITERAL, Acl


def documents(acls: Iterable[Acl]) -> list[dict[str, Any]]:
    """Return entries by principal: ``{principal, allow, deny}``, with a literal pattern and host ``*`` left out."""
    made = []
    for principal, some in groupby(sorted(acls), key=lambda acl: acl.principal):
        own = list(some)
        body: dict[str, Any] = {"principal": principal}
        for field, permission in (("allow", ALLOW), ("deny", DENY)):
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

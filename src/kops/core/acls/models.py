"""An ACL of Kafka, and filters of ACLs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kops.core.errors import UsageProblem

ANY = "*"
ALLOW, DENY = "ALLOW", "DENY"
LITERAL, PREFIXED, MATCH = "literal", "prefixed", "match"
CLUSTER_NAME = "kafka-cluster"
ALL = "ALL"
_BASIC = ("CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
OPERATIONS = {
    "topic": ("READ", "WRITE", *_BASIC),
    "group": ("READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
    "cluster": ("CREATE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE"),
    "transactional-id": ("WRITE", "DESCRIBE", "TWO_PHASE_COMMIT"),
    "delegation-token": ("DESCRIBE",),
    "user": ("CREATE_TOKENS", "DESCRIBE_TOKENS"),
}
"""By type of resource, the operations that brokers check on it (``AclEntry.supportedOperations``)."""
_PLAIN = re.compile(r"[^\s'\"\\]+")
EVERY_OPERATION = tuple(dict.fromkeys(each for some in OPERATIONS.values() for each in some))


class Resource(NamedTuple):
    """What is accessed.

    :param type: a key of ``OPERATIONS``
    """

    type: str
    name: str

    def __str__(self) -> str:
        return "the cluster" if self.type == "cluster" else f"{self.type} {self.name}"


class Acl(NamedTuple):
    """One entry. Principal and host may be wildcards: ``User:*`` and ``*``.

    :param name: of the resources; ``*`` with a literal pattern means all
    """

    principal: str
    permission: str
    operation: str
    type: str
    name: str
    pattern: str = LITERAL
    host: str = ANY

    def covers(self, resource: Resource) -> bool:
        """Whether the entry is about a resource (``StandardAuthorizerData.checkSection``)."""
        if self.type != resource.type:
            return False
        return resource.name.startswith(self.name) if self.pattern == PREFIXED else self.name in (ANY, resource.name)

    @property
    def place(self) -> str:
        return f"{self.type}:{self.name}{' prefixed' if self.pattern == PREFIXED else ''}"

    def __str__(self) -> str:
        """Return the entry as words that :func:`acl_of_text` reads: ``User:alice ALLOW READ topic:shop- prefixed from 10.0.0.1``."""
        words = [self.principal, self.permission, self.operation, f"{self.type}:{self.name}"]
        words += ["prefixed"] * (self.pattern == PREFIXED) + (["from", self.host] if self.host != ANY else [])
        return " ".join(word if _PLAIN.fullmatch(word) else shlex.quote(word) for word in words)


def acl_of_text(text: str) -> Acl:
    """Read back what ``str`` makes of an entry.

    :raises ValueError: if it is something else
    """
    principal, permission, operation, place, *rest = shlex.split(text)
    kind, _, name = place.partition(":")
    pattern = PREFIXED if rest[:1] == [PREFIXED] else LITERAL
    host = rest[-1] if "from" in rest[-2:-1] else ANY
    found = Acl(principal, permission, operation, kind, name, pattern, host)
    if str(found) != text:
        raise ValueError(f"not an ACL: {text}")
    return found


@dataclass(frozen=True)
class Filter:
    """Which ACLs are meant; None and empty: any.

    :param pattern: ``literal``, ``prefixed``, or ``match``: every entry that is about the named resource (as ``kafka-acls`` has it)
    """

    principals: tuple[str, ...] = ()
    type: str | None = None
    name: str | None = None
    operations: tuple[str, ...] = ()
    host: str | None = None
    pattern: str | None = None
    permission: str | None = None

    @property
    def is_empty(self) -> bool:
        return self == Filter()

    def accepts(self, acl: Acl) -> bool:
        if self.pattern == MATCH and self.name is not None:
            at_place = acl.covers(Resource(self.type or acl.type, self.name))
        else:
            at_place = self.name in (None, acl.name) and self.type in (None, acl.type) and self.pattern in (None, MATCH, acl.pattern)
        return (
            at_place
            and (not self.principals or acl.principal in self.principals)
            and (not self.operations or acl.operation in self.operations)
            and self.host in (None, acl.host)
            and self.permission in (None, acl.permission)
        )


def parse_principal(text: str) -> str:
    """Return a principal as ``TYPE:NAME``; a name alone is a user.

    :raises UsageProblem: for an empty name
    """
    kind, colon, name = text.partition(":")
    found = text if colon else f"User:{text}"
    if not text or (colon and not (kind and name)):
        raise UsageProblem(f"{text!r} is not a principal", hint="write it as User:alice, or alice")
    return found


def parse_operation(text: str) -> str:
    """Return Kafka's name of an operation: ``describe-configs`` is ``DESCRIBE_CONFIGS``.

    :raises UsageProblem: for an unknown one
    """
    known = {each.replace("_", ""): each for each in (*EVERY_OPERATION, ALL)}
    found = known.get(text.upper().replace("-", "").replace("_", ""))
    if found is None:
        raise UsageProblem(f"{text!r} is not an operation", hint=f"one of {', '.join(known.values())}")
    return found


def parse_resource(text: str, *, named: bool = True) -> tuple[str, str | None]:
    """Return the type and name of a resource: ``topic:orders``, ``cluster``.

    :param named: whether a name is required
    :raises UsageProblem: for an unknown type, or without a name
    """
    kind, colon, name = text.partition(":")
    kind = kind.lower().replace("_", "-").replace("transactionalid", "transactional-id").replace("delegationtoken", "delegation-token")
    if kind not in OPERATIONS:
        from kops.core.statefile.fields import nearest  # which imports all of state files

        raise UsageProblem(
            f"{text!r} is not a resource", hint=f"{nearest(kind, list(OPERATIONS))}write it as topic:orders; {', '.join(OPERATIONS)}"
        )
    if kind == "cluster":
        if name not in ("", CLUSTER_NAME):
            raise UsageProblem(f"the cluster has no name {name}", hint="write cluster alone")
        return kind, CLUSTER_NAME
    if not name and (named or colon):
        raise UsageProblem(f"{text!r} names no {kind}", hint=f"write it as {kind}:NAME, or {kind}:* for every one")
    return kind, name or None


def checked(acls: Iterable[Acl]) -> tuple[Acl, ...]:
    """Return entries without duplicates, in order.

    :raises UsageProblem: for an operation that brokers never check on that type of resource
    """
    found = tuple(dict.fromkeys(acls))
    for acl in found:
        if acl.operation != ALL:
            checked_operation(acl.operation, acl.type)
    return found


def checked_operation(operation: str, kind: str) -> str:
    """Return an operation that brokers check on a type of resource.

    :raises UsageProblem: for another one
    """
    known = OPERATIONS[kind]
    if operation not in known:
        raise UsageProblem(f"brokers check no {operation} on a {kind}", hint=f"of a {kind}: {', '.join(known)}")
    return operation

"""What is wrong with the ACLs of a cluster: too wide, without effect, about nothing. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from kops.core.acls.decide import EVERYONE, IMPLIES, java_address
from kops.core.acls.models import ALL, ALLOW, ANY, DENY, LITERAL, OPERATIONS, PREFIXED, Acl
from kops.core.findings import Finding, Severity, command

_CHANGING = ("WRITE", "DELETE", "ALTER", "ALTER_CONFIGS", "CREATE", ALL)


class Index:
    """Finds the entries that cover the place, principal and host of another one, without looking at all of them."""

    def __init__(self, acls: Iterable[Acl]) -> None:
        self._at: dict[tuple[str, str, str, str, str], list[Acl]] = defaultdict(list)
        for acl in acls:
            self._at[(acl.permission, acl.principal, acl.type, acl.pattern, acl.name)].append(acl)

    def covering(self, acl: Acl, permission: str) -> Iterator[Acl]:
        places = [(LITERAL, ANY), *((PREFIXED, acl.name[:length]) for length in range(1, len(acl.name) + 1))]
        if acl.pattern == LITERAL:
            places = [(LITERAL, ANY)] if acl.name == ANY else [(LITERAL, acl.name), *places]
        for principal in dict.fromkeys((acl.principal, EVERYONE)):
            for place in places:
                found = self._at.get((permission, principal, acl.type, *place), ())
                yield from (other for other in found if other != acl and other.host in (ANY, acl.host))


def granted(acl: Acl) -> frozenset[str]:
    """Return the operations that an entry is about, with those that its ALLOW implies."""
    if acl.operation == ALL:
        return frozenset(OPERATIONS.get(acl.type, ())) | {ALL}
    implied = {operation for operation, by in IMPLIES.items() if acl.operation in by} if acl.permission == ALLOW else set()
    return frozenset({acl.operation} | (implied & set(OPERATIONS.get(acl.type, ()))))


def audit(acls: Sequence[Acl], known: Mapping[str, Collection[str]]) -> list[Finding]:
    """Return the findings, worst first.

    :param known: the names that exist, by type of resource, and of users under ``principal``; a type that is missing was not looked at
    """
    index = Index(acls)
    names = {kind: sorted(some) for kind, some in known.items()}
    found = [finding for acl in acls for finding in _of(acl, index, names)]
    return sorted(found, key=lambda finding: (finding.severity, finding.check, finding.subject))


def _of(acl: Acl, index: Index, names: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    if acl.host != ANY and (address := java_address(acl.host)) != acl.host:
        yield _bad_host(acl, address)
        return
    without_effect = _without_effect(acl, index)
    if without_effect:
        yield without_effect
    elif acl.permission == ALLOW:
        yield from _too_wide(acl)
    yield from _about_nothing(acl, names)


def _bad_host(acl: Acl, address: str | None) -> Finding:
    why = f"brokers write that address {address}" if address else "brokers compare addresses, never names of hosts or networks"
    severity = Severity.CRITICAL if acl.permission == DENY else Severity.WARNING
    return _finding(acl, severity, "acl_never_matches", f"matches no client: {why}", host=acl.host, address=address)


def _without_effect(acl: Acl, index: Index) -> Finding | None:
    needed = granted(acl)
    denies = list(index.covering(acl, DENY))
    if acl.permission == ALLOW and (by := _together(needed, denies)):
        return _finding(acl, Severity.WARNING, "acl_denied", f"grants nothing: {by[0]} comes first", by=list(map(str, by)))
    alike = denies if acl.permission == DENY else index.covering(acl, ALLOW)
    for other in alike:
        if needed <= granted(other):
            return _finding(acl, Severity.NOTE, "acl_redundant", f"makes no difference while there is {other}", by=[str(other)])
    return None


def _together(needed: Collection[str], others: Sequence[Acl]) -> list[Acl]:
    """Return the entries that are about all of some operations together; none if one is left."""
    by: list[Acl] = []
    for operation in needed:
        found = next((other for other in others if operation in granted(other)), None)
        if found is None:
            return []
        by += [found] if found not in by else []
    return by


def _too_wide(acl: Acl) -> Iterator[Finding]:
    if acl.principal == EVERYONE:
        severity = Severity.CRITICAL if acl.operation in _CHANGING else Severity.WARNING
        yield _finding(
            acl, severity, "acl_for_everyone", "allows every principal, also those without a login where a listener lets them in"
        )
    elif acl.operation == ALL:
        wide = acl.type == "cluster" or acl.name == ANY
        severity = Severity.WARNING if wide else Severity.NOTE
        yield _finding(acl, severity, "acl_all_operations", f"allows all operations: {', '.join(OPERATIONS.get(acl.type, ()))}")
    elif acl.name == ANY and acl.operation in _CHANGING:
        yield _finding(acl, Severity.WARNING, "acl_every_resource", f"allows {acl.operation} on every {acl.type}, later ones included")


def _about_nothing(acl: Acl, names: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    if acl.name != ANY and acl.type in names and not _exists(acl, names[acl.type]):
        what = f"no {acl.type} that this context sees {'begins with' if acl.pattern == PREFIXED else 'is named'} {acl.name}"
        yield _finding(acl, Severity.NOTE, "acl_names_nothing", what, name=acl.name)
    kind, _, user = acl.principal.partition(":")
    if kind == "User" and acl.principal != EVERYONE and "principal" in names and user not in names["principal"]:
        what = f"{user} is not a SCRAM user; users of certificates, tokens and other logins cannot be listed"
        yield _finding(acl, Severity.NOTE, "acl_unknown_user", what, name=user)


def _exists(acl: Acl, names: Sequence[str]) -> bool:
    at = bisect_left(names, acl.name)
    return at < len(names) and (names[at].startswith(acl.name) if acl.pattern == PREFIXED else names[at] == acl.name)


def _finding(acl: Acl, severity: Severity, check: str, summary: str, **facts: object) -> Finding:
    words = ["acls", "delete", acl.principal, "--operation", acl.operation, "--permission", acl.permission.lower(), "--host", acl.host]
    words += ["--resource", acl.type if acl.type == "cluster" else f"{acl.type}:{acl.name}", "--pattern", acl.pattern, "--dry-run"]
    return Finding(severity, check, str(acl), summary, (command(*words),), facts)

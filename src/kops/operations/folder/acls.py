"""ACLs as a file of a folder of the whole cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kops.config.yaml_files import placed_documents
from kops.core.acls.files import parse_documents
from kops.core.acls.models import ALL, OPERATIONS, Acl, Filter
from kops.core.findings import counted
from kops.core.plan import Plan
from kops.core.selection import names_owned
from kops.operations.acls import look
from kops.operations.acls.change import plan_acls
from kops.operations.protocol.entries import Entries
from kops.operations.services import Services


def export(services: Services) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Return every ACL, a document a principal."""
    return look.export(services, Filter()), ()


def plan(services: Services, file: str) -> Sequence[Plan[Entries]]:
    """Plan to create the ACLs of a file that are missing."""
    declared = _read(file)
    made = plan_acls(services, dict.fromkeys(declared, True), "create {}")
    idle = [acl for acl in declared if acl.operation not in (ALL, *OPERATIONS.get(acl.type, (acl.operation,)))]
    if not idle:
        return [made]
    why = f"brokers check no {idle[0].operation} on a {idle[0].type}"
    warning = f"{counted(len(idle), 'ACL')} of the file without effect, such as {idle[0]}: {why}"
    return [replace(made, warnings=(*made.warnings, warning))]


def prune(services: Services, owns: Sequence[str], file: str) -> Sequence[Plan[Entries]]:
    """Plan to delete ACLs of principals that globs match, unless the file declares them."""
    declared, there = dict.fromkeys(_read(file)), services.kafka.acls.all()
    owned = names_owned(owns, {acl.principal for acl in there})
    doomed = [acl for acl in there if acl.principal in owned and acl not in declared]
    return [plan_acls(services, dict.fromkeys(doomed), "delete {}", beside=declared)] if doomed else []


def _read(file: str) -> list[Acl]:
    return parse_documents(placed_documents(Path(file), needed="ACL", missing_ok=True))

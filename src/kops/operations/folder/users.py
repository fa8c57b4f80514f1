"""SCRAM users as a file of a folder. It holds no passwords, so users that are missing are left for ``kops users``."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kops.config.yaml_files import placed_documents
from kops.core.findings import counted
from kops.core.plan import CANNOT, Item, Plan
from kops.core.selection import names_owned
from kops.core.statefile.fields import known_fields
from kops.operations.services import Services
from kops.operations.users import LEAST, MECHANISMS, MOST, NAME, UserChange, plan_delete

FIELDS = ("name", "mechanisms")
Mechanisms = dict[str, int]
"""Iterations by mechanism."""


def export(services: Services) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Return the users with their mechanisms and iterations; brokers return no passwords."""
    found = sorted(services.kafka.principals.credentials().items())
    return [{"name": name, "mechanisms": dict(sorted(own.items()))} for name, own in found if own], ()


def plan(services: Services, file: str) -> Sequence[Plan[UserChange]]:
    """Compare users with a file: what differs needs a password, and is named with the command that takes one."""
    found = services.kafka.principals.credentials()
    items = [
        _item(name, mechanism, found.get(name, {}).get(mechanism), iterations)
        for name, mechanisms in _read(file).items()
        for mechanism, iterations in mechanisms.items()
    ]
    left = [item for item in items if item.differs]
    many = f"{counted(len(left), 'password')} of users left as they are: no file holds one; `kops cluster diff` names the commands"
    return [
        Plan(
            operation=NAME,
            summary="users need passwords" if left else "every user is there",
            cluster_id=services.kafka.cluster().cluster_id,
            context=services.connection.label,
            items=items,
            arguments=UserChange("", {}),
            warnings=(many,) if left else (),
        )
    ]


def _item(name: str, mechanism: str, now: int | None, iterations: int) -> Item:
    before, after = (None if count is None else {"iterations": count} for count in (now, iterations))
    if now == iterations:
        return Item(f"{name} {mechanism}", "none", before, after, "there")
    verb = "create" if now is None else "alter"
    command = f"kops users {verb} {shlex.quote(name)} --mechanism {mechanism.lower()} --iterations {iterations}"
    return Item(f"{name} {mechanism}", CANNOT, before, after, f"it needs a password: {command}")


def prune(services: Services, owns: Sequence[str], file: str) -> Sequence[Plan[UserChange]]:
    """Plan to delete users that globs match and the file does not declare."""
    found = services.kafka.principals.credentials()
    doomed = sorted(names_owned(owns, found) - _read(file).keys())
    return [plan_delete(services, name) for name in doomed if found[name]]


def _read(file: str) -> dict[str, Mechanisms]:
    return parse_documents(placed_documents(Path(file), needed="user", missing_ok=True))


def parse_documents(found: Iterable[tuple[str, Any]]) -> dict[str, Mechanisms]:
    """Read users, one a document.

    :param found: place (for messages) and YAML of each document, whose scalars are the texts as written
    :raises ConfigError: naming the document and the field
    """
    users: dict[str, Mechanisms] = {}
    for place, body in found:
        fields = known_fields(place, "", body, FIELDS, "a user without a password")
        name = fields.exact("name")
        fields.refuse_second("name", name, users)
        given = fields.inside("mechanisms")
        for mechanism in given.body:
            if mechanism not in MECHANISMS:
                raise given.wrong(mechanism, "is not a mechanism", f"one of {', '.join(MECHANISMS)}")
            text = given.exact(mechanism, "the number of iterations")
            if not (text.isascii() and text.isdecimal() and LEAST <= int(text[:9]) <= MOST):
                raise given.wrong(mechanism, f"is {text}", f"iterations: a whole number from {LEAST} to {MOST}")
        if not given.body:
            raise fields.wrong("mechanisms", "is empty", f"such as {{{MECHANISMS[-1]}: {LEAST}}}")
        users[name] = {mechanism: int(text) for mechanism, text in given.body.items()}
    return users

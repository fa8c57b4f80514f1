"""A replay as it was requested, checked before anything is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from kops.core.errors import UsageProblem
from kops.core.statefile.sources import FORMATS, Form

_HEADER = re.compile(r"headers\[(?P<name>.+)\]")
_FIELDS = ("key", "value", "timestamp")
KEEP, BY_KEY = "keep", "key"
"""How the partition of a record is chosen: the one that it has, or that of its key; anything else is an expression."""
EXACTLY_ONCE = "exactly-once"


@dataclass(frozen=True)
class Changes:
    """Changes to records on their way, all of them Spark SQL.

    :param key: and ``value``: their formats, as ``json`` or ``json:item string, price double``
    :param where: keeps those for which it is true
    :param assignments: ``key``, ``value``, ``timestamp`` or ``headers[name]`` -> expression; null removes a header
    :param topic: expression for the target topic of each record
    :param partition: expression for its target partition
    :param function: ``module:function``, from DataFrame to DataFrame
    :param skip: leave out records that are not in their format
    """

    key: str = "bytes"
    value: str = "bytes"
    where: str | None = None
    assignments: tuple[tuple[str, str], ...] = ()
    topic: str | None = None
    partition: str | None = None
    function: str | None = None
    skip: bool = False

    @property
    def some(self) -> bool:
        """Whether Spark has to make rows of the records."""
        return bool(self.where or self.assignments or self.topic or self.partition or self.function)

    @property
    def headers(self) -> dict[str, str]:
        """The expressions of the headers that are set, by name."""
        return {header: expression for name, expression in self.assignments if (header := header_name(name)) is not None}

    @property
    def plain(self) -> dict[str, str]:
        return {name: expression for name, expression in self.assignments if header_name(name) is None}

    def expressions(self) -> list[str]:
        return [text for text in (self.where, self.topic, self.partition, *(each for _, each in self.assignments)) if text]

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"assignments": [list(pair) for pair in self.assignments]}


def changes_of_json(body: Mapping[str, Any]) -> Changes:
    return Changes(**{**body, "assignments": tuple((name, expression) for name, expression in body["assignments"])})


@dataclass(frozen=True)
class ReplayRequest:
    """A requested replay.

    :param source: topic, with or without partitions
    :param target: topic; None when an expression gives it
    :param declared: the topics that the expression may give; empty to find them by reading
    :param span: ``FROM..TO``; ``from_group`` and ``until_group``: the committed offsets of a group in place of either
    :param partition_by: ``keep``, ``key`` or an expression; None chooses
    :param source_context: where the source is, when it is on another cluster
    :param rate: records per second in total; ``limit``: records in total
    :param accept_new_times: the target may set its own timestamps
    """

    source: str
    target: str | None
    span: str | None = None
    from_group: str | None = None
    until_group: str | None = None
    partition_by: str | None = None
    changes: Changes = field(default_factory=Changes)
    declared: tuple[str, ...] = ()
    source_context: str | None = None
    rate: float | None = None
    limit: int | None = None
    guarantee: str = EXACTLY_ONCE
    compression: str = "none"
    accept_new_times: bool = False
    master: str | None = None


def parse_assignments(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the assignments of ``--set``.

    :raises UsageProblem: when one sets nothing that a record has
    """
    found = []
    for text in texts:
        name, equals, expression = text.partition("=")
        name = name.strip()
        if not equals or not expression.strip():
            raise UsageProblem(
                f"{text!r} sets nothing", hint='write it like --set "value=upper(value)" or --set "headers[why]=\'replayed\'"'
            )
        if name not in _FIELDS and not _HEADER.fullmatch(name):
            raise UsageProblem(f"{name!r} is nothing that a record has", hint=f"{', '.join(_FIELDS)} or headers[NAME]")
        found.append((name, expression.strip()))
    names = [name for name, _ in found]
    for name in names:
        if names.count(name) > 1:
            raise UsageProblem(f"{name} is set twice", hint="once with one expression")
    return tuple(found)


def header_name(assignment: str) -> str | None:
    """Return the header that an assignment sets; None when it sets something else."""
    match = _HEADER.fullmatch(assignment)
    return match["name"] if match else None


def parse_form(text: str) -> Form:
    """Return the format that a text names.

    :raises UsageProblem: when it is unknown
    """
    name, _, schema = text.partition(":")
    if name not in FORMATS or (schema and name != "json"):
        raise UsageProblem(
            f"{text!r} is not a known format", hint=f"one of: {', '.join(FORMATS)}; json takes its fields: json:item string, price double"
        )
    return Form(name, schema or None)

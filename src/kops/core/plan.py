"""Plans and results: a mutation as data, before and after it ran.

A plan is computed from what was read, lists per item what will change and why, and carries the state that it was computed from, so that
applying it can be refused if that state has changed (compare-and-set). All of it is JSON: ``-o json`` prints it, ``--plan-out`` saves it,
``kops apply`` runs it later, the journal keeps it.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias

from kops.core.blocks import Block, Blocks
from kops.core.errors import ExitCode, UsageProblem

if TYPE_CHECKING:
    from typing_extensions import Self, TypeVar
else:
    from typing import TypeVar

PLAN_VERSION = 1
MANY = 1_000
"""Longer lists of results are returned in blocks."""
CANNOT = "cannot"
"""The action of an item that is not as requested, and that its plan cannot change: ``reason`` says why."""

Json: TypeAlias = Any
"""A value that ``json.dumps`` accepts as it is."""

if TYPE_CHECKING:
    Args = TypeVar("Args", default=Json)
    Args_co = TypeVar("Args_co", default=Json, covariant=True)
else:  # ``typing.TypeVar`` has no defaults before Python 3.13
    Args = TypeVar("Args")
    Args_co = TypeVar("Args_co", covariant=True)


class Severity(str, Enum):
    """How much approval a plan needs."""

    MODERATE = "moderate"
    """``y`` on a terminal, ``--yes`` without one."""
    SEVERE = "severe"
    """The name typed on a terminal, or ``--confirm NAME``: deleting, truncating, replacing."""


class Status(str, Enum):
    """The outcome of an item, and of a whole result."""

    DONE = "done"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    SKIPPED = "skipped"
    PARTIAL = "partial"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a plan changes, or leaves alone for a stated reason.

    :param target: as the user would name it: ``orders``, ``orders:0``, ``billing orders:0``
    :param action: a verb: create, delete, move, append; none, or ``CANNOT``
    :param before: the current value; None if there is none
    :param after: the new value; None if it is removed
    :param reason: why this value: clamped, past the end, no commit yet
    """

    target: str
    action: str
    before: Json = None
    after: Json = None
    reason: str = ""

    @property
    def changes(self) -> bool:
        return self.action not in ("none", CANNOT)

    @property
    def differs(self) -> bool:
        """Whether it is not as requested now."""
        return self.action != "none"

    def as_json(self) -> dict[str, Json]:
        return {"target": self.target, "action": self.action, "before": self.before, "after": self.after, "reason": self.reason}


class DerivedItems(Sequence[Item]):
    """Items that are derived from a plan's arguments when they are read, and not stored, because there are many."""

    @property
    @abstractmethod
    def changes(self) -> bool:
        """Whether any item changes something."""

    @abstractmethod
    def overview(self) -> Iterator[dict[str, Json]]:
        """Yield rows that summarize the items for a person."""


class Arguments(ABC):
    """What applying a plan needs beyond its items: a frozen dataclass per mutation, stored as JSON in files and in the journal."""

    __slots__ = ()

    @abstractmethod
    def as_json(self) -> Json:
        """Return the arguments as they are stored in files and in the journal, and shown by ``-o json``."""

    @classmethod
    @abstractmethod
    def of_json(cls, body: Json) -> Self:
        """Read back what ``as_json`` returned.

        :raises KeyError, TypeError, ValueError, AttributeError: if it is damaged
        """

    def items(self) -> DerivedItems | None:
        """Return the plan's items if they follow from the arguments; None if the plan stores them."""
        return None


@dataclass(frozen=True)
class Plan(Generic[Args_co]):
    """A mutation that is decided and not yet applied.

    :param operation: name in ``kops.operations.protocol.registry``, such as ``offsets.reset``
    :param summary: one sentence for the person who approves
    :param cluster_id: of the cluster that was read
    :param context: name of the context, or the bootstrap servers if there is none
    :param confirm: the name to type if the severity is SEVERE
    :param guard: the state that the plan was computed from; compared again before applying
    :param arguments: what applying needs beyond the items; still JSON in a plan that was read back, until its mutation is looked up
    :param warnings: what the approver should beware of, one sentence each
    :param notes: what the approver should know, one sentence each
    :param losses: what happened after the entry that this plan undoes, and is lost with it, one sentence each
    """

    operation: str
    summary: str
    cluster_id: str
    context: str
    items: Sequence[Item]
    severity: Severity = Severity.MODERATE
    confirm: str = ""
    guard: Json = field(default_factory=dict)
    arguments: Args_co = field(default_factory=dict)  # type: ignore[assignment]  # of a mutation that needs none
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()
    version: int = PLAN_VERSION

    @property
    def changes(self) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.changes)

    @property
    def has_changes(self) -> bool:
        return self.items.changes if isinstance(self.items, DerivedItems) else any(item.changes for item in self.items)

    def as_json(self, *, whole: bool = True) -> dict[str, Json]:
        """Return the plan as JSON values.

        :param whole: include items that follow from the arguments; reading the plan back does not need them
        """
        body = {each.name: getattr(self, each.name) for each in fields(self)}
        listed = whole or not isinstance(self.items, DerivedItems)
        arguments = self.arguments.as_json() if isinstance(self.arguments, Arguments) else self.arguments
        items = [item.as_json() for item in self.items] if listed else []
        return body | {"severity": self.severity.value, "items": items, "arguments": arguments}

    def typed(self, arguments: type[Arguments]) -> Plan[Any]:
        """Return the plan with arguments of the type that its mutation has, and the items that follow from them.

        :raises UsageProblem: if they are damaged
        """
        if isinstance(self.arguments, Arguments):
            return self
        try:
            read = arguments.of_json(self.arguments)
            items = read.items()
            plan: Plan[Any] = self
            return _checked(replace(plan, arguments=read, items=self.items if items is None else items))
        except (KeyError, TypeError, ValueError, AttributeError) as broken:
            raise _damaged(broken) from broken


def plan_document(plan: Plan) -> dict[str, Json]:
    """Return the whole plan with a digest, as ``-o json`` prints it and ``--plan-out`` saves it.

    The digest detects accidents only, such as an edit by hand. It is not a signature: whoever edits a plan can recompute it.
    """
    body = plan.as_json()
    return body | {"digest": _digest(body)}


def plan_of_document(document: Json) -> Plan:
    """Read back what ``plan_document`` made.

    :raises UsageProblem: if it is not a plan, or was changed: only what was approved may be applied
    """
    if not isinstance(document, dict):
        return plan_from_json(document)
    body = {key: value for key, value in document.items() if key != "digest"}
    plan = plan_from_json(body)
    if document.get("digest") != _digest(body):
        raise UsageProblem("the plan was changed after it was made", hint="make it again with --plan-out FILE")
    return plan


def _digest(body: Json) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def plan_from_json(body: Json) -> Plan:
    """Read a plan back; its arguments stay JSON until ``registry.typed`` looks up their type.

    :raises UsageProblem: if it is not a plan of a version that this kops understands
    """
    if not isinstance(body, dict) or body.get("version") != PLAN_VERSION or "operation" not in body:
        raise UsageProblem("this is not a kops plan of version 1", hint="make one with --plan-out FILE")
    try:
        items = tuple(Item(**item) for item in body["items"])
        sentences = {"warnings": tuple(body["warnings"]), "notes": tuple(body["notes"]), "losses": tuple(body["losses"])}
        return _checked(Plan(**{**body, "items": items, "severity": Severity(body["severity"]), **sentences}))
    except (KeyError, TypeError, ValueError) as broken:
        raise _damaged(broken) from broken


def _checked(plan: Plan) -> Plan:
    """Return a plan that was read back, if its texts are strings.

    :raises TypeError: if a text is not a string
    """
    texts = [plan.operation, plan.summary, plan.cluster_id, plan.context, plan.confirm, *plan.warnings, *plan.notes, *plan.losses]
    texts += [text for item in plan.items for text in (item.target, item.action, item.reason)]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a value of another type where a string is expected")
    return plan


def _damaged(broken: Exception) -> UsageProblem:
    return UsageProblem(f"the plan is damaged: {broken}", hint="make it again with --plan-out FILE")


class ItemResult(NamedTuple):
    """The outcome of one item. A tuple rather than a dataclass: hundreds of thousands of them are created per second.

    :param error: an error object (``KopsError.as_json``) if it failed
    :param value: what was read back, if there is something to read
    """

    target: str
    status: Status
    error: Json = None
    value: Json = None

    def as_json(self) -> dict[str, Json]:
        return {"target": self.target, "status": self.status.value, "error": self.error, "value": self.value}


def not_done(results: Iterable[ItemResult]) -> set[str]:
    """Return the targets that are known to be as they were before."""
    return {result.target for result in results if result.status in (Status.FAILED, Status.SKIPPED)}


@dataclass(frozen=True)
class Result:
    """What a mutation did, item by item.

    :param messages: sentences for the user, such as what to do next
    :param journalled: whether the journal says what came of it; if not, it says that kops crashed, so not all is done
    """

    items: tuple[ItemResult, ...]
    messages: tuple[str, ...] = ()
    facts: Json = field(default_factory=dict)
    journalled: bool = True

    @property
    def status(self) -> Status:
        seen = {item.status for item in self.items}
        bad = seen & {Status.FAILED, Status.UNKNOWN, Status.PARTIAL}
        if not bad:
            return Status.DONE if Status.DONE in seen else Status.UNCHANGED
        if seen & {Status.DONE, Status.PARTIAL}:
            return Status.PARTIAL
        return Status.FAILED if Status.FAILED in bad else Status.UNKNOWN

    @property
    def exit_code(self) -> ExitCode:
        done = ExitCode.DONE if self.journalled else ExitCode.PARTIAL
        return {
            Status.FAILED: ExitCode.FAILED,
            Status.PARTIAL: ExitCode.PARTIAL,
            Status.UNKNOWN: ExitCode.TIMED_OUT,
        }.get(self.status, done)

    def as_json(self, *, in_blocks: bool = False) -> dict[str, Json]:
        """Return the JSON envelope of a mutation.

        :param in_blocks: return many items as ``Blocks``, for ``output.json_text.write_json``
        """
        blocks = _blocks(self.items)
        items = blocks if in_blocks and len(self.items) > MANY else list(blocks.rows())
        errors = [{"target": item.target, **item.error} for item in self.items if item.error]
        body: dict[str, Json] = {"version": PLAN_VERSION, "status": self.status.value, "items": items, "errors": errors}
        if self.messages:
            body["messages"] = list(self.messages)
        if self.facts:
            body["facts"] = self.facts
        return body


def _blocks(items: Iterable[ItemResult]) -> Blocks:
    """Return results as rows that leave out values of None."""
    blocks = []
    for (status, failed, valued), some in groupby(items, lambda item: (item.status, item.error is not None, item.value is not None)):
        targets, _, errors, values = zip(*some, strict=True)
        each = {"target": targets} | ({"error": errors} if failed else {}) | ({"value": values} if valued else {})
        common = {"target": None, "status": status.value, "error": None, "value": None}
        blocks.append(Block(len(targets), {key: value for key, value in common.items() if value is not None or key in each}, each))
    return Blocks(tuple(blocks))

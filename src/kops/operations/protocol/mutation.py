"""The interface of a mutation to the safety protocol (``kops.operations.protocol.run``), and what mutations share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic

from kops.config.connection import Connection
from kops.core.errors import (
    KopsError,
    ReadOnlyContext,
    Refused,
    StateMoved,
    TimedOut,
)
from kops.core.plan import Args, Arguments, Item, ItemResult, Plan, Status
from kops.operations.protocol.aftermath import Traces
from kops.operations.services import Services


class Mutation(ABC, Generic[Args]):
    """One kind of change, registered by name in ``kops.operations.protocol.registry``."""

    name: ClassVar[str]
    arguments: ClassVar[type[Arguments] | None] = None
    """The type of the arguments of its plans; None: plain JSON."""

    resume_command: ClassVar[str] = ""
    """The command that continues an interrupted change, if any; it takes the id of the journal entry."""

    can_leave_partial: ClassVar[bool] = False
    """Whether an error can leave an item half done: such an entry is unfinished, not failed."""

    def typed(self, plan: Plan[Any]) -> Plan[Args]:
        """Return a plan of this operation with typed arguments; it may have been read from a file.

        :raises UsageProblem: when the arguments are damaged
        """
        return plan if self.arguments is None else plan.typed(self.arguments)

    def locks(self, plan: Plan[Args]) -> Iterable[str]:  # noqa: ARG002 - the contract for those that have some
        """Name what no two kops processes may change at once: locked from the check until the read-back."""
        return ()

    def cluster_id(self, services: Services) -> str:
        """Return the id of the cluster that would be changed, read now."""
        return services.kafka.cluster().cluster_id

    @abstractmethod
    def check(self, services: Services, plan: Plan[Args]) -> None:
        """Compare the cluster with what the plan was computed from.

        :raises Refused: (StateMoved, GroupActive, ...) when it has changed; nothing has been written then
        """

    @abstractmethod
    def apply(self, services: Services, plan: Plan[Args]) -> Iterator[ItemResult]:
        """Change the cluster, yielding the result of each changing item as it is known."""

    @abstractmethod
    def verify(self, services: Services, plan: Plan[Args], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Read back what was written; an item that differs from the plan becomes FAILED (``verification_failed``)."""

    @abstractmethod
    def invert(self, services: Services, plan: Plan[Args], results: Sequence[ItemResult]) -> Plan[Any]:
        """Plan to undo the items that were done; ``losses`` describe what has happened since and would be lost.

        :raises Refused: when they cannot be undone, with the reason
        """

    def traces(self, plan: Plan[Args], results: Sequence[ItemResult]) -> Traces:  # noqa: ARG002 - the contract for those that leave some
        """Return what to compare between the end of this change and its undo, to find what has happened in between."""
        return Traces()

    def offsets_in_the_middle(self, plan: Plan[Args]) -> dict[str, list[int | None]]:  # noqa: ARG002 - the contract for those with a group
        """Return, by partition, the offsets that the group of ``traces`` may have if this was stopped in the middle."""
        return {}

    def can_be_undone(self, plan: Plan[Args]) -> bool:  # noqa: ARG002 - the contract for those that cannot
        """Whether ``invert`` can undo what this plan changes, provided that nothing else changes meanwhile."""
        return True

    def resume(self, services: Services, plan: Plan[Args]) -> Plan[Any]:  # noqa: ARG002 - the contract for those that can
        """Plan what is left of an interrupted plan, from the current state of the cluster.

        :raises Refused: when the original command has to be run again instead
        """
        raise Refused(
            f"an interrupted {self.name} is finished by running its command again", hint="what is already done is recognised and left alone"
        )

    def can_be_finished(self, plan: Plan[Args]) -> bool:  # noqa: ARG002 - the contract for those where it depends
        """Whether ``resume`` can plan what is left."""
        return type(self).resume is not Mutation.resume

    def covers(self, services: Services, plan: Plan[Args], earlier: Plan[Args]) -> bool:
        """Whether a completed plan leaves nothing of an earlier plan to be finished: of the same things, nothing is left to do."""
        theirs, ours = set(self.locks(earlier)), set(self.locks(plan))
        targets = {item.target for item in plan.items}  # none: a pattern matched nothing, since all of it is deleted
        related = not targets or (targets & {item.target for item in earlier.changes} and (not ours or theirs & ours))
        if not related or not self.can_be_finished(earlier):
            return False
        try:
            return not self.resume(services, earlier).has_changes
        except KopsError:
            return False

    def messages(self, services: Services, plan: Plan[Args], results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002
        """Return sentences for the user: what to do next."""
        return ()


class FinalMutation(Mutation[Args]):
    """A change that cannot be undone."""

    no_undo: ClassVar[str]
    """Why not."""

    instead: ClassVar[str | None] = None
    """What can be done instead, if anything."""

    def can_be_undone(self, plan: Plan[Args]) -> bool:  # noqa: ARG002 - the contract
        return False

    def invert(self, services: Services, plan: Plan[Args], results: Sequence[ItemResult]) -> Plan[Any]:  # noqa: ARG002 - the contract
        """Refuse: it cannot be undone.

        :raises Refused: always
        """
        raise Refused(self.no_undo, hint=self.instead)


FINAL = "this cannot be undone"
"""The first warning of a plan whose changes cannot be undone."""


def with_finality(plan: Plan[Args], mutation: Mutation[Any]) -> Plan[Args]:
    """Return the plan, with the warning ``FINAL`` if what it changes cannot be undone."""
    if FINAL in plan.warnings or not plan.has_changes or mutation.can_be_undone(plan):
        return plan
    return replace(plan, warnings=(FINAL, *plan.warnings))


def refuse_read_only(connection: Connection) -> None:
    if connection.read_only:
        raise ReadOnlyContext(
            f"context {connection.name} is read-only", hint="use another context with -c, or set read_only = false in its configuration"
        )


def refuse_other_cluster(services: Services, plan: Plan, mutation: Mutation[Any]) -> None:
    """Refuse a plan that was made for another cluster, by cluster id: addresses may be the same."""
    actual = mutation.cluster_id(services)
    if actual != plan.cluster_id:
        raise StateMoved(
            f"the plan is for cluster {plan.cluster_id}, and this is cluster {actual}",
            hint="make the plan again on this cluster, or choose the right context with -c",
        )


def compare_guard(plan: Plan, actual: object, what: str) -> None:
    """Refuse if the state that a plan was computed from has changed.

    :param actual: the current state, as the same JSON as ``plan.guard``
    """
    if actual != plan.guard:
        raise StateMoved(f"{what} changed since the plan was made", hint="run the command again to plan from what is there now")


def failed(item: Item, error: KopsError) -> ItemResult:
    """Return the result of an item that failed; if it timed out, the outcome is unknown."""
    status = Status.UNKNOWN if isinstance(error, TimedOut) else Status.FAILED
    return ItemResult(item.target, status, error=error.as_json())

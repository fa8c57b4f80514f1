"""What a mutation is to the safety protocol (``kops.operations.protocol.run``), and what mutations share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
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
    """What the arguments of its plans are; None: JSON."""

    gone_on_with: ClassVar[str] = ""
    """The command that continues an interrupted one, if any: it takes the id of the journal entry."""

    leaves_parts: ClassVar[bool] = False
    """Whether an error can leave an item half done: such an entry is unfinished, not failed."""

    def typed(self, plan: Plan[Any]) -> Plan[Args]:
        """Return a plan of this operation, which may have been read from a file, with arguments of their type.

        :raises UsageProblem: when they are damaged
        """
        return plan if self.arguments is None else plan.typed(self.arguments)

    def locks(self, plan: Plan[Args]) -> Iterable[str]:  # noqa: ARG002 - the contract for those that have some
        """Name what two kops must not change at once: held from the check until it was read back."""
        return ()

    def cluster_id(self, services: Services) -> str:
        """Return the id of the cluster that would be changed, as it is now."""
        return services.kafka.cluster().cluster_id

    @abstractmethod
    def check(self, services: Services, plan: Plan[Args]) -> None:
        """Compare the cluster with what the plan was computed from.

        :raises Refused: (StateMoved, GroupActive, ...) when it moved; nothing has been changed then
        """

    @abstractmethod
    def apply(self, services: Services, plan: Plan[Args]) -> Iterator[ItemResult]:
        """Change the cluster, yielding the result of each changing item as it is known."""

    @abstractmethod
    def verify(self, services: Services, plan: Plan[Args], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Read back what was written; an item that is not as planned becomes FAILED (``verification_failed``)."""

    @abstractmethod
    def invert(self, services: Services, plan: Plan[Args], results: Sequence[ItemResult]) -> Plan[Any]:
        """Return the plan that takes the done items back; its ``losses`` say what happened since and would be lost.

        :raises Refused: when they cannot be undone, with the reason
        """

    def traces(self, plan: Plan[Args], results: Sequence[ItemResult]) -> Traces:  # noqa: ARG002 - the contract for those that leave some
        """Say where to look, when this ends and before it is undone, for what has happened in between."""
        return Traces()

    def offsets_in_the_middle(self, plan: Plan[Args]) -> dict[str, list[int | None]]:  # noqa: ARG002 - the contract for those with a group
        """Return, by partition, the offsets that the group of ``traces`` may have when this was stopped in the middle."""
        return {}

    def can_be_undone(self, plan: Plan[Args]) -> bool:  # noqa: ARG002 - the contract for those that cannot
        """Tell whether ``invert`` has a way back for what this plan changes, when nothing moves meanwhile."""
        return True

    def resume(self, services: Services, plan: Plan[Args]) -> Plan[Any]:  # noqa: ARG002 - the contract for those that can
        """Return the plan for what is left of an interrupted one, computed from the cluster as it is now.

        :raises Refused: when running the original command again is the way
        """
        raise Refused(
            f"an interrupted {self.name} is finished by running its command again", hint="what is already done is recognised and left alone"
        )

    def can_be_finished(self, plan: Plan[Args]) -> bool:  # noqa: ARG002 - the contract for those where it depends
        """Tell whether ``resume`` has a plan for what is left."""
        return type(self).resume is not Mutation.resume

    def covers(self, plan: Plan[Args], earlier: Plan[Args]) -> bool:  # noqa: ARG002 - the contract for those that can tell
        """Tell whether a plan that is done leaves nothing of an earlier one to be finished."""
        return False

    def messages(self, services: Services, plan: Plan[Args], results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002
        """Return sentences for the person who ran it: what to do next."""
        return ()


def refuse_read_only(connection: Connection) -> None:
    """Refuse any mutation in a context that is marked read-only."""
    if connection.read_only:
        raise ReadOnlyContext(
            f"context {connection.name} is read-only", hint="use another context with -c, or set read_only = false in its configuration"
        )


def refuse_other_cluster(services: Services, plan: Plan, mutation: Mutation[Any]) -> None:
    """Refuse a plan that was made for another cluster, whatever its address says."""
    actual = mutation.cluster_id(services)
    if actual != plan.cluster_id:
        raise StateMoved(
            f"the plan is for cluster {plan.cluster_id}, and this is cluster {actual}",
            hint="make the plan again on this cluster, or choose the right context with -c",
        )


def compare_guard(plan: Plan, actual: object, what: str) -> None:
    """Refuse when the state that a plan was computed from is not the state now.

    :param actual: the same JSON as ``plan.guard``, read now
    """
    if actual != plan.guard:
        raise StateMoved(f"{what} changed since the plan was made", hint="run the command again to plan from what is there now")


def failed(item: Item, error: KopsError) -> ItemResult:
    """Return the result of an item that failed; of one that timed out the outcome is not known."""
    status = Status.UNKNOWN if isinstance(error, TimedOut) else Status.FAILED
    return ItemResult(item.target, status, error=error.as_json())

"""The safety protocol: the one way in which kops changes anything.

plan -> show -> approve -> compare-and-set -> journal -> apply -> read back -> close the journal. A command makes a plan;
everything after it happens here, so it is written and tested once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar

from kops.config.connection import Connection
from kops.core.errors import ExitCode, KopsError, ReadOnlyContext, Refused, StateMoved, Terminated, TimedOut, Unreachable
from kops.core.plan import Item, ItemResult, Plan, Result, Status
from kops.operations.journal import Entry, EntryStatus, Journal
from kops.operations.locks import exclusive
from kops.operations.services import Services


class Mutation(ABC):
    """One kind of change, registered by name in ``kops.operations.registry``."""

    name: ClassVar[str]
    gone_on_with: ClassVar[str] = ""
    """The command that goes on with an interrupted one, where there is one: it takes the id of the journal's entry."""

    def locks(self, plan: Plan) -> Iterable[str]:  # noqa: ARG002 - the contract for those that have some
        """Name what two kops must not change at once: held from the check until it was read back."""
        return ()

    def cluster_id(self, services: Services) -> str:
        """Return the id of the cluster that would be changed, as it is now."""
        return services.kafka.cluster().cluster_id

    @abstractmethod
    def check(self, services: Services, plan: Plan) -> None:
        """Compare the cluster with what the plan was computed from.

        :raises Refused: (StateMoved, GroupActive, ...) when it moved; nothing has been changed then
        """

    @abstractmethod
    def apply(self, services: Services, plan: Plan) -> Iterator[ItemResult]:
        """Change the cluster, yielding the result of each changing item as it is known."""

    @abstractmethod
    def verify(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Read back what was written; an item that is not as planned becomes FAILED (``verification_failed``)."""

    @abstractmethod
    def invert(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> Plan:
        """Return the plan that takes the done items back.

        :raises Refused: when they cannot be taken back, with the reason
        """

    def can_be_undone(self, plan: Plan) -> bool:  # noqa: ARG002 - the contract for those that cannot
        """Tell whether ``invert`` has a way back for what this plan changes, when nothing moves meanwhile."""
        return True

    def resume(self, services: Services, plan: Plan) -> Plan:  # noqa: ARG002 - the contract for those that can
        """Return the plan for what is left of an interrupted one, computed from the cluster as it is now.

        :raises Refused: when running the original command again is the way
        """
        raise Refused(
            f"an interrupted {self.name} is finished by running its command again", hint="what is already done is recognised and left alone"
        )

    def messages(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002
        """Return sentences for the person who ran it: what to do next."""
        return ()


class InterruptedMutation(KopsError):
    """A mutation was stopped in the middle; says what was and what was not done."""

    slug = "interrupted"

    def __init__(self, plan: Plan, mutation: Mutation, results: Sequence[ItemResult], entry: Entry, code: ExitCode) -> None:
        ways = [f"`kops journal show {entry.id}` has the details"]
        if mutation.gone_on_with:
            ways.insert(0, f"`{mutation.gone_on_with} {entry.id}` goes on where it stopped")
        if mutation.can_be_undone(plan):
            ways.append(f"`kops undo {entry.id}` takes it back")
        done = [result.target for result in results if result.status is Status.DONE]
        reported = {result.target for result in results}
        left = [item.target for item in plan.changes if item.target not in reported]
        super().__init__(
            f"interrupted: {len(done)} of {len(plan.changes)} done ({_some(done)}); not known to be done: {_some(left)}",
            hint="; ".join(ways),
            journal_id=entry.id,
            done=done,
            not_done=left,
        )
        self.exit_code = code  # type: ignore[misc]  # the signal decides: 130 or 143


def carry_out(
    services: Services,
    plan: Plan,
    mutation: Mutation,
    *,
    approve: Callable[[Plan], None],
    journal: Journal,
    undoes: str = "",
    finishes: str = "",
) -> tuple[Result, Entry]:
    """Run a plan that has something to change through the protocol.

    :param approve: shows the plan and raises ``ApprovalRequired`` when nobody agrees
    :param undoes: the journal entry that this plan takes back
    :param finishes: the journal entry of which this plan does what was left
    :raises Refused: before any change
    :raises InterruptedMutation: on SIGINT or SIGTERM while applying
    """
    refuse_read_only(services.connection)
    refuse_other_cluster(services, plan, mutation)
    approve(plan)
    with exclusive(services.directories.state / "locks", plan.cluster_id, mutation.locks(plan)):
        return _carry_out(services, plan, mutation, journal=journal, undoes=undoes, finishes=finishes)


def _carry_out(services: Services, plan: Plan, mutation: Mutation, *, journal: Journal, undoes: str, finishes: str) -> tuple[Result, Entry]:
    mutation.check(services, plan)
    entry = journal.open(plan, undoes=undoes, finishes=finishes)
    results: list[ItemResult] = []
    try:
        for item in mutation.apply(services, plan):
            results.append(item)
        results = list(mutation.verify(services, plan, results))
        messages = mutation.messages(services, plan, results)
    except (KeyboardInterrupt, Terminated) as stopped:
        journal.close(entry, EntryStatus.INTERRUPTED, results)
        code = ExitCode.INTERRUPTED if isinstance(stopped, KeyboardInterrupt) else ExitCode.TERMINATED
        raise InterruptedMutation(plan, mutation, results, entry, code) from stopped
    except KopsError as failure:
        journal.close(entry, _status_after(failure, results), results, error=failure.as_json())
        failure.details.setdefault("journal_id", entry.id)
        failure.hint = f"{failure.hint}; " if failure.hint else ""
        failure.hint += f"see `kops journal show {entry.id}`"
        raise
    except BaseException as bug:
        journal.close(entry, EntryStatus.FAILED, results, error={"code": "bug", "message": repr(bug)})
        raise
    result = Result(tuple(results), messages)
    journal.close(entry, EntryStatus.of(result.status), results)
    if undoes and result.status is Status.DONE:
        journal.mark_undone(undoes, by=entry.id)
    if finishes and result.status is Status.DONE:
        journal.mark_finished(finishes, by=entry.id)
    return result, entry


def refuse_read_only(connection: Connection) -> None:
    """Refuse any mutation in a context that is marked read-only."""
    if connection.read_only:
        raise ReadOnlyContext(
            f"context {connection.name} is read-only", hint="use another context with -c, or set read_only = false in its configuration"
        )


def refuse_other_cluster(services: Services, plan: Plan, mutation: Mutation) -> None:
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


def _status_after(failure: KopsError, results: Sequence[ItemResult]) -> EntryStatus:
    """Return how far a mutation came that an error ended: a lost connection tells nothing about the last request."""
    if isinstance(failure, (TimedOut, Unreachable)):
        return EntryStatus.UNKNOWN
    if any(result.status is Status.DONE for result in results):
        return EntryStatus.PARTIAL
    return EntryStatus.REFUSED if isinstance(failure, Refused) and not results else EntryStatus.FAILED


def _some(names: Sequence[str], limit: int = 5) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more

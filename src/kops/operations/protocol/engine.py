"""The safety protocol: the one way in which kops changes anything.

plan -> show -> approve -> compare-and-set -> journal -> apply -> read back -> close the journal. A command makes a plan;
everything after it happens here, so it is written and tested once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Generic

from kops.config.connection import Connection
from kops.core.errors import (
    AuthenticationFailed,
    ConfigError,
    ExitCode,
    KopsError,
    ReadOnlyContext,
    Refused,
    StateMoved,
    Terminated,
    TimedOut,
    Unreachable,
    VerificationFailed,
)
from kops.core.plan import Args, Arguments, Item, ItemResult, Json, Plan, Result, Status
from kops.operations.protocol.aftermath import Traces, look
from kops.operations.protocol.journal import Entry, EntryStatus, Journal
from kops.operations.protocol.locks import exclusive
from kops.operations.protocol.undisturbed import undisturbed
from kops.operations.services import Services


class Mutation(ABC, Generic[Args]):
    """One kind of change, registered by name in ``kops.operations.protocol.registry``."""

    name: ClassVar[str]
    arguments: ClassVar[type[Arguments] | None] = None
    """What the arguments of its plans are; None: JSON."""

    gone_on_with: ClassVar[str] = ""
    """The command that goes on with an interrupted one, where there is one: it takes the id of the journal's entry."""

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


class InterruptedMutation(KopsError):
    """A mutation was stopped in the middle; says what was and what was not done."""

    slug = "interrupted"

    def __init__(self, plan: Plan, mutation: Mutation[Any], results: Sequence[ItemResult], entry: Entry, code: ExitCode) -> None:
        ways = [f"`kops journal show {entry.id}` has the details"]
        if mutation.gone_on_with:
            ways.insert(0, f"`{mutation.gone_on_with} {entry.id}` continues where it stopped")
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
    mutation: Mutation[Any],
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


def _carry_out(
    services: Services, plan: Plan, mutation: Mutation[Any], *, journal: Journal, undoes: str, finishes: str
) -> tuple[Result, Entry]:
    mutation.check(services, plan)
    entry = journal.open(plan, undoes=undoes, finishes=finishes)
    results: list[ItemResult] = []
    try:
        for item in mutation.apply(services, plan):
            results.append(item)
        results = list(mutation.verify(services, plan, results))
        messages = mutation.messages(services, plan, results)
    except (KeyboardInterrupt, Terminated) as stopped:
        code = ExitCode.INTERRUPTED if isinstance(stopped, KeyboardInterrupt) else ExitCode.TERMINATED
        interrupted = InterruptedMutation(plan, mutation, results, entry, code)
        _close(journal, entry, EntryStatus.INTERRUPTED, results, failure=interrupted)
        raise interrupted from stopped
    except KopsError as failure:
        _of_a_lost_request(failure)
        failure.details.setdefault("journal_id", entry.id)
        failure.hint = f"{failure.hint}; " if failure.hint else ""
        failure.hint += f"see `kops journal show {entry.id}`"
        _close(journal, entry, _status_after(failure, results, mutation), results, error=failure.as_json(), failure=failure)
        raise
    except BaseException as bug:
        status = EntryStatus.PARTIAL if mutation.leaves_parts else EntryStatus.FAILED
        with suppress(OSError, ConfigError):
            journal.close(entry, status, results, error={"code": "bug", "message": repr(bug)})
        raise
    with undisturbed():  # the work is done: a Ctrl-C here has nothing to stop, and must not hide that
        left = _left(services, plan, mutation, results)
        reached = Result(tuple(results)).status
        said = _close(journal, entry, _closing_status(reached, results, mutation), results, left=left)
        if reached is Status.DONE and not said:
            said = _mark(journal, mutation, entry)
    return Result(tuple(results), (*messages, *said)), entry


def _close(
    journal: Journal,
    entry: Entry,
    status: EntryStatus,
    results: Sequence[ItemResult],
    *,
    error: Json = None,
    left: Json = None,
    failure: KopsError | None = None,
) -> tuple[str, ...]:
    """Close an entry; where it cannot be written, say so beside what came of the work, and never instead of it.

    :param failure: gets the sentence as a hint
    :returns: the sentence; nothing where the entry was written
    """
    try:
        journal.close(entry, status, results, error=error, left=left)
    except (OSError, ConfigError) as trouble:
        reason = trouble.strerror if isinstance(trouble, OSError) else trouble.message
        said = (
            f"warning: what came of it ({status.value}) could not be written to {journal.folder / entry.id}.json: {reason};"
            f" `kops journal list` shows {entry.id} as crashed"
        )
        if failure is not None:
            failure.hint = f"{failure.hint}; {said}" if failure.hint else said
        return (said,)
    return ()


def _mark(journal: Journal, mutation: Mutation[Any], entry: Entry) -> tuple[str, ...]:
    """Note on earlier entries that this one took them back, or did what was left of them."""
    try:
        if entry.undoes:
            journal.mark_undone(entry.undoes, by=entry.id)
        if entry.finishes:
            journal.mark_finished(entry.finishes, by=entry.id)
        elif not entry.undoes:
            mark_covered(journal, entry.plan, mutation, by=entry.id)
    except (OSError, ConfigError) as trouble:
        reason = trouble.strerror if isinstance(trouble, OSError) else trouble.message
        return (f"warning: it could not be noted in {journal.folder} on the earlier entry: {reason}",)
    return ()


def mark_covered(journal: Journal, plan: Plan, mutation: Mutation[Any], *, by: str = "") -> None:
    """Note on unfinished entries of the same kind that a plan, which is done, left nothing of them.

    :param by: the entry of the plan; empty: there was nothing to do, and each is its own witness
    """
    if type(mutation).covers is Mutation.covers:
        return
    from kops.operations.protocol.journal import crashed
    from kops.operations.protocol.journal_actions import is_unfinished

    for entry in journal.entries(lambda _damaged: None, mentioning=plan.operation):
        known = entry.id != by and entry.plan.cluster_id == plan.cluster_id and not entry.undoes
        stopped = entry.status is not EntryStatus.OPEN or crashed(entry)
        alike = entry.plan.operation == plan.operation
        if known and stopped and alike and is_unfinished(entry) and mutation.covers(plan, mutation.typed(entry.plan)):
            journal.mark_finished(entry.id, by=by or entry.id)


def _of_a_lost_request(failure: KopsError) -> None:
    """Let a connection that was lost in the middle count as a request whose outcome is not known."""
    if isinstance(failure, Unreachable) and not isinstance(failure, AuthenticationFailed):
        failure.message += "; whether the last request was carried out is not known"
        failure.exit_code = ExitCode.TIMED_OUT  # type: ignore[misc]  # before the first request it would be 3


def _closing_status(status: Status, results: Sequence[ItemResult], mutation: Mutation[Any]) -> EntryStatus:
    """Return how far an entry is: where something was written that was read back wrong, it did not simply fail."""
    wrong = any((result.error or {}).get("code") == VerificationFailed.slug for result in results)
    return EntryStatus.PARTIAL if mutation.leaves_parts and wrong else EntryStatus.of(status)


def _left(services: Services, plan: Plan, mutation: Mutation[Any], results: Sequence[ItemResult]) -> Json:
    """Return what a mutation leaves behind; None where it leaves nothing to look at, or that cannot be read."""
    traces = mutation.traces(plan, results)
    try:
        return look(services, traces) if traces != Traces() else None
    except KopsError:
        return None


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


def _status_after(failure: KopsError, results: Sequence[ItemResult], mutation: Mutation[Any]) -> EntryStatus:
    """Return how far a mutation came that an error ended: a lost connection tells nothing about the last request."""
    if isinstance(failure, (TimedOut, Unreachable)):
        return EntryStatus.UNKNOWN
    if any(result.status is Status.DONE for result in results):
        return EntryStatus.PARTIAL
    if isinstance(failure, Refused) and not results:
        return EntryStatus.REFUSED
    return EntryStatus.PARTIAL if mutation.leaves_parts else EntryStatus.FAILED


def _some(names: Sequence[str], limit: int = 5) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more

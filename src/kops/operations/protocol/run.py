"""The safety protocol: the only way in which kops changes anything.

plan -> show -> approve -> compare-and-set -> journal -> apply -> read back -> close the journal. A command makes a plan; everything after
that happens here, so it is written and tested once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from kops.core.errors import (
    AuthenticationFailed,
    BrokerDown,
    ConfigError,
    ExitCode,
    KopsError,
    Refused,
    TimedOut,
    Unreachable,
    UsageProblem,
    VerificationFailed,
)
from kops.core.findings import names_text
from kops.core.plan import ItemResult, Json, Plan, Result, Status
from kops.core.stops import STOPS, exit_code, kept_stops, undisturbed
from kops.operations.protocol.aftermath import Traces, look
from kops.operations.protocol.journal import Entry, EntryStatus, Journal
from kops.operations.protocol.journal_actions import is_stopped
from kops.operations.protocol.locks import exclusive, wait_for_others
from kops.operations.protocol.mutation import Mutation, refuse_other_cluster, refuse_read_only, with_finality
from kops.operations.services import Services


class InterruptedMutation(KopsError):
    """A mutation was stopped in the middle; reports what was done and what was not."""

    slug = "interrupted"

    def __init__(self, plan: Plan, mutation: Mutation[Any], results: Sequence[ItemResult], entry: Entry, code: ExitCode) -> None:
        ways = [f"`kops journal show {entry.id}` has the details"]
        if mutation.resume_command:
            ways.insert(0, f"`{mutation.resume_command} {entry.id}` continues where it stopped")
        if mutation.can_be_undone(plan):
            ways.append(f"`kops undo {entry.id}` undoes it")
        done = [result.target for result in results if result.status is Status.DONE]
        reported = {result.target for result in results}
        left = [item.target for item in plan.changes if item.target not in reported]
        super().__init__(
            f"interrupted: {len(done)} of {len(plan.changes)} done ({names_text(done) or 'none'});"
            f" not known to be done: {names_text(left) or 'none'}",
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
    """Run a plan that has changes through the protocol.

    :param approve: shows the plan, and raises ``ApprovalRequired`` unless it is approved
    :param undoes: the journal entry that this plan undoes
    :param finishes: the journal entry that this plan finishes
    :raises Refused: before any change; also while Spark workers of a kops that has ended still write
    :raises InterruptedMutation: on SIGINT or SIGTERM while applying
    """
    refuse_read_only(services.connection)
    refuse_other_cluster(services, plan, mutation)
    plan = with_finality(plan, mutation)
    approve(plan)  # without the locks: a person may take as long as they like, and `check` compares again
    with exclusive(services.directories.locks, plan.cluster_id, mutation.locks(plan)):
        wait_for_others(services.directories.locks, services.progress)
        return _carry_out(services, plan, mutation, journal=journal, undoes=undoes, finishes=finishes)


def _carry_out(
    services: Services, plan: Plan, mutation: Mutation[Any], *, journal: Journal, undoes: str, finishes: str
) -> tuple[Result, Entry]:
    mutation.check(services, plan)
    entry = journal.open(plan, undoes=undoes, finishes=finishes)
    results: list[ItemResult] = []
    try:
        with kept_stops(), services.permit.granted():
            for item in mutation.apply(services, plan):
                results.append(item)
            results = list(mutation.verify(services, plan, results))
            messages = mutation.messages(services, plan, results)
    except STOPS as stopped:
        interrupted = InterruptedMutation(plan, mutation, results, entry, exit_code(stopped))
        _close(journal, entry, EntryStatus.INTERRUPTED, results, failure=interrupted)
        raise interrupted from stopped
    except KopsError as failure:
        _mark_as_unknown(failure)
        failure.details.setdefault("journal_id", entry.id)
        failure.hint = f"{failure.hint}; " if failure.hint else ""
        failure.hint += f"see `kops journal show {entry.id}`"
        _close(journal, entry, _status_after(failure, results, mutation), results, error=failure.as_json(), failure=failure)
        raise
    except BaseException as bug:
        status = EntryStatus.PARTIAL if mutation.can_leave_partial else EntryStatus.FAILED
        with suppress(OSError, ConfigError):
            journal.close(entry, status, results, error={"code": "bug", "message": repr(bug)})
        raise
    with undisturbed():  # the work is done: a Ctrl-C now has nothing to stop, and must not hide the outcome
        left = _left(services, plan, mutation, results)
        reached = Result(tuple(results)).status
        notes = _close(journal, entry, _closing_status(reached, results, mutation), results, left=left)
        journalled = not notes
        if reached in (Status.DONE, Status.UNCHANGED) and journalled:
            notes = _mark(services, journal, mutation, entry)
    return Result(tuple(results), (*messages, *notes), journalled=journalled), entry


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
    """Close an entry. If it cannot be written, report that in addition to the outcome of the work, never instead of it.

    :param failure: gets the sentence as a hint
    :returns: the sentence; empty if the entry was written
    """
    try:
        journal.close(entry, status, results, error=error, left=left)
    except (OSError, ConfigError) as trouble:
        reason = trouble.strerror if isinstance(trouble, OSError) else trouble.message
        warning = (
            f"warning: what came of it ({status.value}) could not be written to {journal.folder / entry.id}.json: {reason};"
            f" `kops journal list` shows {entry.id} as crashed"
        )
        if failure is not None:
            failure.hint = f"{failure.hint}; {warning}" if failure.hint else warning
        return (warning,)
    return ()


def _mark(services: Services, journal: Journal, mutation: Mutation[Any], entry: Entry) -> tuple[str, ...]:
    """Record in earlier entries that this one undid or finished them."""
    try:
        mark_earlier(services, journal, entry.plan, mutation, undoes=entry.undoes, finishes=entry.finishes, by=entry.id)
    except (OSError, ConfigError) as trouble:
        reason = trouble.strerror if isinstance(trouble, OSError) else trouble.message
        return (f"warning: it could not be noted in {journal.folder} on the earlier entry: {reason}",)
    return ()


def mark_earlier(
    services: Services, journal: Journal, plan: Plan, mutation: Mutation[Any], *, undoes: str, finishes: str, by: str = ""
) -> None:
    """Record in earlier entries that a plan undid them, or that nothing of them is left to do.

    :param by: the entry of the plan; empty: the plan had nothing to do, so each entry is recorded as undone or finished by itself
    """
    if undoes:
        for half in journal.undoing(undoes):
            if half.id != by and is_stopped(half):
                journal.mark_finished(half.id, by=by or half.id)
        journal.mark_undone(undoes, by=by or undoes)
    elif finishes:
        journal.mark_finished(finishes, by=by or finishes)
    else:
        for entry in _stopped_before(journal, plan, by=by):
            with suppress(UsageProblem):  # damaged: `kops journal show` reports how
                if mutation.covers(services, plan, mutation.typed(entry.plan)):
                    journal.mark_finished(entry.id, by=by or entry.id)


def _stopped_before(journal: Journal, plan: Plan, *, by: str) -> Iterator[Entry]:
    """Yield the entries of the same operation on this cluster that were stopped in the middle, without those that undo another one."""
    for entry in journal.entries(lambda _damaged: None, mentioning=plan.operation):
        alike = entry.plan.operation == plan.operation and entry.plan.cluster_id == plan.cluster_id and not entry.undoes
        if alike and entry.id != by and is_stopped(entry):
            yield entry


def _mark_as_unknown(failure: KopsError) -> None:
    """Treat a connection that was lost in the middle as a request whose outcome is unknown."""
    if isinstance(failure, (BrokerDown, Unreachable)) and not isinstance(failure, AuthenticationFailed):
        failure.message += "; whether the last request was carried out is not known"
        failure.exit_code = ExitCode.TIMED_OUT  # type: ignore[misc]  # before the first request it would be 3


def _closing_status(status: Status, results: Sequence[ItemResult], mutation: Mutation[Any]) -> EntryStatus:
    """Return the final status of an entry: PARTIAL rather than FAILED if something was written but read back wrong."""
    wrong = any((result.error or {}).get("code") == VerificationFailed.slug for result in results)
    return EntryStatus.PARTIAL if mutation.can_leave_partial and wrong else EntryStatus.of(status)


def _left(services: Services, plan: Plan, mutation: Mutation[Any], results: Sequence[ItemResult]) -> Json:
    """Return what a mutation left behind; None if it has no traces, or they cannot be read."""
    traces = mutation.traces(plan, results)
    try:
        return look(services, traces) if traces != Traces() else None
    except KopsError:
        return None


def _status_after(failure: KopsError, results: Sequence[ItemResult], mutation: Mutation[Any]) -> EntryStatus:
    """Return the status of a mutation that ended with an error: UNKNOWN if the outcome of the last request is not known."""
    if isinstance(failure, (BrokerDown, TimedOut, Unreachable)):
        return EntryStatus.UNKNOWN
    if any(result.status is Status.DONE for result in results):
        return EntryStatus.PARTIAL
    if isinstance(failure, Refused) and not results:
        return EntryStatus.REFUSED
    return EntryStatus.PARTIAL if mutation.can_leave_partial else EntryStatus.FAILED

"""Reading a saved plan, and planning from journal entries: to undo them, or to finish them."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from kops.config.files import read_json
from kops.core.errors import ConfigError, NothingToUndo, Refused, StateMoved, UsageProblem
from kops.core.plan import ItemResult, Plan, Severity, Status, not_done, plan_of_document
from kops.core.times import parse_datetime, to_milliseconds
from kops.operations.protocol.aftermath import losses_since, refuse_losses
from kops.operations.protocol.journal import Entry, EntryStatus, Journal, crashed, is_elsewhere
from kops.operations.protocol.locks import wait_for_others
from kops.operations.protocol.mutation import Mutation
from kops.operations.protocol.registry import MUTATIONS, mutation_named, typed
from kops.operations.protocol.settling import POLL_SECONDS, SETTLE_SECONDS
from kops.operations.services import Services


def read_plan(file: Path) -> Plan:
    """Read a plan from a file.

    :raises UsageProblem: when it cannot be read, or is not a plan
    """
    try:
        body = read_json(file, hint="name a file that --plan-out wrote")
    except ConfigError as error:  # it is named on the command line, not by the configuration
        raise UsageProblem(error.message, hint=error.hint, **error.details) from error
    return typed(plan_of_document(body))


def status_of(entry: Entry) -> str:
    """Return the status to show; an open entry whose process has ended is ``crashed``."""
    if entry.undone_by:
        return "undone"
    if entry.finished_by:
        return "finished"
    return "crashed" if crashed(entry) else entry.status.value


def is_unfinished(entry: Entry) -> bool:
    """Whether an entry is still running, was stopped in the middle, or did some of its work and can be finished."""
    if entry.undone_by or entry.finished_by:
        return False
    if entry.status is EntryStatus.PARTIAL:
        return entry.plan.operation in MUTATIONS and _can_be_finished(entry)
    return entry.status in (EntryStatus.OPEN, EntryStatus.INTERRUPTED, EntryStatus.UNKNOWN)


def is_stopped(entry: Entry) -> bool:
    """Whether an entry is unfinished, and not because it still runs."""
    return is_unfinished(entry) and (entry.status is not EntryStatus.OPEN or crashed(entry))


def _can_be_finished(entry: Entry) -> bool:
    try:
        return mutation_named(entry.plan.operation).can_be_finished(typed(entry.plan))
    except UsageProblem:  # damaged: `kops journal show` reports how
        return False


def entry_row(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "status": status_of(entry),
        "operation": entry.plan.operation,
        "context": entry.plan.context,
        "summary": entry.plan.summary,
        "user": f"{entry.user}@{entry.host}",
        "started": entry.started,
        "ended": entry.ended or None,
        "undoes": entry.undoes or None,
        "undone_by": entry.undone_by or None,
        "finishes": entry.finishes or None,
        "finished_by": entry.finished_by or None,
        "error": (entry.error or {}).get("message"),
    }


def item_rows(entry: Entry) -> list[dict[str, Any]]:
    """Return a row per item: the plan and the outcome, which is ``not known`` if none was recorded."""
    outcomes = {result["target"]: result["status"] for result in entry.results}
    return [
        {
            "target": item.target,
            "action": item.action,
            "before": item.before,
            "after": item.after,
            "status": outcomes.get(item.target, (entry.rest or "not known") if item.changes else "unchanged"),
        }
        for item in typed(entry.plan).items
    ]


def entry_named(services: Services, journal: Journal, entry_id: str) -> Entry:
    """Return the entry to undo or finish; ``last`` is the newest of this cluster.

    :raises NotFound: when there is none
    """
    if entry_id != "last":
        return journal.read(entry_id)
    try:
        cluster_id = services.kafka.cluster().cluster_id
    except ConfigError:
        if not services.connection.connect_urls:
            raise
        cluster_id = str(services.connect.about()["kafka_cluster_id"])
    return journal.read(entry_id, cluster_id=cluster_id)


def plan_undo(services: Services, journal: Journal, entry: Entry, *, accept_loss: bool = False, take_over: bool = False) -> Plan:
    """Plan to undo an entry.

    Before, after and now decide about an item whose result is not known (because of a crash): each mutation compares all three.

    :param accept_loss: plan even if something has happened since that would be lost; the plan shows what
    :param take_over: plan even if the entry is open on another machine
    :raises StateMoved: when something would be lost and that is not accepted
    :raises Refused: when the entry was already undone, is running, changed nothing, or cannot be undone
    """
    _refuse_undone(entry)
    entry, mutation = _to_plan_from(services, entry, take_over=take_over)
    results = (*entry.item_results, *_done_by_others(journal, entry, mutation))
    untouched = not_done(results)
    if entry.status is EntryStatus.REFUSED or all(item.target in untouched for item in entry.plan.changes):
        raise Refused(f"{entry.id} changed nothing, so there is nothing to undo", hint=f"`kops journal show {entry.id}` says why")
    traces, left = mutation.traces(entry.plan, entry.item_results), journal.left_behind(entry)
    lost = losses_since(services, traces, left, mutation.offsets_in_the_middle(entry.plan) if left is None else {})
    if not accept_loss:
        refuse_losses(lost, entry.id)
    undo = _once_heard_of(entry, lambda: mutation.invert(services, entry.plan, results))
    lost = tuple(dict.fromkeys((*lost, *undo.losses)))
    if not accept_loss:
        refuse_losses(lost, entry.id)
    return _taken_over(entry, replace(undo, losses=lost))


def _once_heard_of(entry: Entry, invert: Callable[[], Plan]) -> Plan:
    """Plan to undo an entry; where nothing is to undo, again until ``SETTLE_SECONDS`` have passed since it ended.

    A broker that has not heard of a change yet shows what was there before it, and not every one can be asked how far it is.

    :raises NothingToUndo: when there is nothing to undo
    """
    age = (to_milliseconds(datetime.now(timezone.utc)) - parse_datetime(entry.ended)) / 1000 if entry.ended else SETTLE_SECONDS
    deadline = time.monotonic() + SETTLE_SECONDS - max(0.0, age)
    while True:
        try:
            undo = invert()
            if undo.has_changes or time.monotonic() > deadline:
                return undo
        except NothingToUndo:
            if time.monotonic() > deadline:
                raise
        time.sleep(POLL_SECONDS)


def half_undone(journal: Journal, entry: Entry) -> Entry | None:
    """Return the entry that was to undo an entry and was stopped in the middle, if its rest can be planned: to undo again is to finish it.

    :raises Refused: while it is running
    """
    for half in () if entry.undone_by else journal.undoing(entry.id):
        _refuse_running(half, take_over=False)
        if is_unfinished(half) and _can_be_finished(half):
            return half
    return None


def _refuse_undone(entry: Entry) -> None:
    if entry.undone_by == entry.id:
        raise Refused(f"there was nothing of {entry.id} to undo", hint=f"`kops journal show {entry.id}` shows what it planned")
    if entry.undone_by:
        raise Refused(f"{entry.id} was already undone by {entry.undone_by}", hint=f"`kops undo {entry.undone_by}` does it again")


def _done_by_others(journal: Journal, entry: Entry, mutation: Mutation[Any]) -> list[ItemResult]:
    """Return the items that an entry which was stopped had not done: a later change of the same thing found them as this one had.

    What finished the entry counts as its own.
    """
    known = {result.target for result in entry.item_results}
    unknown = {item.target: item.before for item in entry.plan.changes if item.target not in known}
    if entry.rest or entry.status is EntryStatus.DONE or not unknown:
        return []
    own, locked = {one.id for one in journal.family(entry.id)}, set(mutation.locks(entry.plan))
    found: dict[str, ItemResult] = {}
    for later in journal.entries(lambda _damaged: None, mentioning=entry.plan.operation):
        if later.id == entry.id:
            break
        if (
            later.id in own
            or later.undoes
            or (later.plan.operation, later.plan.cluster_id) != (entry.plan.operation, entry.plan.cluster_id)
        ):
            continue
        plan = mutation.typed(later.plan)
        if not locked or locked & set(mutation.locks(plan)):
            same = (item.target for item in plan.changes if item.target in unknown and item.before == unknown[item.target])
            found |= {target: ItemResult(target, Status.SKIPPED) for target in same}
    return list(found.values())


def plan_finish(services: Services, entry: Entry, *, take_over: bool = False) -> Plan:
    """Plan what is left of an entry.

    :param take_over: plan even if the entry is open on another machine
    :raises Refused: when it is done, running, or of an operation that is finished by running its command again
    """
    if entry.status is EntryStatus.DONE or entry.finished_by:
        raise Refused(f"{entry.id} is done already", hint="`kops undo` would undo it")
    _refuse_undone(entry)
    entry, mutation = _to_plan_from(services, entry, take_over=take_over)
    return _taken_over(entry, mutation.resume(services, entry.plan))


def _to_plan_from(services: Services, entry: Entry, *, take_over: bool) -> tuple[Entry, Mutation[Any]]:
    """Return an entry with a typed plan, and its mutation.

    :raises Refused: for another cluster, before any other check (nothing here says anything about its state), and while it is running
    """
    mutation = mutation_named(entry.plan.operation)
    entry = replace(entry, plan=mutation.typed(entry.plan))
    actual = mutation.cluster_id(services)
    if actual != entry.plan.cluster_id:
        raise StateMoved(
            f"{entry.id} changed cluster {entry.plan.cluster_id} ({entry.plan.context}), and this is cluster {actual}",
            hint="choose its context with -c",
        )
    _refuse_running(entry, take_over=take_over)
    wait_for_others(services.directories.locks, services.progress)
    if entry.status is not EntryStatus.DONE and type(mutation).cluster_id is Mutation.cluster_id:
        services.kafka.heard_by_all()  # what ended early did not wait for it
    return entry, mutation


def _refuse_running(entry: Entry, *, take_over: bool) -> None:
    """Refuse an entry whose process may still be running: known on this machine, only assumed on another.

    :raises Refused: naming process and machine
    """
    if entry.status is not EntryStatus.OPEN or crashed(entry):
        return
    where = f"process {entry.pid} on {entry.host}"
    if not is_elsewhere(entry):
        raise Refused(f"{entry.id} is still running as {where}", hint="stop it or wait for it first")
    if not take_over:
        raise Refused(
            f"{entry.id} is open, and may still be running as {where}: this machine is {socket.gethostname()}",
            hint="where that process is certainly gone, --take-over does it from here",
        )


def _taken_over(entry: Entry, plan: Plan) -> Plan:
    """If the entry was opened on another machine, require approval by typing the name of that machine and the process."""
    if entry.status is not EntryStatus.OPEN or not is_elsewhere(entry):
        return plan
    process = f"{entry.host}:{entry.pid}"
    warning = f"{entry.id} is taken over: if process {entry.pid} on {entry.host} still runs, both change the same things"
    confirm = f"{plan.confirm}@{process}" if plan.severity is Severity.SEVERE else process
    return replace(plan, severity=Severity.SEVERE, confirm=confirm, warnings=(warning, *plan.warnings))

"""Reading a saved plan, and making plans from journal entries: to undo them, or to finish them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kops.core.errors import Refused, UsageProblem
from kops.core.plan import Plan, Status, plan_of_document
from kops.operations.journal import Entry, EntryStatus, crashed
from kops.operations.registry import mutation_named
from kops.operations.services import Services


def read_plan(file: Path) -> Plan:
    """Read a plan from a file.

    :raises UsageProblem: when it cannot be read, or is no plan
    """
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageProblem(f"cannot read {file}: {error.strerror}", hint="name a file that --plan-out wrote") from error
    except ValueError as error:
        raise UsageProblem(f"{file} is not JSON: {error}", hint="name a file that --plan-out wrote") from error
    return plan_of_document(body)


def status_of(entry: Entry) -> str:
    """Return the status for people: an open entry of a dead process has crashed."""
    if entry.undone_by:
        return "undone"
    if entry.finished_by:
        return "finished"
    return "crashed" if crashed(entry) else entry.status.value


def is_unfinished(entry: Entry) -> bool:
    """Tell whether an entry is still running, or stopped in the middle."""
    return entry.status in (EntryStatus.OPEN, EntryStatus.INTERRUPTED, EntryStatus.UNKNOWN) and not (entry.undone_by or entry.finished_by)


def entry_row(entry: Entry) -> dict[str, Any]:
    """Return an entry as one row."""
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
    """Return what was planned for each item and what became of it; ``not known`` when nothing was recorded."""
    outcomes = {result["target"]: result["status"] for result in entry.results}
    return [
        {
            "target": item.target,
            "action": item.action,
            "before": item.before,
            "after": item.after,
            "status": outcomes.get(item.target, (entry.rest or "not known") if item.changes else "unchanged"),
        }
        for item in entry.plan.items
    ]


def plan_undo(services: Services, entry: Entry) -> Plan:
    """Return the inverse plan of an entry.

    An item whose result is not known (a crash) counts as done: writing its prior value again does no harm.

    :raises Refused: when it was taken back already, is running, changed nothing, or cannot be taken back
    """
    if entry.undone_by:
        raise Refused(f"{entry.id} was taken back already by {entry.undone_by}", hint=f"`kops undo {entry.undone_by}` does it again")
    if entry.status is EntryStatus.OPEN and not crashed(entry):
        raise Refused(f"{entry.id} is still running as process {entry.pid} on {entry.host}", hint="stop it or wait for it first")
    known_not_done = {result.target for result in entry.item_results if result.status in (Status.FAILED, Status.SKIPPED)}
    if entry.status is EntryStatus.REFUSED or all(item.target in known_not_done for item in entry.plan.changes):
        raise Refused(f"{entry.id} changed nothing, so there is nothing to take back", hint=f"`kops journal show {entry.id}` says why")
    return mutation_named(entry.plan.operation).invert(services, entry.plan, entry.item_results)


def plan_finish(services: Services, entry: Entry) -> Plan:
    """Return the plan for what is left of an entry.

    :raises Refused: when it is done, running, or of a kind that is finished by running its command again
    """
    if entry.status is EntryStatus.DONE or entry.finished_by:
        raise Refused(f"{entry.id} is done already", hint="`kops undo` would take it back")
    if entry.undone_by:
        raise Refused(f"{entry.id} was taken back by {entry.undone_by}", hint=f"`kops undo {entry.undone_by}` does it again")
    if entry.status is EntryStatus.OPEN and not crashed(entry):
        raise Refused(f"{entry.id} is still running as process {entry.pid} on {entry.host}", hint="stop it or wait for it first")
    return mutation_named(entry.plan.operation).resume(services, entry.plan)

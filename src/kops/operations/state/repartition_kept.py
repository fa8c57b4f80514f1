"""What is kept of an application's state from before it moved, until somebody confirms that it is not needed any more."""

from __future__ import annotations

import time
from pathlib import Path

from kops.core.errors import ConfigError, Refused
from kops.operations.protocol.journal import EntryStatus, Journal
from kops.operations.services import Services
from kops.operations.state.engine import STAGES_KEPT_DAYS, drop_stage, new_stage


def kept_stage(services: Services, application: str) -> str:
    """Return the place of a stage that no age deletes."""
    place = new_stage(services, application)
    if "://" in place:
        return f"{place}-kept"
    stage = Path(place)
    folder = stage.parent.with_name("kept")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _forget_unused(services, folder)
    return str(folder / stage.name)


def forget_kept(journal: Journal, application: str, operation: str) -> list[str]:
    """Delete what is kept of an application's moves; they cannot be undone then. Return what was deleted.

    :raises Refused: when nothing is kept, or a move was not finished
    """
    readable = journal.entries(lambda _damaged: None)  # what an unreadable one kept stays
    entries = [entry for entry in readable if entry.plan.operation == operation and entry.plan.arguments["application"] == application]
    kept = []
    for entry in entries:
        if entry.status is not EntryStatus.DONE and not (entry.undone_by or entry.finished_by):
            raise Refused(f"{entry.id} was not finished", hint=f"`kops journal finish {entry.id}` does what is left of it")
        kept += [store["prior_stage"] for store in entry.plan.arguments["stores"].values() if Path(store["prior_stage"]).is_dir()]
    if not kept:
        raise Refused(f"nothing is kept of {application}", hint="`kops journal list` shows what was done")
    for stage in kept:
        drop_stage(stage)
    return kept


def _forget_unused(services: Services, folder: Path) -> None:
    """Delete what old plans staged that nobody carried out."""
    limit = time.time() - STAGES_KEPT_DAYS * 86_400
    old = [stage for stage in folder.iterdir() if stage.stat().st_mtime < limit]
    if not old:
        return
    damaged: list[ConfigError] = []
    entries = list(Journal(services.directories.state / "journal").entries(damaged.append))
    if damaged:
        return  # they may need what looks unused
    used = {store.get("prior_stage") for entry in entries for store in dict(entry.plan.arguments.get("stores") or {}).values()}
    for stage in old:
        if str(stage) not in used:
            drop_stage(str(stage))

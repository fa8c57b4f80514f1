"""What the journal of this user knows of a replay: it may have been gone on with by several entries."""

from __future__ import annotations

from collections.abc import Iterator

from kops.core.plan import Plan, Status
from kops.operations.protocol.journal import Entry, EntryStatus, Journal
from kops.operations.services import Services


def entries_of(services: Services, plan: Plan) -> Iterator[Entry]:
    """Yield the entries that ran a replay, newest first; those that cannot be read are passed over."""
    name = plan.arguments["replay"]
    for entry in Journal(services.directories.state / "journal").entries(lambda _damaged: None, mentioning=name):
        if entry.plan.operation == plan.operation and entry.plan.arguments.get("replay") == name:
            yield entry


def finished_by(services: Services, plan: Plan) -> Entry | None:
    """Return the entry that brought a replay to its end; its progress is forgotten since."""
    return next((entry for entry in entries_of(services, plan) if entry.status is EntryStatus.DONE), None)


def known_producers(services: Services, plan: Plan) -> set[int]:
    """Return who wrote its records, as far as entries that were closed say."""
    results = (result for entry in entries_of(services, plan) for result in entry.item_results if result.status is not Status.SKIPPED)
    return {producer for result in results if isinstance(result.value, dict) for producer in result.value.get("producers", ())}


def known_positions(services: Services, plan: Plan) -> dict[str, int]:
    """Return the next offsets that entries that were closed have told, by partition of the source: it came that far at least."""
    found: dict[str, int] = {}
    for entry in entries_of(services, plan):
        for result in entry.item_results:
            if isinstance(result.value, dict) and result.value.get("records"):
                found[result.target] = max(found.get(result.target, 0), result.value["next_offset"])
    return found

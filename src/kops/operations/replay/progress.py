"""Progress of a replay, stored on the cluster of the target, in the transactions of the records.

It is stored twice: as the committed offsets of groups of its own, which show at once whether a transaction was committed, and in the topic
of ``progress_topic``, which does not expire. Before anything is sent, both record where each partition begins; so where nothing is stored,
it was forgotten, or nothing was sent. The journal of this user may know more about a replay: several entries may have continued it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from kops.core.errors import AuthorizationFailed, KopsError, OperationFailed, Refused
from kops.core.findings import counted
from kops.core.models import Committed, TopicPartition
from kops.core.plan import Plan, Status
from kops.core.topics.names import PROGRESS_TOPIC
from kops.operations.protocol.journal import Entry, EntryStatus, Journal
from kops.operations.replay.arguments import Given
from kops.operations.replay.progress_topic import create_progress_topic, read_notes, write_notes
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.spark.replay.sender import PartitionProgress


_SHOWN = 5


def progress_of(
    services: Services, name: str, partitions: Iterable[int], *, stable: bool = True, settled: bool = True
) -> dict[int, PartitionProgress]:
    """Return the progress of the partitions of a source; those that were not begun, or were forgotten, are left out.

    :param name: of the replay
    :param stable: wait for a transaction that is being decided, which after a crash takes up to its timeout
    :param settled: the same where the groups are gone: ``progress_topic.read_notes``
    """
    from kops.spark.replay.jobs import group_of
    from kops.spark.replay.sender import parse_progress

    groups = {group_of(name, number): number for number in partitions}
    try:
        answers = services.kafka.groups.committed(groups, stable=stable)
    except AuthorizationFailed as refused:
        prefix = "-".join(name.split("-")[:2])
        rights = "READ and DELETE on groups, and WRITE on transactional ids"
        refused.hint = f"a replay stores its progress in groups of its own: it needs {rights}, that begin with {prefix}-"
        raise
    found = {
        groups[group]: parse_progress(committed.offset, committed.metadata or "")
        for group, offsets in answers.items()
        for committed in offsets.values()
        if committed is not None
    }
    if len(found) < len(groups):
        kept = read_notes(services, f"{name}-", committed=True, settled=settled)
        found |= {number: parse_progress(**kept[group]) for group, number in groups.items() if number not in found and group in kept}
    return found


def begin_progress(services: Services, plan: Plan[Given], partitions: Iterable[int]) -> None:
    """Store where partitions begin, before any of their records are sent.

    :raises KopsError: when the brokers reject it; nothing was sent
    """
    from kops.spark.replay.jobs import group_of
    from kops.spark.replay.sender import PartitionProgress

    given = plan.arguments
    starts = {group_of(given.replay, number): PartitionProgress(given.ranges[number][0]) for number in partitions}
    if given.progress_topic and starts:
        create_progress_topic(services)
        write_notes(services, {group: {"offset": sent.offset, "note": sent.position().note} for group, sent in starts.items()})
    place = TopicPartition(given.anchor, 0)
    for group, sent in starts.items():
        error = services.kafka.groups.commit(group, {place: Committed(sent.offset, sent.position().note)})[place]
        if error is not None:
            hint = error.hint or "nothing was sent; run it again"
            raise OperationFailed(f"cannot note how far the replay is: {error.message}", hint=hint)


def refuse_forgotten(services: Services, plan: Plan[Given], done: Mapping[int, PartitionProgress]) -> None:
    """Refuse to continue a replay whose progress is no longer known.

    :param done: progress of the partitions, as far as it is known
    :raises Refused: when a partition is unknown and the targets have grown since the plan was made: the new records may be its own
    """
    unknown = [number for number in plan.arguments.ranges if number not in done]
    if not unknown:
        return
    before = plan.arguments.ends
    there = services.kafka.topics.existing(plan.arguments.targets)
    bounds = services.kafka.offsets.bounds(place for place in before if place.topic in there)
    grown = sum(max(0, bound.log_end_offset - before[place]) for place, bound in bounds.items())
    known = known_positions(services, plan)
    if not grown and not known:
        return
    lost = ", ".join(f"{plan.arguments.source}:{number}" for number in unknown[:_SHOWN])
    if len(unknown) > _SHOWN:
        lost += f" and {len(unknown) - _SHOWN} more"
    said = [
        f"{', '.join(plan.arguments.targets)} grew by {counted(grown, 'offset')} since the replay was planned",
        *(f"the journal knows that {place} was sent up to offset {offset:,} at least" for place, offset in sorted(known.items())),
    ]
    back = "; `kops undo ID` takes out what was sent" if plan.arguments.own else ""
    raise Refused(
        f"how far the replay came is no longer known for {lost}: sending again could send records twice ({'; '.join(said)})",
        hint="brokers expire committed offsets, or they were deleted; compare the target with the source, then plan a replay of"
        f" what is missing with --range{back}",
        partitions=unknown,
        grown=grown,
        journal=known,
    )


def forget_progress(services: Services, name: str, partitions: Iterable[int]) -> list[KopsError]:
    """Delete the stored progress; return the errors that left some of it."""
    from kops.spark.replay.jobs import group_of

    groups = [group_of(name, number) for number in partitions]
    errors = [error for error in services.kafka.groups.delete(groups).values() if error is not None]
    try:
        if services.kafka.topics.existing([PROGRESS_TOPIC]):
            write_notes(services, dict.fromkeys(groups))
    except KopsError as error:
        errors.append(error)
    return errors


def entries_of(services: Services, plan: Plan[Given]) -> Iterator[Entry]:
    """Yield the entries that ran a replay, newest first; those that cannot be read are skipped."""
    name = plan.arguments.replay
    for entry in Journal(services.directories.state / "journal").entries(lambda _damaged: None, mentioning=name):
        if entry.plan.operation == plan.operation and entry.plan.arguments.get("replay") == name:
            yield entry


def finished_by(services: Services, plan: Plan[Given]) -> Entry | None:
    """Return the entry that finished a replay, whose progress is forgotten since."""
    return next((entry for entry in entries_of(services, plan) if entry.status is EntryStatus.DONE), None)


def known_producers(services: Services, plan: Plan[Given]) -> set[int]:
    """Return the producers that wrote its records, as far as closed entries report them."""
    results = (result for entry in entries_of(services, plan) for result in entry.item_results if result.status is not Status.SKIPPED)
    return {producer for result in results if isinstance(result.value, dict) for producer in result.value.get("producers", ())}


def known_positions(services: Services, plan: Plan[Given]) -> dict[str, int]:
    """Return the next offsets that closed entries report, by partition of the source: the replay got at least that far."""
    found: dict[str, int] = {}
    for entry in entries_of(services, plan):
        for result in entry.item_results:
            if isinstance(result.value, dict) and result.value.get("records"):
                found[result.target] = max(found.get(result.target, 0), result.value["next_offset"])
    return found

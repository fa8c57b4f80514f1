"""How far a replay is: noted on the cluster of the target, in the transactions of the records.

It is noted twice: as the committed offsets of groups of its own, which tell at once whether a transaction was committed, and in the topic
of ``memory``, which does not expire. Before anything is sent, both say where each partition begins; so where nothing is noted, it was
forgotten, or nothing was sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kops.core.errors import AuthorizationFailed, KopsError, OperationFailed, Refused
from kops.core.findings import counted
from kops.core.models import Committed, TopicPartition
from kops.core.plan import Plan
from kops.core.topics.names import PROGRESS_TOPIC
from kops.operations.offsets.items import partition_of
from kops.operations.replay.history import known_positions
from kops.operations.replay.memory import create_memory, recall, remember
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.spark.replay.parts import Sent

_SHOWN = 5


def progress_of(services: Services, name: str, partitions: Iterable[int], *, stable: bool = True, settled: bool = True) -> dict[int, Sent]:
    """Return how far the partitions of a source are; those that were not begun, or were forgotten, are left out.

    :param name: of the replay
    :param stable: wait for a transaction that is being decided, which after a crash takes up to its time-out
    :param settled: likewise where the groups are gone: ``memory.recall``
    """
    from kops.spark.replay.jobs import group_of
    from kops.spark.replay.parts import sent_of

    groups = {group_of(name, number): number for number in partitions}
    try:
        answers = services.kafka.groups.committed(groups, stable=stable)
    except AuthorizationFailed as refused:
        prefix = "-".join(name.split("-")[:2])
        rights = "READ and DELETE on groups, and WRITE on transactional ids"
        refused.hint = f"a replay stores its progress in groups of its own: it needs {rights}, that begin with {prefix}-"
        raise
    found = {
        groups[group]: sent_of(committed.offset, committed.metadata or "")
        for group, offsets in answers.items()
        for committed in offsets.values()
        if committed is not None
    }
    if len(found) < len(groups):
        kept = recall(services, f"{name}-", committed=True, settled=settled)
        found |= {number: sent_of(**kept[group]) for group, number in groups.items() if number not in found and group in kept}
    return found


def begin_progress(services: Services, plan: Plan, partitions: Iterable[int]) -> None:
    """Note where partitions begin, before anything of them is sent.

    :raises KopsError: when the brokers do not take it; nothing was sent
    """
    from kops.spark.replay.jobs import group_of
    from kops.spark.replay.parts import Sent

    given = plan.arguments
    starts = {group_of(given["replay"], number): Sent(given["ranges"][str(number)][0]) for number in partitions}
    if given.get("progress_topic") and starts:
        create_memory(services)
        remember(services, {group: {"offset": sent.offset, "note": sent.position().note} for group, sent in starts.items()})
    place = TopicPartition(given["anchor"], 0)
    for group, sent in starts.items():
        error = services.kafka.groups.commit(group, {place: Committed(sent.offset, sent.position().note)})[place]
        if error is not None:
            hint = error.hint or "nothing was sent; run it again"
            raise OperationFailed(f"cannot note how far the replay is: {error.message}", hint=hint)


def refuse_forgotten(services: Services, plan: Plan, done: Mapping[int, Sent]) -> None:
    """Refuse to continue a replay where it is no longer known how far it came.

    :param done: how far the partitions are, as far as that is known
    :raises Refused: when a partition is unknown and the targets have grown since the plan was made: what grew may be its records
    """
    unknown = [int(number) for number in plan.arguments["ranges"] if int(number) not in done]
    if not unknown:
        return
    before = {partition_of(place): end for place, end in plan.arguments["ends"].items()}
    there = services.kafka.topics.existing(plan.arguments["targets"])
    bounds = services.kafka.offsets.bounds(place for place in before if place.topic in there)
    grown = sum(max(0, bound.log_end_offset - before[place]) for place, bound in bounds.items())
    known = known_positions(services, plan)
    if not grown and not known:
        return
    lost = ", ".join(f"{plan.arguments['source']}:{number}" for number in unknown[:_SHOWN])
    if len(unknown) > _SHOWN:
        lost += f" and {len(unknown) - _SHOWN} more"
    said = [
        f"{', '.join(plan.arguments['targets'])} grew by {counted(grown, 'offset')} since the replay was planned",
        *(f"the journal knows that {place} was sent up to offset {offset:,} at least" for place, offset in sorted(known.items())),
    ]
    back = "; `kops undo ID` takes out what was sent" if plan.arguments["own"] else ""
    raise Refused(
        f"how far the replay came is no longer known for {lost}: sending again could send records twice ({'; '.join(said)})",
        hint="brokers forget committed offsets in time, or somebody deleted them; compare the target with the source, then plan a replay of"
        f" what is missing with --range{back}",
        partitions=unknown,
        grown=grown,
        journal=known,
    )


def forget_progress(services: Services, name: str, partitions: Iterable[int]) -> list[KopsError]:
    """Delete what was noted; return why some is still there."""
    from kops.spark.replay.jobs import group_of

    groups = [group_of(name, number) for number in partitions]
    errors = [error for error in services.kafka.groups.delete(groups).values() if error is not None]
    try:
        if services.kafka.topics.existing([PROGRESS_TOPIC]):
            remember(services, dict.fromkeys(groups))
    except KopsError as error:
        errors.append(error)
    return errors

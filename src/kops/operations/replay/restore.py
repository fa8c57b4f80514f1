"""The mutation that restores an archive: a replay that reads Parquet, creates its topic, and commits the offsets of groups."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from kops.core.errors import KopsError, NotFound, OperationFailed, StateMoved
from kops.core.findings import counted
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.plan import Arguments, Item, ItemResult, Plan, Status
from kops.gateways.wire.connections import patiently
from kops.operations.archive.manifest import Archive
from kops.operations.archive.place import ArchivePlace
from kops.operations.groups.matching import refuse_active
from kops.operations.offsets.checks import group_or_none
from kops.operations.offsets.items import not_as_written, offset_of, partition_of
from kops.operations.protocol.mutation import failed
from kops.operations.protocol.settling import POLL_SECONDS, SETTLE_SECONDS
from kops.operations.replay.arguments import ArchivedOffset, RestoreArguments
from kops.operations.replay.progress import forget_progress, progress_of, refuse_forgotten
from kops.operations.replay.proof import bounds_of_targets, proven
from kops.operations.replay.run import Replay
from kops.operations.replay.work import Work
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.spark.replay.jobs import PartitionRange
    from kops.spark.types import DataFrame


_SENDING = ("send", "prove")


class Restore(Replay[RestoreArguments]):
    name: ClassVar[str] = "replay.restore"
    arguments: ClassVar[type[Arguments] | None] = RestoreArguments

    def check(self, services: Services, plan: Plan[RestoreArguments]) -> None:
        """Refuse when the target has changed, a group has members, or this was carried out before."""
        given = plan.arguments
        if given.create and not given.resumed and services.kafka.topics.existing([given.anchor]):
            raise StateMoved(f"{given.anchor} was made since the plan was", hint="run the command again")
        done = progress_of(services, given.replay, given.ranges, stable=False, settled=given.resumed)
        if given.resumed:
            refuse_forgotten(services, plan, done)
        elif done:
            raise StateMoved("this plan was carried out before", hint="`kops journal list` shows it; `kops replay resume ID` continues")
        refuse_active_groups(services, given.groups)
        super().check(services, replace(plan, arguments=replace(given, ranges={})))

    def apply(self, services: Services, plan: Plan[RestoreArguments]) -> Iterator[ItemResult]:
        given = plan.arguments
        for item in plan.changes:
            if item.action == "create" and given.create is not None:
                error = services.kafka.topics.create([given.create])[item.target]
                yield ItemResult(item.target, Status.DONE) if error is None else failed(item, error)
                if error is not None:
                    return
                _wait_for_leaders(services, given.targets)
        results = []
        for result in super().apply(services, _sending(plan)):
            results.append(result)
            yield result
        if all(result.status is Status.DONE for result in results):
            yield from commit_groups(services, plan, sorted({each for result in results for each in result.value["producers"]}))
            return
        for item in plan.changes:
            if item.action == MOVE:
                yield failed(item, OperationFailed("not all records are there", hint="`kops replay resume ID` continues"))

    def verify(self, services: Services, plan: Plan[RestoreArguments], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        actions = {item.target: item.action for item in plan.items}
        found = (
            *(result for result in results if actions[result.target] == "create"),
            *proven(services, plan, [result for result in results if actions[result.target] in _SENDING]),
            *verified_groups(services, plan, [result for result in results if actions[result.target] == MOVE]),
        )
        if all(result.status is Status.DONE for result in found):
            forget_progress(services, plan.arguments.replay, plan.arguments.ranges)
        return found

    def resume(self, services: Services, plan: Plan[RestoreArguments]) -> Plan:
        """Return the plan for what is left; a topic that was created is not created again."""
        there = services.kafka.topics.existing([plan.arguments.anchor])
        left = super().resume(services, _sending(plan))
        before = [item for item in plan.items if item.action == "create" and not there]
        return replace(left, items=(*before, *left.items, *(item for item in plan.items if item.action == MOVE)))

    def invert(self, services: Services, plan: Plan[RestoreArguments], results: Sequence[ItemResult]) -> Plan:
        """Return the plan that deletes what was sent, where nothing else is.

        :raises Refused: when it cannot be removed
        """
        records = [result for result in results if isinstance(result.value, dict)]
        back = super().invert(services, plan, records)
        groups = ", ".join(plan.arguments.groups)
        left = f"the offsets that {groups} got stay as they are: `kops offsets delete` takes them away"
        return replace(back, warnings=(*back.warnings, left)) if groups else back


RESTORE = Restore()


def _wait_for_leaders(services: Services, targets: Mapping[str, int]) -> None:
    places = [TopicPartition(topic, number) for topic, count in targets.items() for number in range(count)]
    patiently(
        lambda: services.kafka.offsets.bounds(places),
        again=lambda error: isinstance(error, (OperationFailed, NotFound)),
        wait=POLL_SECONDS,
        seconds=SETTLE_SECONDS,
    )


def _sending(plan: Plan[RestoreArguments]) -> Plan:
    return replace(plan, items=tuple(item for item in plan.items if item.action in _SENDING))


def rows_of_archive(work: Work[RestoreArguments], parts: Sequence[PartitionRange]) -> DataFrame:
    """Return the rows to send from an archive, one task per partition, in the order of the offsets."""
    from kops.spark.reading.archive import in_parts, read_archive
    from kops.spark.replay.expressions import COLUMNS

    given = work.arguments
    place = ArchivePlace(given.path)
    rows = in_parts(read_archive(work.engine.session, [place.records(run) for run in given.runs]), [part.partition for part in parts])
    new = {"topic": f"'{given.anchor}' as topic", "target_partition": "partition as target_partition"}
    return rows.selectExpr(*(new.get(name, name) for name in COLUMNS))


MOVE = "commit"


def groups_wanted(archive: Archive, patterns: Sequence[str]) -> dict[str, Mapping[int, CommittedOffset]]:
    """Return the archived groups that patterns name.

    :raises NotFound: when a pattern matches none
    """
    found: dict[str, Mapping[int, CommittedOffset]] = {}
    for pattern in patterns:
        named = {group: offsets for group, offsets in archive.groups.items() if fnmatch.fnmatchcase(group, pattern)}
        if not named:
            raise NotFound(
                f"the archive has no offsets of a group {pattern}", hint=f"groups: {', '.join(sorted(archive.groups)) or 'it has none'}"
            )
        found |= named
    return found


def translated(
    archive: Archive, rows: DataFrame | None, groups: Mapping[str, Mapping[int, CommittedOffset]]
) -> dict[str, dict[int, ArchivedOffset]]:
    """Return for each group and partition: its archived offset, how many archived records are before it, and how many there are.

    :param rows: of the archive; None when it has no records
    """
    from kops.spark.driver.failures import explained
    from kops.spark.reading.archive import records_before

    offsets: dict[int, list[int]] = {}
    for committed in groups.values():
        for number, one in committed.items():
            offsets.setdefault(number, []).append(one.offset)
    before: Mapping[tuple[int, int], int] = {}
    if rows is not None and offsets:
        with explained("count the records before the groups' offsets"):
            before = records_before(rows, offsets)
    return {
        group: {
            number: ArchivedOffset(one.offset, before.get((number, one.offset), 0), archive.records(number))
            for number, one in sorted(committed.items())
        }
        for group, committed in sorted(groups.items())
    }


def group_items(archive: Archive, target: str, found: Mapping[str, Mapping[int, ArchivedOffset]]) -> Iterator[Item]:
    for group, partitions in found.items():
        for number, (offset, before, records) in partitions.items():
            start, end = archive.span(number) or (0, 0)
            said = f"archived offset {offset}"
            if offset > end:
                said += f" is after what is archived, which ends at {end}: {offset - end:,} are read again or are not here"
            elif offset < start:
                said += f" is before what is archived, which begins at {start}"
            yield Item(f"{group} {target}:{number}", MOVE, offset, f"after {before:,} of {counted(records, 'record')}", said)


def refuse_active_groups(services: Services, groups: Iterable[str]) -> None:
    """Refuse while a group has members.

    :raises GroupActive: naming it
    """
    for name in groups:
        group = group_or_none(services, name)
        if group is not None:
            refuse_active(group)


def commit_groups(services: Services, plan: Plan[RestoreArguments], producers: Sequence[int]) -> Iterator[ItemResult]:
    """Commit what the groups had, at the offsets that their records have now."""
    given = plan.arguments
    items = {item.target: item for item in plan.items}
    places = new_offsets(services, plan, producers)
    for group, partitions in given.groups.items():
        wanted = {number: places.get((number, before)) for number, (_, before, _) in partitions.items()}
        commits = {TopicPartition(given.anchor, number): CommittedOffset(offset) for number, offset in wanted.items() if offset is not None}
        try:
            outcome = services.kafka.groups.commit(group, commits)
        except KopsError as refusal:
            outcome = dict.fromkeys(commits, refusal)
        for number in wanted:
            place = TopicPartition(given.anchor, number)
            item = items[f"{group} {place}"]
            error = outcome[place] if place in outcome else OperationFailed(f"{place} does not have the records that {group} had read")
            value = offset_of(commits.get(place))
            yield ItemResult(item.target, Status.DONE, value=value) if error is None else failed(item, error)


def verified_groups(services: Services, plan: Plan[RestoreArguments], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
    groups = list(plan.arguments.groups)
    found = services.kafka.groups.committed(groups) if groups else {}

    def judged(result: ItemResult) -> ItemResult:
        if result.status is not Status.DONE:
            return result
        group, _, where = result.target.rpartition(" ")
        error = not_as_written(result.target, CommittedOffset(result.value), found[group].get(partition_of(where)))
        return result if error is None else ItemResult(result.target, Status.FAILED, error=error.as_json(), value=result.value)

    return tuple(judged(result) for result in results)


def new_offsets(services: Services, plan: Plan[RestoreArguments], producers: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return the offset in the target that follows a number of restored records, by partition and number.

    It has to be looked up: markers of transactions are between the records.
    """
    from kops.spark.driver.failures import explained
    from kops.spark.reading.archive import positions

    given = plan.arguments
    wanted: dict[int, set[int]] = {}
    for partitions in given.groups.values():
        for number, (_, before, _) in partitions.items():
            wanted.setdefault(number, set()).add(before)
    places = [TopicPartition(given.anchor, number) for number in wanted]
    bounds = bounds_of_targets(services, places)
    tails = {place.partition: (given.ends[place], bounds[place].log_end_offset) for place in places}
    work = Work(services, given)
    settings, session = work.job(1).target_settings, work.engine.session
    with explained("find the records of the groups"):
        numbers = {number: sorted(some) for number, some in wanted.items()}
        found = positions(session, given.anchor, settings, tails=tails, wanted=numbers, producers=producers)
    empty = {(number, 0): tails[number][0] for number, some in wanted.items() if 0 in some}
    return {**empty, **found}

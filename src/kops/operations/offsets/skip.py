"""Skipping a number of records, which requires reading the log: not every offset has a record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kops.core.errors import Refused, UsageProblem
from kops.core.findings import counted
from kops.core.groups.lag import held_text
from kops.core.models import READ_COMMITTED, Bounds, CommittedOffset, TopicPartition
from kops.core.offsets.arithmetic import SkipRecords, Strategy, ToOffset
from kops.core.offsets.moves import GroupMoves
from kops.core.records.models import OffsetRange
from kops.core.times import to_milliseconds
from kops.operations.groups.open_transactions import find_open_transactions, stable_offsets, transactions_in
from kops.operations.offsets.strategies import Seek
from kops.operations.services import Services


def resolve_skips(
    services: Services, seeks: Mapping[TopicPartition, Seek], current: Mapping[TopicPartition, CommittedOffset]
) -> dict[TopicPartition, Strategy]:
    """Replace each skip among the seeks by the offset that it leads to.

    Records of aborted transactions and of open ones do not count.

    :raises Refused: when an open transaction leaves fewer records to skip: ``read_committed`` consumers stop there by design
    :raises UsageProblem: when a partition has no commit to count from, or fewer records after it
    """
    skips = {partition: seek.count for partition, seek in seeks.items() if isinstance(seek, SkipRecords)}
    found: dict[TopicPartition, Strategy] = {p: seek for p, seek in seeks.items() if not isinstance(seek, SkipRecords)}
    if not skips:
        return found
    without = next((partition for partition in sorted(skips) if partition not in current), None)
    if without is not None:
        raise UsageProblem(f"{without}: there is no committed offset to skip from", hint="name an offset, or start")
    bounds = services.kafka.offsets.bounds(skips, isolation=READ_COMMITTED)
    ranges = {p: OffsetRange(max(current[p].offset, bounds[p].log_start_offset), bounds[p].log_end_offset) for p in skips}
    seen = _offsets_behind(services, ranges, skips)
    for partition, count in skips.items():
        start = ranges[partition].start
        passed, behind = seen[partition]
        if passed < count:
            _refuse_in_transaction(services, partition, count)
            raise UsageProblem(
                f"{partition} has {counted(passed, 'record')} from offset {start} on, not {count}",
                hint=f"{partition}=end goes behind all of them; records of open transactions do not count",
                topic=partition.topic,
                partition=partition.partition,
            )
        found[partition] = ToOffset(behind, exact=True, reason=f"behind {counted(count, 'record')} from {start} on")
    return found


def _refuse_in_transaction(services: Services, partition: TopicPartition, count: int) -> None:
    """Refuse to skip into an open transaction.

    :raises Refused: when one is open in the partition, or may be
    """
    held = transactions_in(services, [partition])
    if not held.may_be_open(partition):
        return
    found, stable = held.open.get(partition), held.stable.get(partition)
    what = held_text(found, to_milliseconds(services.now())) if found else "open transaction of which nothing is known"
    at = "" if stable is None else f" from offset {stable} on"
    raise Refused(
        f"{partition} has fewer than {counted(count, 'record')} to skip before the {what}",
        hint=f"its records{at} are not committed yet, and no poison pill: end the transaction, or wait; `kops groups lag` shows it",
        topic=partition.topic,
        partition=partition.partition,
    )


def passed_transactions(services: Services, groups: Iterable[GroupMoves], ends: Mapping[TopicPartition, Bounds]) -> list[str]:
    """Return a warning per partition in which a group would move forward past the beginning of an open transaction.

    :param ends: the bounds of the partitions
    """
    furthest: dict[tuple[str, int], int] = {}
    for topic in (topic for group in groups for topic in group.topics):
        for number, before, wanted in topic.pairs():
            if wanted is not None and (before is None or wanted > before) and wanted > furthest.get((topic.topic, number), -1):
                furthest[topic.topic, number] = wanted
    after = {TopicPartition(*place): offset for place, offset in furthest.items()}
    stable = stable_offsets(services, after)
    passing = {p: offset for p, offset in stable.items() if offset < after[p]}
    held, _problem = find_open_transactions(services, passing, ends)
    now = to_milliseconds(services.now())
    warnings = []
    for partition in sorted({*held.open, *held.unknown}):
        transaction = held.open.get(partition)
        what = (
            held_text(transaction, now)
            if transaction
            else f"open transaction from offset {passing[partition]} on, of which nothing is known"
        )
        warnings.append(f"{partition}: {after[partition]} lies past the {what}: what it commits before {after[partition]} will not be read")
    return warnings


def _offsets_behind(
    services: Services, ranges: Mapping[TopicPartition, OffsetRange], counts: Mapping[TopicPartition, int]
) -> dict[TopicPartition, tuple[int, int]]:
    """Return per partition how many records were passed, at most ``counts``, and the offset after the last of them."""
    seen = {partition: (0, wanted.start) for partition, wanted in ranges.items()}
    left = {(partition.topic, partition.partition): partition for partition, wanted in ranges.items() if not wanted.empty}
    services.progress.step("reading the records to skip")
    for batch in services.kafka.records.read(ranges, isolation=READ_COMMITTED):
        for record in batch:
            partition = left.get((record.topic, record.partition))
            if partition is None:
                continue
            passed = seen[partition][0] + 1
            seen[partition] = (passed, record.offset + 1)
            if passed == counts[partition]:
                del left[record.topic, record.partition]
        if not left:
            break
    return seen

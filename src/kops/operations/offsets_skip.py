"""Behind so many records: the log is read, since not every offset has one."""

from __future__ import annotations

from collections.abc import Mapping

from kops.core.errors import UsageProblem
from kops.core.findings import counted
from kops.core.models import Committed, TopicPartition
from kops.core.offsets import SkipRecords, Strategy, ToOffset
from kops.core.records import OffsetRange
from kops.gateways.kafka.offsets import READ_COMMITTED
from kops.operations.offsets_strategies import Seek
from kops.operations.services import Services


def behind_records(
    services: Services, seeks: Mapping[TopicPartition, Seek], current: Mapping[TopicPartition, Committed]
) -> dict[TopicPartition, Strategy]:
    """Return seeks with every skip as the offset that it goes to.

    Records of aborted transactions do not count, nor those of transactions that are still open.

    :raises UsageProblem: when a partition has no commit to count from, or not so many records behind it
    """
    skips = {partition: seek.count for partition, seek in seeks.items() if isinstance(seek, SkipRecords)}
    if not skips:
        return {partition: seek for partition, seek in seeks.items() if not isinstance(seek, SkipRecords)}
    without = next((partition for partition in sorted(skips) if partition not in current), None)
    if without is not None:
        raise UsageProblem(f"{without}: there is no committed offset to skip from", hint="name an offset, or start")
    bounds = services.kafka.offsets.bounds(skips, isolation=READ_COMMITTED)
    ranges = {p: OffsetRange(max(current[p].offset, bounds[p].log_start_offset), bounds[p].log_end_offset) for p in skips}
    seen = _offsets_behind(services, ranges, skips)
    found: dict[TopicPartition, Strategy] = {}
    for partition, seek in seeks.items():
        if not isinstance(seek, SkipRecords):
            found[partition] = seek
            continue
        count, start = seek.count, ranges[partition].start
        passed, behind = seen[partition]
        if passed < count:
            raise UsageProblem(
                f"{partition} has {counted(passed, 'record')} from offset {start} on, not {count}",
                hint=f"{partition}=end goes behind all of them; records of open transactions do not count",
                topic=partition.topic,
                partition=partition.partition,
            )
        found[partition] = ToOffset(behind, exact=True, reason=f"behind {counted(count, 'record')} from {start} on")
    return found


def _offsets_behind(
    services: Services, ranges: Mapping[TopicPartition, OffsetRange], counts: Mapping[TopicPartition, int]
) -> dict[TopicPartition, tuple[int, int]]:
    """Return how many records were passed in each partition, at most as many as wanted, and the offset behind the last."""
    seen = {partition: (0, wanted.start) for partition, wanted in ranges.items()}
    left = {(partition.topic, partition.partition): partition for partition, wanted in ranges.items() if not wanted.empty}
    services.progress.step("Reading the records to skip")
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

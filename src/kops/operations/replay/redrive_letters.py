"""The dead letters of a redrive: as rows to send, and by cause, as data and in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kops.core.findings import counted
from kops.core.intervals import Intervals
from kops.operations.records.dead_letters import NO_HEADERS
from kops.operations.replay.arguments import RedriveArguments
from kops.operations.replay.plans import sample_json, sample_text
from kops.operations.replay.request import parse_form
from kops.operations.replay.work import Work

if TYPE_CHECKING:
    from kops.spark.replay.jobs import PartitionRange
    from kops.spark.replay.redrive import LetterGroup
    from kops.spark.types import DataFrame


BY_ORIGIN = "to_partition"
"""The expression that sends each record to the partition it came from."""


def letters_of(
    work: Work[RedriveArguments], parts: Sequence[PartitionRange], offsets: Mapping[int, Intervals], *, inside: bool, where: str | None
) -> DataFrame:
    """Return dead letters with what becomes of them (``spark.replay.redrive.judged``), one task per part.

    :param offsets: sets by partition; ``inside``: return those in the sets, otherwise all others
    """
    from kops.spark.reading.batch_source import BatchSource
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.replay.expressions import changed, decoded
    from kops.spark.replay.redrive import SCHEMA, DeadLetterRowBuilder, judged

    given, changes = work.arguments, work.changes
    key, value = parse_form(changes.key), parse_form(changes.value)
    ranges = {part.partition: (part.start, part.end) for part in parts}
    wanted = TopicRange(given.source, ranges, read_committed=True, headers=True, split=False, times=given.times)
    session = work.engine.session
    records = BatchSource(session, work.source_settings()).reduced(wanted, SCHEMA, DeadLetterRowBuilder(offsets, inside))
    seen = decoded(records, given.source, key, value, skip=changes.skip, more=("dead_letter", "attempts"))
    changed(seen, where, assignments={}, headers={}, key=key, value=value)  # let Spark check the condition
    causes = () if inside else given.causes
    return judged(seen, where=where, causes=causes, route=given.route, max_attempts=given.max_attempts, parked=given.parked)


def rows_of_dead_letters(work: Work[RedriveArguments], parts: Sequence[PartitionRange]) -> DataFrame:
    from kops.spark.replay.expressions import changed, routed
    from kops.spark.replay.redrive import sent_back, unchanged_where_parked

    given, changes = work.arguments, work.changes
    chosen = letters_of(work, parts, given.claims, inside=True, where=None)
    key, value = parse_form(changes.key), parse_form(changes.value)
    new = changed(sent_back(chosen, given.targets), None, assignments=changes.plain, headers=changes.headers, key=key, value=value)
    return routed(unchanged_where_parked(new), "to_topic", given.partition_by, given.anchor)


_SHOWN = 20
_LEFT = {
    "other": "not chosen: left",
    "exceeded": "sent back too often: left",
    "no origin": "they do not say where they came from: left, --route TOPIC sends them",
    "no copy": "the share group kept no copy of key and value: left",
}


def causes_json(groups: Sequence[LetterGroup]) -> list[dict[str, Any]]:
    return [
        {
            "count": group.count,
            "cause": group.kind or NO_HEADERS,
            "example": group.example,
            "written_by": group.written_by,
            "to": group.topic,
            "fate": group.fate,
            "sample": {
                "key": sample_json(group.sample[0]),
                "value": sample_json(group.sample[1]),
                "partition": group.sample[2],
                "offset": group.sample[3],
            },
        }
        for group in groups
    ]


def causes_lines(groups: Sequence[LetterGroup]) -> list[str]:
    lines = []
    for group in groups[:_SHOWN]:
        what = f"to {group.topic}" if group.fate == "send" else f"parked in {group.topic}" if group.fate == "parked" else _LEFT[group.fate]
        key, value = (sample_text(sample_json(data)) for data in group.sample[:2])
        where = f"{group.sample[2]}@{group.sample[3]}"
        lines.append(f"{group.count:,} x {group.kind or NO_HEADERS}: {what}; such as {where}: {key} = {value}")
    if len(groups) > _SHOWN:
        lines.append(f"{sum(group.count for group in groups[_SHOWN:]):,} more of {len(groups) - _SHOWN} other causes: -o json has all")
    return lines


def left_lines(groups: Sequence[LetterGroup], max_attempts: int) -> list[str]:
    exceeded = sum(group.count for group in groups if group.fate == "exceeded")
    if not exceeded:
        return []
    times = f"{'was' if exceeded == 1 else 'were'} sent back {counted(max_attempts, 'time')}"
    return [f"{exceeded:,} {times} and failed again: --parked TOPIC moves them there, --max-attempts allows more"]

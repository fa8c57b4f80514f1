"""The rows of a redrive: the dead letters that its plan has chosen, as they are sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kops.core.intervals import Intervals
from kops.operations.replay.jobs import Work
from kops.operations.replay.wanted import parse_form

if TYPE_CHECKING:
    from kops.spark.replay.jobs import Part
    from kops.spark.types import DataFrame

BY_ORIGIN = "to_partition"
"""The expression that sends each record to the partition it came from."""


def letters_of(work: Work, parts: Sequence[Part], offsets: Mapping[int, Intervals], *, inside: bool, where: str | None) -> DataFrame:
    """Return dead letters with what becomes of them (``spark.redrive.judged``), a task a part.

    :param offsets: sets by partition; ``inside``: those of the sets, else all others
    """
    from kops.spark.reading.batch_source import BatchSource
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.replay.redrive import SCHEMA, Letters, judged
    from kops.spark.replay.rows import changed, decoded

    given, changes = work.arguments, work.changes
    key, value = parse_form(changes.key), parse_form(changes.value)
    wanted = TopicRange(given["source"], {p.partition: (p.start, p.end) for p in parts}, read_committed=True, headers=True, split=False)
    session = work.engine.session
    records = BatchSource(session, work.source_settings()).reduced(wanted, SCHEMA, Letters(offsets, inside))
    seen = decoded(records, given["source"], key, value, skip=changes.skip, more=("dead_letter", "attempts"))
    changed(seen, where, assignments={}, headers={}, key=key, value=value)  # Spark judges the condition
    limits = {"max_attempts": given["max_attempts"], "parked": given["parked"], "route": given["route"]}
    return judged(seen, where=where, causes=() if inside else given["causes"], **limits)


def rows_of_dead_letters(work: Work, parts: Sequence[Part]) -> DataFrame:
    """Return what is sent of the dead letters that the plan names."""
    from kops.spark.replay.redrive import sent_back, unchanged_where_parked
    from kops.spark.replay.rows import changed, routed

    given, changes = work.arguments, work.changes
    chosen = letters_of(work, parts, claims_of(given), inside=True, where=None)
    key, value = parse_form(changes.key), parse_form(changes.value)
    new = changed(sent_back(chosen, given["targets"]), None, assignments=changes.plain, headers=changes.headers, key=key, value=value)
    return routed(unchanged_where_parked(new), "to_topic", given["partition_by"], given["anchor"])


def claims_of(arguments: Mapping[str, Any]) -> dict[int, Intervals]:
    """Return the offsets that a plan sends, by partition."""
    return {int(number): tuple((start, end) for start, end in some) for number, some in arguments["claims"].items()}

"""``FROM..TO``: a part of every partition, by offset or time; ``TO`` is exclusive. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from kops.core.errors import UsageProblem
from kops.core.models import Bounds, TopicPartition
from kops.core.records.models import OffsetRange
from kops.core.times import Position, parse_position, time_text

AtTimes: TypeAlias = Mapping[int, Mapping[TopicPartition, int | None]]
START, END = Position("start"), Position("end")
_HINT = "write it like start..end, 100..200, @-1h..@-30m, @2026-11-20T14:05.. or ..500"


@dataclass(frozen=True)
class Span:
    start: Position = START
    end: Position = END

    @property
    def times(self) -> tuple[int, ...]:
        """The times for which Kafka has to be asked, in milliseconds since the epoch."""
        return tuple(position.value for position in (self.start, self.end) if position.kind == "time")


def parse_span(text: str, now: datetime) -> Span:
    """Parse ``FROM..TO``; either can be left out and defaults to start or end; ``FROM`` alone extends to the end.

    :param now: what ``@-1h`` is relative to
    :raises UsageProblem: if it is not a valid range, or ends before it begins
    """
    first, dots, last = text.partition("..")
    if not text.strip(".") and text != "..":
        raise UsageProblem(f"{text!r} is not a valid range", hint=_HINT)
    try:
        span = Span(parse_position(first, now) if first else START, parse_position(last, now) if dots and last else END)
    except UsageProblem as wrong:
        hint = wrong.hint if "-1 and -2" in (wrong.hint or "") else _HINT
        raise UsageProblem(f"{text!r} is not a valid range: {wrong.message}", hint=hint) from wrong
    backwards = span.start.kind == span.end.kind and span.start.value > span.end.value
    if backwards or (span.start.kind == "end" and span.end.kind != "end") or (span.end.kind == "start" and span.start.kind != "start"):
        raise UsageProblem(f"the range {text} ends before it begins", hint=_HINT)
    return span


def resolve_span(
    span: Span, bounds: Mapping[TopicPartition, Bounds], at_times: AtTimes
) -> tuple[dict[TopicPartition, OffsetRange], list[str]]:
    """Return the offsets of a range in each partition, limited to the log, and notes on what the log lacks.

    :param at_times: for each of ``span.times``, the first offset at or after it; None if there is none
    """
    ranges: dict[TopicPartition, OffsetRange] = {}
    notes: list[str] = []
    for partition, bound in bounds.items():
        first, last = (_offset(position, partition, bound, at_times) for position in (span.start, span.end))
        start = min(max(first, bound.log_start_offset), bound.log_end_offset)
        ranges[partition] = OffsetRange(start, max(start, min(last, bound.log_end_offset)))
        if span.start.kind == "offset" and first < bound.log_start_offset:
            notes.append(f"{partition} begins at offset {bound.log_start_offset}: earlier records were deleted")
        elif span.start.kind == "offset" and first > bound.log_end_offset:
            notes.append(f"{partition} ends at offset {bound.log_end_offset}, before {first}")
    if span.start.kind == "time" and ranges and all(wanted.empty for wanted in ranges.values()):
        notes.append(_empty_span_note(span))
    return ranges, notes


def _empty_span_note(span: Span) -> str:
    start = time_text(span.start.value)
    if span.end.kind != "time":
        return f"no record at or after {start}{'' if span.end.kind == 'end' else ' within the range'}"
    # Kafka looks a time up by its first record: if timestamps are out of order, part of the range may lie after its end.
    return f"no record at or after {start} stands before the first one at or after {time_text(span.end.value)}"


def _offset(position: Position, partition: TopicPartition, bound: Bounds, at_times: AtTimes) -> int:
    if position.kind == "offset":
        return position.value
    if position.kind == "start":
        return bound.log_start_offset
    found = at_times[position.value][partition] if position.kind == "time" else None
    return bound.log_end_offset if found is None else found

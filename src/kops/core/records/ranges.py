"""``FROM..TO``: the records of a part of every partition, by offset or time; ``TO`` is exclusive. Pure.

Kafka finds the first offset at or after a time, and nothing shows where the last one before a time is: timestamps may be out of order, by
producers' clocks, event times or several producers. So a range of time is where to look, from the first record at or after FROM to the log
end, and which of the records there are meant, by their timestamps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from kops.core.errors import UsageProblem
from kops.core.models import Bounds, TopicPartition
from kops.core.records.models import OffsetRange
from kops.core.times import Position, Times, parse_position, time_text

FirstOffsets: TypeAlias = Mapping[TopicPartition, int | None]
START, END = Position("start"), Position("end")
_HINT = "write it like start..end, 100..200, @-1h..@-30m, @2026-11-20T14:05.. or ..500"


@dataclass(frozen=True)
class Span:
    start: Position = START
    end: Position = END

    @property
    def times(self) -> Times:
        """The timestamps of the records that are meant."""
        return Times(_time(self.start), _time(self.end))

    @property
    def is_relative(self) -> bool:
        """Whether its times depend on this machine's clock."""
        return self.start.relative or self.end.relative


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
    span: Span, bounds: Mapping[TopicPartition, Bounds], first: FirstOffsets
) -> tuple[dict[TopicPartition, OffsetRange], list[str]]:
    """Return the offsets to read in each partition for a range, within the log, and notes about what the log lacks.

    :param first: of each partition the first offset at or after FROM, None if there is none; only used if FROM is a time
    """
    ranges: dict[TopicPartition, OffsetRange] = {}
    notes: list[str] = []
    for partition, bound in bounds.items():
        start, end = _start(span.start, first.get(partition), bound), _end(span.end, bound)
        within = min(max(start, bound.log_start_offset), bound.log_end_offset)
        ranges[partition] = OffsetRange(within, max(within, min(end, bound.log_end_offset)))
        if span.start.kind == "offset" and start < bound.log_start_offset:
            notes.append(f"{partition} begins at offset {bound.log_start_offset}: earlier records were deleted")
        elif span.start.kind == "offset" and start > bound.log_end_offset:
            notes.append(f"{partition} ends at offset {bound.log_end_offset}, before {start}")
    if span.start.kind == "time" and ranges and all(wanted.empty for wanted in ranges.values()):
        by = ", by this machine's clock" if span.start.relative else ""
        notes.append(f"no record at or after {time_text(span.start.value)}{by}{'' if span.end.kind != 'offset' else ' within the range'}")
    return ranges, notes


def range_text(times: Times) -> str:
    """Return the times of a range in words; at least one of its bounds is a time."""
    bounds = [f"{word} {time_text(bound)}" for word, bound in (("from", times.first), ("before", times.end)) if bound is not None]
    return " and ".join(bounds)


def _time(position: Position) -> int | None:
    return position.value if position.kind == "time" else None


def _start(position: Position, first: int | None, bound: Bounds) -> int:
    if position.kind == "time":
        return bound.log_end_offset if first is None else first
    return position.value if position.kind == "offset" else bound.log_start_offset if position.kind == "start" else bound.log_end_offset


def _end(position: Position, bound: Bounds) -> int:
    """Return the offset up to which records may be within the range: for a time, any later record may be before it."""
    return position.value if position.kind == "offset" else bound.log_start_offset if position.kind == "start" else bound.log_end_offset

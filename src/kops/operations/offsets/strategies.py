"""Parses Apache's flags and positions into strategies. Files and history are resolved elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

from kops.core.durations import parse_duration
from kops.core.errors import UsageProblem
from kops.core.offsets.arithmetic import ShiftBy, SkipRecords, Strategy, ToCurrent, ToEarliest, ToLatest, ToOffset, ToTime
from kops.core.selection import Selection, parse_selection
from kops.core.times import Position, is_relative, parse_datetime, parse_position, parse_time, to_milliseconds

TOPIC = "topic"
SKIP = "skip:"
_MOST_DIGITS = 9

Seek: TypeAlias = Strategy | SkipRecords
"""The target of a seek: a strategy, or a number of records to skip."""


@dataclass(frozen=True)
class Choice:
    """The strategy options of the command line; exactly one must be set."""

    to: str | None = None
    to_earliest: bool = False
    to_latest: bool = False
    to_current: bool = False
    to_offset: int | None = None
    to_datetime: str | None = None
    by_duration: str | None = None
    shift_by: int | None = None
    to_history: str | None = None
    from_file: Path | None = None


def mixes_of(steps: Sequence[tuple[str, Any]]) -> list[tuple[tuple[str, ...], Choice]]:
    """Assign strategies to topics: each strategy applies to the topics before it, a single one to all topics.

    :param steps: ``("topic", "orders:0")`` and ``("to_earliest", True)``, in the order of the command line
    :raises UsageProblem: when there is no strategy, or it is not clear what one applies to
    """
    strategies = [name for name, _ in steps if name != TOPIC]
    if not strategies:
        flags = ", ".join(_flag(field.name) for field in fields(Choice))
        raise UsageProblem(f"one of {flags} is needed; none is given", hint="--to @-1h, --to start and --to end are the short ones")
    if len(strategies) == 1:
        choice = next(Choice(**{name: value}) for name, value in steps if name != TOPIC)
        return [(tuple(value for name, value in steps if name == TOPIC), choice)]
    hint = "each strategy is for the --topic before it: --topic a --to-earliest --topic b --to @-1h"
    mixes: list[tuple[tuple[str, ...], Choice]] = []
    topics: list[str] = []
    for name, value in steps:
        if name == TOPIC:
            topics.append(value)
            continue
        if not topics:
            raise UsageProblem(f"{_flag(name)} has no --topic before it", hint=hint)
        mixes.append((tuple(topics), Choice(**{name: value})))
        topics = []
    if topics:
        raise UsageProblem(f"--topic {topics[0]} has no strategy behind it", hint=hint)
    return mixes


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def strategy_of(choice: Choice, now: datetime) -> Strategy:
    """Return the strategy of a choice other than ``from_file`` and ``to_history``.

    :param now: the time that durations are relative to
    """
    if choice.to is not None:
        return ToCurrent() if choice.to == "current" else _strategy_at(parse_position(choice.to, now))
    if choice.to_datetime is not None:
        text = choice.to_datetime
        return ToTime(parse_time(text, now) if text.startswith("@") else parse_datetime(text), is_relative(text))
    if choice.by_duration is not None:
        return ToTime(_back(now, choice.by_duration), relative=True)
    if choice.shift_by is not None:
        return ShiftBy(choice.shift_by)
    if choice.to_offset is not None:
        return ToOffset(not_negative(choice.to_offset))
    return ToEarliest() if choice.to_earliest else ToLatest() if choice.to_latest else ToCurrent()


def seek_of(text: str, now: datetime) -> tuple[Selection, Seek]:
    """Parse ``orders:0=120``, ``orders:0,3-5=end``, ``orders=@-1h`` or ``orders:0=skip:1`` into partitions and a position.

    Offsets are exact: an offset that the log does not have is refused later, not clamped.
    """
    left, equals, right = text.partition("=")
    if not equals:
        raise UsageProblem(
            f"{text!r} names no position", hint="write it like orders:0=1200, orders:0=+1, orders:0=skip:1, orders:0=end or orders=@-1h"
        )
    selection = parse_selection(left)
    if right.startswith(SKIP):
        return selection, SkipRecords(_count_of(right))
    step = parse_position(right[1:], now) if right.startswith("+") else None
    if step is not None:
        if step.kind != "offset":
            raise UsageProblem(f"{right!r} is not a valid step", hint="write it like orders:0=+1")
        return selection, ShiftBy(step.value, exact=True)
    strategy = _strategy_at(parse_position(right, now))
    return selection, ToOffset(strategy.offset, exact=True) if isinstance(strategy, ToOffset) else strategy


def _count_of(text: str) -> int:
    count = text.removeprefix(SKIP)
    if not (count.isascii() and count.isdigit() and len(count) <= _MOST_DIGITS and int(count)):
        raise UsageProblem(f"{text!r} skips no number of records", hint="write it like orders:0=skip:1")
    return int(count)


def seeks_of(texts: Sequence[str], now: datetime) -> dict[Selection, Seek]:
    """Parse positions; a selection that is named twice is refused."""
    found: dict[Selection, Seek] = {}
    for text in texts:
        selection, strategy = seek_of(text, now)
        if selection in found:
            raise UsageProblem(f"{selection} is named twice", hint="give one position to each partition")
        found[selection] = strategy
    return found


def position_strategy(text: str, now: datetime) -> Strategy:
    """Parse ``1200``, ``+1``, ``end``, ``current`` or ``@-1h``; offsets outside of the log are clamped to the nearest one that it has."""
    if text == "current":
        return ToCurrent()
    if text[:1] in ("+", "-") and text[1:].isascii() and text[1:].isdigit():
        return ShiftBy(int(text))
    return _strategy_at(parse_position(text, now))


def _strategy_at(position: Position) -> Strategy:
    if position.kind == "time":
        return ToTime(position.value, position.relative)
    if position.kind == "offset":
        return ToOffset(position.value)
    return ToEarliest() if position.kind == "start" else ToLatest()


def _back(now: datetime, duration: str) -> int:
    milliseconds = to_milliseconds(now) - parse_duration(duration, negative=True)
    if not 0 <= milliseconds <= to_milliseconds(now + timedelta(days=365_000)):
        raise UsageProblem(f"{duration} back from now lies before 1970 or too far ahead", hint="--to-earliest goes to the log start")
    return milliseconds


def not_negative(offset: int) -> int:
    """Return an offset unchanged.

    :raises UsageProblem: when it is invalid, such as Kafka's negative codes for the ends of the log
    """
    if not 0 <= offset < 2**63:
        hint = "-1 and -2 are written --to-latest and --to-earliest" if offset in (-1, -2) else "offsets count from 0"
        raise UsageProblem(f"{offset} is not a valid offset", hint=hint)
    return offset

"""Where to move: Apache's flags, positions, and files -> strategies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from pathlib import Path

from kops.core.apache_csv import OffsetRow, read_offsets, rows_of_group
from kops.core.durations import parse_duration
from kops.core.errors import UsageProblem
from kops.core.models import TopicPartition
from kops.core.offsets import ShiftBy, Strategy, ToCurrent, ToEarliest, ToLatest, ToOffset, ToTime
from kops.core.selection import Selection, parse_selection
from kops.core.times import Position, parse_datetime, parse_position, to_milliseconds


@dataclass(frozen=True)
class Choice:
    """What the command line says; exactly one of them is to be set."""

    to: str | None = None
    to_earliest: bool = False
    to_latest: bool = False
    to_current: bool = False
    to_offset: int | None = None
    to_datetime: str | None = None
    by_duration: str | None = None
    shift_by: int | None = None
    from_file: Path | None = None


def only_one(choice: Choice) -> None:
    """Refuse none or several strategies."""
    given = [field.name for field in fields(choice) if (value := getattr(choice, field.name)) is not None and value is not False]
    if len(given) != 1:
        flags = [f"--{field.name.replace('_', '-')}" for field in fields(choice)]
        chosen = f"{len(given)} are given" if given else "none is given"
        raise UsageProblem(f"one of {', '.join(flags)} is needed; {chosen}", hint="--to @-1h, --to start and --to end are the short ones")


def strategy_of(choice: Choice, now: datetime) -> Strategy:
    """Return the strategy of a choice other than ``from_file``.

    :param now: what durations count back from
    """
    if choice.to is not None:
        return ToCurrent() if choice.to == "current" else _of_position(parse_position(choice.to, now))
    if choice.to_datetime is not None:
        return ToTime(parse_datetime(choice.to_datetime))
    if choice.by_duration is not None:
        return ToTime(_back(now, choice.by_duration))
    if choice.shift_by is not None:
        return ShiftBy(choice.shift_by)
    if choice.to_offset is not None:
        return ToOffset(_not_negative(choice.to_offset))
    return ToEarliest() if choice.to_earliest else ToLatest() if choice.to_latest else ToCurrent()


def seek_of(text: str, now: datetime) -> tuple[Selection, Strategy]:
    """Return the partitions and the position of ``orders:0=120``, ``orders:0,3-5=end``, ``orders=@-1h`` or ``orders:0=+1``.

    Offsets are exact: one that the log does not have is refused later, not clamped.
    """
    left, equals, right = text.partition("=")
    if not equals:
        raise UsageProblem(f"{text!r} names no position", hint="write it like orders:0=1200, orders:0=+1, orders:0=end or orders=@-1h")
    selection = parse_selection(left)
    step = parse_position(right[1:], now) if right.startswith("+") else None
    if step is not None:
        if step.kind != "offset":
            raise UsageProblem(f"{right!r} is no step", hint="write it like orders:0=+1")
        return selection, ShiftBy(step.value, exact=True)
    strategy = _of_position(parse_position(right, now))
    return selection, ToOffset(strategy.offset, exact=True) if isinstance(strategy, ToOffset) else strategy


def seeks_of(texts: Sequence[str], now: datetime) -> dict[Selection, Strategy]:
    """Return every position; a selection that is named twice is refused."""
    found: dict[Selection, Strategy] = {}
    for text in texts:
        selection, strategy = seek_of(text, now)
        if selection in found:
            raise UsageProblem(f"{selection} is named twice", hint="give one position to each partition")
        found[selection] = strategy
    return found


def file_offsets(path: Path, group_id: str, selections: Sequence[Selection] = ()) -> dict[Selection, Strategy]:
    """Return the offsets that a file has for a group: Apache's CSV, or the JSON of ``kops offsets export``.

    :param selections: of these only
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageProblem(
            f"cannot read {path}: {reason}", hint="name a file that `kops offsets export` or Apache's --export wrote"
        ) from error
    rows = _json_rows(text, path) if text.lstrip().startswith("[") else read_offsets(text, name=str(path))
    found = rows_of_group(rows, group_id, name=str(path))
    kept = {p: offset for p, offset in found.items() if not selections or any(one.includes(p) for one in selections)}
    if not kept:
        names = ", ".join(map(str, selections))
        raise UsageProblem(f"{path} has no offsets of {names}", hint="leave --topic out to take the whole file")
    return {Selection(partition.topic, (partition.partition,)): ToOffset(offset) for partition, offset in kept.items()}


def _json_rows(text: str, path: Path) -> list[OffsetRow]:
    try:
        body = json.loads(text)
        rows = [OffsetRow(row.get("group"), TopicPartition(str(row["topic"]), int(row["partition"])), int(row["offset"])) for row in body]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hint = "an array of objects with topic, partition, offset and perhaps group"
        raise UsageProblem(f"{path} is no JSON of offsets: {error!r}", hint=hint) from error
    for row in rows:
        parse_selection(f"{row.partition.topic}:{row.partition.partition}")
        _not_negative(row.offset)
    return rows


def _of_position(position: Position) -> Strategy:
    if position.kind == "time":
        return ToTime(position.value)
    if position.kind == "offset":
        return ToOffset(position.value)
    return ToEarliest() if position.kind == "start" else ToLatest()


def _back(now: datetime, duration: str) -> int:
    milliseconds = to_milliseconds(now) - parse_duration(duration, negative=True)
    if not 0 <= milliseconds <= to_milliseconds(now + timedelta(days=365_000)):
        raise UsageProblem(f"{duration} back from now lies before 1970 or too far ahead", hint="--to-earliest goes to the log start")
    return milliseconds


def _not_negative(offset: int) -> int:
    if not 0 <= offset < 2**63:
        hint = "-1 and -2 are written --to-latest and --to-earliest" if offset in (-1, -2) else "offsets count from 0"
        raise UsageProblem(f"{offset} is no offset", hint=hint)
    return offset

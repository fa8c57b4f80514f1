"""Where an application began to read its topics, as a state file says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from kops.core.errors import UsageProblem
from kops.core.statefile.fields import Fields
from kops.core.statefile.sources import LATEST, OFFSET, TIME, Start
from kops.core.times import parse_time

_HINT = "an offset, {0: 5, 1: 7} for each partition, a time such as '@2026-11-20T14:05', or latest"
_RELATIVE = ("@-", "@now")


def read_start(fields: Fields) -> Start | None:
    """Read ``start`` of one topic."""
    given = fields.body.get("start")
    return None if given is None else _start(fields, "start", given)


def read_starts(fields: Fields, topics: Sequence[str]) -> Mapping[str, Start | None]:
    """Read ``start`` of several topics: one for all of them, or a mapping of topics."""
    given = fields.body.get("start")
    if not isinstance(given, Mapping):
        return dict.fromkeys(topics, None if given is None else _start(fields, "start", given))
    unknown = [str(name) for name in given if name not in topics]
    if unknown:
        raise fields.wrong("start", f"names {unknown[0]}, which is none of the topics", f"of several topics, by topic: {', '.join(topics)}")
    return {topic: _start(fields, f"start.{topic}", given[topic]) if given.get(topic) is not None else None for topic in topics}


def _start(fields: Fields, name: str, given: Any) -> Start:
    if isinstance(given, Mapping):
        return Start(OFFSET, offsets=_by_partition(fields, name, given))
    if given == LATEST:
        return Start(LATEST)
    if (offset := _number(given)) is not None:
        return Start(OFFSET, value=offset)
    if isinstance(given, str) and given.startswith("@"):
        if given.startswith(_RELATIVE):
            raise fields.wrong(name, f"is {given!r}, which moves with the clock", "a date and time, such as '@2026-11-20T14:05'")
        try:
            return Start(TIME, value=parse_time(given, datetime.fromtimestamp(0, timezone.utc)))
        except UsageProblem as wrong:
            raise fields.wrong(name, f"is {given!r}, which is not a valid time", wrong.hint) from wrong
    if isinstance(given, datetime):
        raise fields.wrong(name, "is a date without the @ of a time", f"write '@{given:%Y-%m-%dT%H:%M:%S}'")
    raise fields.wrong(name, f"is {given!r}", _HINT)


def _by_partition(fields: Fields, name: str, given: Mapping[Any, Any]) -> tuple[tuple[int, int], ...]:
    found = {}
    for partition, offset in given.items():
        number, at = _number(partition), _number(offset)
        if number is None or at is None:
            raise fields.wrong(name, f"has {partition!r}: {offset!r}, which is not an offset of a partition", _HINT)
        found[number] = at
    if not found:
        raise fields.wrong(name, "names no partition", _HINT)
    return tuple(sorted(found.items()))


def _number(given: Any) -> int | None:
    """Return a number that is not negative; JSON writes the keys of mappings as text."""
    if isinstance(given, str) and given.isascii() and given.isdigit():
        return int(given)
    return given if isinstance(given, int) and not isinstance(given, bool) and given >= 0 else None

"""The histogram of dead letters, as data and in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kops.core.findings import counted
from kops.formats.base import as_text_or_base64
from kops.operations.records.dead_letters import NO_HEADERS
from kops.operations.replay.preview import sample_text

if TYPE_CHECKING:
    from kops.spark.replay.redrive import Group

_SHOWN = 20
_LEFT = {
    "other": "not chosen: left",
    "exceeded": "sent back too often: left",
    "no origin": "they do not say where they came from: left, --route TOPIC sends them",
    "no copy": "the share group kept no copy of key and value: left",
}


def causes_json(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Return the dead letters by cause, with a sample of each."""
    return [
        {
            "count": group.count,
            "cause": group.kind or NO_HEADERS,
            "example": group.example,
            "written_by": group.written_by,
            "to": group.topic,
            "fate": group.fate,
            "sample": {
                "key": _shown(group.sample[0]),
                "value": _shown(group.sample[1]),
                "partition": group.sample[2],
                "offset": group.sample[3],
            },
        }
        for group in groups
    ]


def causes_lines(groups: Sequence[Group]) -> list[str]:
    """Return a line for each cause."""
    lines = []
    for group in groups[:_SHOWN]:
        what = f"to {group.topic}" if group.fate == "send" else f"parked in {group.topic}" if group.fate == "parked" else _LEFT[group.fate]
        key, value = (sample_text(_shown(data)) for data in group.sample[:2])
        where = f"{group.sample[2]}@{group.sample[3]}"
        lines.append(f"{group.count:,} x {group.kind or NO_HEADERS}: {what}; such as {where}: {key} = {value}")
    if len(groups) > _SHOWN:
        lines.append(f"{sum(group.count for group in groups[_SHOWN:]):,} more of {len(groups) - _SHOWN} other causes: -o json has all")
    return lines


def left_lines(groups: Sequence[Group], max_attempts: int) -> list[str]:
    """Return what to do about those that were sent back too often."""
    exceeded = sum(group.count for group in groups if group.fate == "exceeded")
    if not exceeded:
        return []
    times = f"{'was' if exceeded == 1 else 'were'} sent back {counted(max_attempts, 'time')}"
    return [f"{exceeded:,} {times} and failed again: --parked TOPIC puts them apart, --max-attempts allows more"]


def _shown(data: bytes | None) -> Any:
    return None if data is None else as_text_or_base64(bytes(data))

"""Offsets as CSV, the way ``kafka-consumer-groups --reset-offsets --export`` writes and ``--from-file`` reads them.

No heading; ``topic,partition,offset`` for one group, ``group,topic,partition,offset`` for several.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass

from kops.core.errors import UsageProblem
from kops.core.models import TopicPartition

_HINT = "a line is topic,partition,offset or group,topic,partition,offset, as `kops offsets export` writes it; no heading"
_ALWAYS_QUOTED_FROM = 25
_SAFE_FROM = "-"  # a text with any character before this one is quoted: the comma, the quote, blanks, #, ...
_LAST = 2**63 - 1
_MOST_DIGITS = 19


@dataclass(frozen=True)
class OffsetRow:
    """One line; the group is None if the file does not name it."""

    group: str | None
    partition: TopicPartition
    offset: int


def read_offsets(text: str, *, name: str = "the file") -> list[OffsetRow]:
    """Read Apache's CSV.

    :param name: of the file, for errors
    :raises UsageProblem: naming the line that is not valid, or that gives a partition a second offset
    """
    rows: dict[tuple[str | None, TopicPartition], OffsetRow] = {}
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    try:
        for fields in reader:
            if fields:
                row = _row(fields, f"line {reader.line_num} of {name}")
                if rows.setdefault((row.group, row.partition), row).offset != row.offset:
                    raise UsageProblem(f"line {reader.line_num} of {name} gives {row.partition} a second offset", hint=_HINT)
    except csv.Error as error:
        raise UsageProblem(f"line {reader.line_num} of {name} is not valid CSV: {error}", hint=_HINT) from error
    if not rows:
        raise UsageProblem(f"{name} has no offsets", hint=_HINT)
    if len({row.group is None for row in rows.values()}) > 1:
        raise UsageProblem(f"{name} has lines with and without a group", hint=_HINT)
    return list(rows.values())


def write_offsets(rows: Iterable[OffsetRow]) -> str:
    """Return Apache's CSV, byte for byte; like Jackson, it quotes any text longer than 24 characters."""
    lines = []
    for row in rows:
        names = [row.partition.topic] if row.group is None else [row.group, row.partition.topic]
        lines.append(",".join([*map(_quoted, names), str(row.partition.partition), str(row.offset)]) + "\n")
    return "".join(lines)


def _row(fields: list[str], where: str) -> OffsetRow:
    if len(fields) not in (3, 4):
        raise UsageProblem(f"{where} has {len(fields)} fields", hint=_HINT)
    *group, topic, partition, offset = fields[:-2] + [field.strip() for field in fields[-2:]]
    if not topic or not _is_number(partition, 2**31 - 1):
        raise UsageProblem(f"{where} names no partition: {','.join(fields)}", hint=_HINT)
    if not _is_number(offset, _LAST):
        raise UsageProblem(f"{where} has no offset of 0 or more: {offset!r}", hint=_HINT)
    return OffsetRow(group[0] if group else None, TopicPartition(topic, int(partition)), int(offset))


def _is_number(text: str, largest: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and int(text) <= largest


def _quoted(text: str) -> str:
    needs = len(text) >= _ALWAYS_QUOTED_FROM or any(character < _SAFE_FROM for character in text)
    return '"' + text.replace('"', '""') + '"' if needs else text

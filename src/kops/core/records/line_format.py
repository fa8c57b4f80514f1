r"""``%``-formats with the letters of kcat: ``%t %p %o\t%k=%s\n``. Pure.

%t topic, %p partition, %o offset, %T time in milliseconds, %k key, %s value, %h headers as ``name=value,...``, %K and %S length of key and
value (-1 without one), %R length of the value as four bytes, big-endian; %% a percent sign; \\n \\t \\r \\0 \\xHH \\\\ (``kcat -f``).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

from kops.core.errors import UsageProblem

Turn: TypeAlias = Callable[[Sequence[Any]], Iterable[Any]]
"""Turns one part of many records into what is written for it."""

LETTERS = "%t topic, %p partition, %o offset, %T time in ms, %k key, %s value, %h headers, %K %S lengths, %R length as 4 bytes, %% percent"
SHOWN_KEY, SHOWN_VALUE = "shown_key", "shown_value"
_TOKEN = re.compile(r"%(?P<letter>.?)|\\(?:x(?P<hex>[0-9A-Fa-f]{2})|(?P<escape>.?))|(?P<text>[^%\\]+)", re.DOTALL)
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


@dataclass(frozen=True)
class RecordFormat:
    """A format, compiled for many records at once: no Python code runs per record.

    :param template: as ``bytes % tuple`` takes it
    :param parts: what it needs of a record, in order: fields of ``Record``, and ``SHOWN_KEY`` and ``SHOWN_VALUE``, the bytes of key
        and value as they are to be shown; None stands for no key, and for a tombstone
    :param turns: for each part
    """

    template: bytes
    parts: tuple[str, ...]
    turns: tuple[Turn, ...]

    @property
    def raw_parts(self) -> tuple[str, ...]:
        """The fields of ``Record`` that it needs if key and value are written as they are."""
        return tuple(part.removeprefix("shown_") for part in self.parts)

    def write(self, rows: Sequence[Sequence[Any]]) -> bytes:
        """Format some records.

        :param rows: the parts of each record, in the order of ``parts``
        """
        columns = [turn(column) for turn, column in zip(self.turns, zip(*rows, strict=True), strict=False)]
        return self.template * len(rows) % tuple(chain.from_iterable(zip(*columns, strict=True)))


def compile_format(text: str) -> RecordFormat:
    """Compile a format.

    :raises UsageProblem: for an unknown letter or escape
    """
    template: list[bytes] = []
    fields: list[tuple[str, Turn]] = []
    for match in _TOKEN.finditer(text):
        letter = match["letter"]
        if letter is None:
            template.append(_plain(match).replace(b"%", b"%%"))
        elif letter == "%":
            template.append(b"%%")
        elif letter in _LETTERS:
            conversion, part, turn = _LETTERS[letter]
            template.append(conversion)
            fields.append((part, turn))
        else:
            raise UsageProblem(f"%{letter} is not a field of a record", hint=LETTERS)
    return RecordFormat(b"".join(template), tuple(part for part, _ in fields), tuple(turn for _, turn in fields))


def header_bytes(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    """Format headers as kcat does: ``name=value,name=NULL``."""
    return b",".join(name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in headers)


def _plain(match: re.Match[str]) -> bytes:
    if match["text"] is not None:
        return match["text"].encode("utf-8", "surrogateescape")
    if match["hex"]:
        return bytes.fromhex(match["hex"])
    if match["escape"] not in _ESCAPES:
        raise UsageProblem(f"\\{match['escape']} is not a valid escape", hint=r"there are \n \t \r \0 \xHH and \\")
    return _ESCAPES[match["escape"]]


def _as_it_is(column: Sequence[Any]) -> Sequence[Any]:
    return column


def _filled(column: Sequence[bytes | None]) -> Iterable[bytes]:
    return column if all(column) else [data or b"" for data in column]  # type: ignore[return-value]


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)


_LETTERS: Mapping[str, tuple[bytes, str, Turn]] = {
    "t": (b"%b", "topic", lambda column: map(str.encode, column)),
    "p": (b"%d", "partition", _as_it_is),
    "o": (b"%d", "offset", _as_it_is),
    "T": (b"%d", "timestamp", lambda column: [-1 if time is None else time for time in column]),
    "k": (b"%b", SHOWN_KEY, _filled),
    "s": (b"%b", SHOWN_VALUE, _filled),
    "h": (b"%b", "headers", lambda column: map(header_bytes, column)),
    "K": (b"%d", "key", lambda column: map(_length, column)),
    "S": (b"%d", "value", lambda column: map(_length, column)),
    "R": (b"%b", "value", lambda column: [struct.pack(">i", _length(data)) for data in column]),
}
"""Per letter its conversion, the part of a record that it shows, and how that part is written."""

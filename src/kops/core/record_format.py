r"""``%``-formats with the letters of kcat: ``%t %p %o\t%k=%s\n``. Pure.

%t topic, %p partition, %o offset, %T time in milliseconds, %k key, %s value, %h headers as ``name=value,...``, %K and %S length of key and
value (-1 without one), %R length of the value as four bytes, big-endian; %% a percent sign; \\n \\t \\r \\0 \\xHH \\\\ (``kcat -f``).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import TypeAlias

from kops.core.errors import UsageProblem
from kops.core.records import Record

Writer: TypeAlias = Callable[[Record, bytes | None, bytes | None], bytes]
"""Takes a record with its key and value as they are to be shown; None stands for no key, and for a tombstone."""

LETTERS = "%t topic, %p partition, %o offset, %T time in ms, %k key, %s value, %h headers, %K %S lengths, %R length as 4 bytes, %% percent"
_TOKEN = re.compile(r"%(?P<letter>.?)|\\(?:x(?P<hex>[0-9A-Fa-f]{2})|(?P<escape>.?))|(?P<text>[^%\\]+)", re.DOTALL)
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


def compile_format(text: str, *, null: bytes = b"") -> Writer:
    """Return a function that writes a record.

    :param null: what stands for no key and no value
    :raises UsageProblem: for a letter or an escape that there is not
    """
    pieces: list[bytes | Writer] = []
    for match in _TOKEN.finditer(text):
        if match["text"] is not None:
            pieces.append(match["text"].encode("utf-8", "surrogateescape"))
        elif match["letter"] is not None:
            pieces.append(b"%" if match["letter"] == "%" else _letter(match["letter"], null))
        elif match["hex"]:
            pieces.append(bytes.fromhex(match["hex"]))
        elif match["escape"] in _ESCAPES:
            pieces.append(_ESCAPES[match["escape"]])
        else:
            raise UsageProblem(f"\\{match['escape']} is no escape", hint=r"there are \n \t \r \0 \xHH and \\")

    def write(record: Record, key: bytes | None, value: bytes | None) -> bytes:
        return b"".join([piece if isinstance(piece, bytes) else piece(record, key, value) for piece in pieces])

    return write


def header_bytes(headers: tuple[tuple[str, bytes | None], ...]) -> bytes:
    """Return headers as kcat writes them: ``name=value,name=NULL``."""
    return b",".join(name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in headers)


def _letter(letter: str, null: bytes) -> Writer:
    writers: dict[str, Writer] = {
        "t": lambda record, _key, _value: record.topic.encode(),
        "p": lambda record, _key, _value: b"%d" % record.partition,
        "o": lambda record, _key, _value: b"%d" % record.offset,
        "T": lambda record, _key, _value: b"%d" % (-1 if record.timestamp is None else record.timestamp),
        "k": lambda _record, key, _value: null if key is None else key,
        "s": lambda _record, _key, value: null if value is None else value,
        "h": lambda record, _key, _value: header_bytes(record.headers),
        "K": lambda record, _key, _value: b"%d" % _length(record.key),
        "S": lambda record, _key, _value: b"%d" % _length(record.value),
        "R": lambda record, _key, _value: struct.pack(">i", _length(record.value)),
    }
    if letter not in writers:
        raise UsageProblem(f"%{letter} is no field of a record", hint=LETTERS)
    return writers[letter]


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)

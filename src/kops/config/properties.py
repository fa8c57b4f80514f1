"""Java's properties files, by the rules of ``java.util.Properties.load``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kops.config.files import read_bytes
from kops.core.errors import ConfigError

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_BLANKS = " \t\f"
_PROPERTY = re.compile(r"(?P<key>(?:\\.|[^\\=: \t\f])*)[ \t\f]*(?:[=:][ \t\f]*)?(?P<value>.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(file: Path, *, hint: str | None = None) -> dict[str, str]:
    """Return the properties of a file, whose encoding is Latin-1 with Unicode escapes for all other characters.

    Stricter than Java in two cases, in which a file does not mean what it seems to: a key with two values, of which Java takes the last,
    and characters in UTF-8, of which Java makes others.

    :raises ConfigError: naming the file and the key
    """
    data = read_bytes(file, hint=hint)
    pairs = _pairs(data.decode("latin-1"), str(file))
    found: dict[str, str] = {}
    for key, value in pairs:
        if found.setdefault(key, value) != value:
            raise ConfigError(f"{file}: {key} is given twice", hint="keep one of them; Java would take the last", file=str(file))
    if not data.isascii():
        _refuse_utf8(file, data, pairs)
    return found


def _refuse_utf8(file: Path, data: bytes, pairs: list[tuple[str, str]]) -> None:
    try:
        meant = _pairs(data.decode("utf-8"), str(file))
    except UnicodeDecodeError:
        return
    for (key, value), (key_meant, value_meant) in zip(pairs, meant, strict=False):
        if (key, value) != (key_meant, value_meant):
            what = f"{file}: {key_meant} has characters in UTF-8, which Java reads as Latin-1, that is as others"
            raise ConfigError(what, hint="write each as \\uXXXX", file=str(file))


def parse_properties(text: str, place: str = "") -> dict[str, str]:
    """Return the properties of a text; the last of a repeated key wins.

    :param place: where the text is from, for messages
    :raises ConfigError: on a broken Unicode escape, naming the key, but not the value, which may be a secret
    """
    return dict(_pairs(text, place))


def _pairs(text: str, place: str) -> list[tuple[str, str]]:
    found = []
    for line in _logical_lines(text):
        key, value = ("", line) if (parts := _PROPERTY.fullmatch(line)) is None else parts.groups()  # it matches every text
        try:
            found.append((_unescaped(key), _unescaped(value)))
        except ValueError:
            at = f"{place}: " if place else ""
            raise ConfigError(f"{at}{key}: \\u must be followed by four hexadecimal digits") from None
    return found


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines joined where a backslash ends them, as ``java.util.Properties.LineReader`` does."""
    lines = _LINE.findall(text)
    joined = ""
    for number, line in enumerate(lines, 1):
        part = line.rstrip("\r\n").lstrip(_BLANKS)
        if not joined and (not part or part.startswith(("#", "!"))):
            continue
        goes_on = (len(part) - len(part.rstrip("\\"))) % 2 == 1
        joined += part[:-1] if goes_on else part
        if not goes_on or (number == len(lines) and not line.endswith("\r\n")):  # a single backslash at the end is an empty key
            yield joined
            joined = ""
    if joined:
        yield joined


def _unescaped(text: str) -> str:
    """Replace escapes, combine surrogate pairs, and replace unpaired surrogates, which cannot be encoded.

    :raises ValueError: on a broken Unicode escape
    """
    return _ESCAPE.sub(_character, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(found: re.Match[str]) -> str:
    if found[1] is not None:
        return chr(int(found[1], 16))
    if found[2] == "u":
        raise ValueError("a broken Unicode escape")
    return _ESCAPED.get(found[2], found[2])

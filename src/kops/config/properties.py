"""The ``.properties`` format of ``java.util.Properties``, read and written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kops.core.errors import ConfigError

_WHITESPACE = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LINE_ENDS = re.compile(r"\r\n|\n|\r")


def parse_properties(text: str) -> dict[str, str]:
    """Read properties, by the rules of ``java.util.Properties.load``; the last of a repeated key counts.

    :raises ConfigError: on a broken Unicode escape, naming the key
    """
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        key, value = _split(line)
        name = _unescape(key, "the name of a property")
        found[name] = _unescape(value, name)
    return found


def format_properties(properties: Mapping[str, str]) -> str:
    """Write properties so that ``java.util.Properties.load`` reads them back, whatever encoding it assumes."""
    return "".join(f"{_escape(key, is_key=True)}={_escape(value, is_key=False)}\n" for key, value in properties.items())


def _logical_lines(text: str) -> Iterator[str]:
    pending: str | None = None
    for natural in _LINE_ENDS.split(text):
        stripped = natural.lstrip(_WHITESPACE)
        if pending is None and (not stripped or stripped[0] in "#!"):
            continue
        line = (pending or "") + stripped
        backslashes = len(natural) - len(natural.rstrip("\\"))
        if backslashes % 2:
            pending = line[:-1]
        else:
            pending = None
            yield line
    if pending is not None:
        yield pending


def _split(line: str) -> tuple[str, str]:
    position = 0
    while position < len(line) and line[position] not in "=:" + _WHITESPACE:
        position += 2 if line[position] == "\\" else 1
    key, rest = line[:position], line[position:].lstrip(_WHITESPACE)
    if rest[:1] in {"=", ":"}:
        rest = rest[1:].lstrip(_WHITESPACE)
    return key, rest


def _unescape(text: str, name: str) -> str:
    if "\\" not in text:
        return text
    units: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\" or position == len(text):
            units.append("" if character == "\\" else character)
            continue
        escaped = text[position]
        position += 1
        if escaped == "u":
            digits = text[position : position + 4]
            if not re.fullmatch(r"[0-9A-Fa-f]{4}", digits):
                raise ConfigError(f"{name}: \\u must be followed by four hexadecimal digits")
            units.append(chr(int(digits, 16)))
            position += 4
        else:
            units.append(_ESCAPES.get(escaped, escaped))
    # Characters above U+FFFF are written as two \u escapes, a surrogate pair.
    return "".join(units).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape(text: str, *, is_key: bool) -> str:
    written: list[str] = []
    for position, character in enumerate(text):
        if character in "\t\n\r\f":
            written.append({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}[character])
        elif character == "\\" or character in "=:#!" or (character == " " and (is_key or position == 0)):
            written.append("\\" + character)
        elif " " <= character <= "~":
            written.append(character)
        else:
            encoded = character.encode("utf-16-be", "surrogatepass")
            written += [f"\\u{encoded[at] << 8 | encoded[at + 1]:04X}" for at in range(0, len(encoded), 2)]
    return "".join(written)

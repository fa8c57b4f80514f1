"""Making untrusted text safe to show: characters that control a terminal or are invisible are escaped.

Names of groups and clients, header names, messages of exceptions, connectors and schemas come from anyone with write access somewhere. The
escaped characters are C0 controls, DEL, C1 controls, line separators, bidirectional controls (UAX #9), zero-width characters, and unpaired
surrogates.
"""

from __future__ import annotations

import re
from functools import cache

_FORMAT = (
    "\x7f-\x9f"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # zero width: soft hyphen, joiners, fillers, Arabic letter mark
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\ud800-\udfff"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # musical controls, tags and the supplement of variation selectors
)
_CELL = f"[\x00-\x1f{_FORMAT}]"
_LINES = f"[\x00-\x08\x0b-\x1f{_FORMAT}]"
_JSON = f"[{_FORMAT}]"


def visible(text: str) -> str:
    r"""Escape control characters, which puts the text on one line: ``\x1b``, ``\n``, ``\u202e``."""
    return text if text.isascii() and text.isprintable() else _compiled(_CELL).sub(_escape, text)


def visible_lines(text: str) -> str:
    """Escape all control characters except newlines and tabs."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _compiled(_LINES).sub(_escape, text)


def indented(text: str, by: str = "  ") -> str:
    """Return a message whose continuation lines are indented, so that none of them can pass for a line of kops itself."""
    return visible_lines(text).replace("\n", f"\n{by}")


def escaped_json(text: str) -> str:
    r"""Escape control characters in JSON without changing its values: they occur only in strings, and become ``\u009b``."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _compiled(_JSON).sub(_json_escape, text)


def visible_bytes(data: bytes) -> bytes:
    r"""Return bytes for a terminal: UTF-8 as ``visible_lines`` returns it, everything else as ``\xNN``."""
    return visible_lines(data.decode("utf-8", "backslashreplace")).encode("utf-8")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile lazily: it takes longer than the rest of a small command's start."""
    return re.compile(pattern)


def _escape(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode("ascii")


def _json_escape(found: re.Match[str]) -> str:
    units = found.group().encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))

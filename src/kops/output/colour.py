"""Colour with a meaning, only on a terminal: bad, doubtful, good, and commands to copy. Respects ``NO_COLOR`` (no-color.org)."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from textwrap import fill
from typing import TextIO

from kops.output.guard import TransientLine, unguarded

BAD, DOUBTFUL, GOOD, COMMAND = "31", "33", "32", "36"
"""SGR codes (ECMA-48) of the foreground, as the terminal's theme defines red, yellow, green and cyan."""
_NO_BREAK = "\x00"
_KEYS = ("severity", "status", "state", "side", "level", "action")
_WORDS = {
    **dict.fromkeys(("critical", "failed", "error", "dead", "missing", "unassigned", "delete", "remove", "erase"), BAD),
    **dict.fromkeys(("warning", "partial", "unknown", "unfinished", "paused", "restarting", "hidden", "different", "unexpected"), DOUBTFUL),
    **dict.fromkeys(("done", "ok", "running", "stable", "create", "add"), GOOD),
}


def has_colours(stream: TextIO) -> bool:
    """Whether a stream is a terminal on which colours are wanted."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, colour: str | None) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if colour else text


def unpainted(text: str) -> str:
    """Undo :func:`painted`."""
    return text[text.index("m") + 1 : -len("\x1b[0m")] if text.startswith("\x1b[") else text


def painted_column(key: str, texts: Sequence[str]) -> Sequence[str]:
    """Colour the cells of a column whose words have a meaning."""
    return [painted(text, _WORDS.get(text.lower())) for text in texts] if key in _KEYS else texts


def wrapped(text: str, stream: TextIO) -> str:
    """Wrap a text to the terminal, if there is one, without breaking a word or a `command`."""
    if not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return "\n".join(line if len(line) <= width else _folded(line, width) for line in text.split("\n"))


def _folded(line: str, width: int) -> str:
    kept = re.sub("`[^`]*`", lambda command: command[0].replace(" ", _NO_BREAK), line)
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return fill(kept, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False).replace(_NO_BREAK, " ")


def note_line(text: str, stream: TextIO) -> str:
    """Format a note: on a terminal, its lines are wrapped and a leading ``warning:`` is coloured."""
    text = wrapped(text, stream)
    sign = "warning:"
    return painted(sign, DOUBTFUL) + text.removeprefix(sign) if text.startswith(sign) and has_colours(stream) else text


def painted_word(word: str) -> str:
    """Return a word in the colour of its meaning, if it has one."""
    return painted(word, _WORDS.get(word.strip().lower()))


def write_coloured(text: str, stream: TextIO) -> None:
    """Write a text whose untrusted parts are already escaped: the guard would escape its colours."""
    TransientLine.end()
    unguarded(stream).write(text)

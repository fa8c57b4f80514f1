"""Markdown, HTML and Jira's markup for a ticket: every text stays the text that it is, whoever wrote it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from typing import Any, TextIO, cast

MARKUP: Mapping[str, str] = {"markdown": "pipe", "html": "html", "jira": "jira"}
"""Formats of a table, and what tabulate calls them."""
_WORD_ENDS = r"(?<![^\W_])_|_(?![^\W_])"
_SPECIAL = {
    "markdown": re.compile(rf"[\\`*\[\]<>&|~]|{_WORD_ENDS}"),
    "jira": re.compile(rf"[\\|{{}}\[\]!*^~+]|{_WORD_ENDS}"),
}


def escaped(text: str, output_format: str) -> str:
    """Return the text of a cell as tabulate is to get it, which escapes HTML itself and nothing else."""
    special = _SPECIAL.get(output_format)
    return special.sub(r"\\\g<0>", text) if special else text


def as_written(text: str, output_format: str) -> str:
    """Return lines that are no table as markup that shows them as they are."""
    lines = text.strip("\n")
    if output_format == "html":
        return f"<pre>{escape(lines)}</pre>\n"
    if output_format == "jira":
        return f"{{noformat}}\n{lines.replace('{noformat}', '{ noformat }')}\n{{noformat}}\n"
    fence = "`" * max(3, max(map(len, re.findall("`+", lines)), default=0) + 1)
    return f"{fence}\n{lines}\n{fence}\n"


def write_markup(markup: str, stream: TextIO) -> None:
    """Write markup that is finished to a stream that may make markup of everything else."""
    write: Callable[[str], object] = getattr(stream, "write_markup", stream.write)
    write(markup)


class Prose:
    """A text stream that writes what stands between tables as it is in the chosen markup.

    :param chosen: one of ``MARKUP``, or None; asked at each write, for an option may come late
    """

    def __init__(self, stream: TextIO, chosen: Callable[[], str | None]) -> None:
        self.beneath = stream
        self._chosen = chosen
        self._lines: list[str] = []
        self._any = False

    def write(self, text: str) -> int:
        """Write a text, or keep it until its end is known; return how long it is."""
        if self._chosen() is None:
            return self.beneath.write(text)
        if not isinstance(text, str):  # by which click finds out whether a stream takes bytes
            raise TypeError(f"write() takes str, not {type(text).__name__}")
        self._lines.append(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write lines, their ends included."""
        self.write("".join(lines))

    def write_markup(self, markup: str) -> None:
        """Write finished markup: a block of its own."""
        self.finish()
        self.beneath.write(("\n" if self._any else "") + markup)
        self._any = True

    def finish(self) -> None:
        """Write the lines that were kept."""
        text, self._lines = "".join(self._lines), []
        chosen = self._chosen()
        if text.strip() and chosen is not None:
            self.write_markup(as_written(text, chosen))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


@contextmanager
def markup_stdout(chosen: Callable[[], str | None]) -> Iterator[None]:
    """Make markup of everything that goes to stdout, where markup is chosen."""
    before = sys.stdout
    stream = Prose(before, chosen)
    sys.stdout = cast("TextIO", stream)
    try:
        yield
    finally:
        sys.stdout = before
        stream.finish()

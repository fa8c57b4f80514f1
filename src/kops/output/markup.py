"""Markdown, HTML and Jira's markup for a ticket; every text is escaped, so that it appears unchanged."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from html import escape
from typing import Any, TextIO, cast

from kops.output.document import DOCUMENT_END, document_head

MARKUP: Mapping[str, str] = {"markdown": "pipe", "html": "html", "jira": "jira"}
"""Output formats of a table, and tabulate's names for them."""
_WORD_ENDS = r"(?<![^\W_])_|_(?![^\W_])"
_SPECIAL = {
    "markdown": re.compile(rf"[\\`*\[\]<>&|~]|{_WORD_ENDS}"),
    "jira": re.compile(rf"[\\|{{}}\[\]!*^~+]|{_WORD_ENDS}"),
}


def escaped(text: str, output_format: str) -> str:
    """Escape the text of a cell for tabulate, which itself escapes only HTML."""
    special = _SPECIAL.get(output_format)
    return special.sub(r"\\\g<0>", text) if special else text


def as_written(text: str, output_format: str) -> str:
    """Return lines outside tables as markup that shows them verbatim."""
    lines = text.strip("\n")
    if output_format == "html":
        return f"<pre>{escape(lines)}</pre>\n"
    if output_format == "jira":
        return f"{{noformat}}\n{lines.replace('{noformat}', '{ noformat }')}\n{{noformat}}\n"
    fence = "`" * max(3, max(map(len, re.findall("`+", lines)), default=0) + 1)
    return f"{fence}\n{lines}\n{fence}\n"


def write_markup(markup: str, stream: TextIO) -> None:
    """Write finished markup to a stream that may convert everything else to markup."""
    write: Callable[[str], object] = getattr(stream, "write_markup", stream.write)
    write(markup)


class Prose:
    """A text stream that writes text between tables as verbatim text in the chosen markup.

    :param chosen: returns one of ``MARKUP``, or None; called at each write, because the option may be parsed late
    """

    def __init__(self, stream: TextIO, chosen: Callable[[], str | None]) -> None:
        self.beneath = stream
        self._chosen = chosen
        self._lines: list[str] = []
        self._any = False

    def write(self, text: str) -> int:
        if self._chosen() is None:
            return self.beneath.write(text)
        if not isinstance(text, str):  # click tests in this way whether a stream takes bytes
            raise TypeError(f"write() takes str, not {type(text).__name__}")
        self._lines.append(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        self.write("".join(lines))

    def write_markup(self, markup: str) -> None:
        """Write finished markup as a block of its own."""
        self.finish()
        before = "\n" if self._any else document_head("kops") if self._chosen() == "html" else ""
        self.beneath.write(before + markup)
        self._any = True

    def finish(self) -> None:
        text, self._lines = "".join(self._lines), []
        chosen = self._chosen()
        if text.strip() and chosen is not None:
            self.write_markup(as_written(text, chosen))

    def end(self) -> None:
        """Write what is left, and the end of a document."""
        self.finish()
        if self._any and self._chosen() == "html":
            self.beneath.write(DOCUMENT_END)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


@contextmanager
def markup_stdout(chosen: Callable[[], str | None]) -> Iterator[None]:
    """Convert everything that goes to stdout to markup, if markup is chosen."""
    stream = Prose(sys.stdout, chosen)
    try:
        with redirect_stdout(cast("TextIO", stream)):
            yield
    finally:
        stream.end()

"""The last exit of text: stdout and stderr let nothing through that acts on a terminal, except what kops itself steers it with.

What stands in a line is escaped where lines are made (``kops.core.visible``); this guards whatever makes them, and whoever wrote it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TextIO, cast

from kops.core.visible import visible_bytes, visible_lines


class Passing:
    """The line of a terminal that is rewritten, such as progress: it is cleared before anything else is written."""

    clear: ClassVar[Callable[[], None] | None] = None

    @classmethod
    def end(cls) -> None:
        """Clear the line, if there is one."""
        clear, cls.clear = cls.clear, None
        if clear is not None:
            clear()


class Guard:
    """A text stream that escapes what acts on a terminal; line ends and tabs pass.

    :param stream: that it writes to
    :param holds: whether it escapes, asked at each write; a stream that is read by programs gets data as they are
    """

    def __init__(self, stream: TextIO, holds: Callable[[], bool]) -> None:
        self.beneath = stream
        self._holds = holds

    def write(self, text: str) -> int:
        """Write a text; return how long it is."""
        Passing.end()
        self.beneath.write(visible_lines(text) if self._holds() else text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write lines, their ends included."""
        self.write("".join(lines))

    @property
    def buffer(self) -> Any:
        """Return the bytes beneath; guarded where they go to a terminal."""
        Passing.end()
        return _Bytes(self.beneath.buffer) if self.beneath.isatty() else self.beneath.buffer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


class _Bytes:
    """The binary side of a terminal."""

    def __init__(self, beneath: Any) -> None:
        self._beneath = beneath

    def write(self, data: bytes | memoryview) -> int:
        """Write all of the bytes; return how many there were."""
        left = memoryview(visible_bytes(bytes(data)))
        while left:
            left = left[self._beneath.write(left) or 0 :]
        return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._beneath, name)


def unguarded(stream: TextIO) -> TextIO:
    """Return what is beneath, for what kops steers a terminal with."""
    while (beneath := getattr(stream, "beneath", None)) is not None:
        stream = beneath
    return stream


def steer(text: str, stream: TextIO) -> None:
    """Write a text that may steer the terminal."""
    Passing.end()
    unguarded(stream).write(text)


def for_data(stream: TextIO) -> TextIO:
    """Return where data go that a program reads as they are: beneath the guard, except on a terminal."""
    return stream if stream.isatty() else unguarded(stream)


@contextmanager
def guarded_stderr() -> Iterator[None]:
    """Guard stderr, which people read wherever it goes."""
    before = sys.stderr
    sys.stderr = cast("TextIO", Guard(before, lambda: True))
    try:
        yield
    finally:
        sys.stderr = before


@contextmanager
def guarded_stdout(for_people: Callable[[], bool]) -> Iterator[None]:
    """Guard stdout: always on a terminal, and in a pipe or a file what is for people.

    :param for_people: whether a table is written
    """
    before = sys.stdout
    terminal = before.isatty()
    sys.stdout = cast("TextIO", Guard(before, lambda: terminal or for_people()))
    try:
        yield
    finally:
        sys.stdout = before

"""The last safeguard for output: stdout and stderr pass nothing that controls a terminal, except control sequences of kops itself.

Texts are escaped where lines are made (``kops.core.visible``); this guards against any text that was not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, redirect_stderr, redirect_stdout
from typing import Any, ClassVar, TextIO, cast

from kops.core.visible import visible_bytes, visible_lines


class TransientLine:
    """The rewritten line of a terminal, such as progress: it is cleared before anything else is written."""

    clear: ClassVar[Callable[[], None] | None] = None

    @classmethod
    def end(cls) -> None:
        """Clear the line, if there is one."""
        clear, cls.clear = cls.clear, None
        if clear is not None:
            clear()


class Guard:
    """A text stream that escapes what controls a terminal, except line ends and tabs.

    :param stream: the stream that it writes to
    :param holds: returns whether to escape, called at each write; a stream that programs read gets the data unchanged
    """

    def __init__(self, stream: TextIO, holds: Callable[[], bool]) -> None:
        self.beneath = stream
        self._holds = holds

    def write(self, text: str) -> int:
        TransientLine.end()
        self.beneath.write(visible_lines(text) if self._holds() else text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        self.write("".join(lines))

    @property
    def buffer(self) -> Any:
        """The underlying binary stream, guarded if it is a terminal."""
        TransientLine.end()
        return _Bytes(self.beneath.buffer) if self.beneath.isatty() else self.beneath.buffer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


class _Bytes:
    """The binary side of a terminal."""

    def __init__(self, beneath: Any) -> None:
        self._beneath = beneath

    def write(self, data: bytes | memoryview) -> int:
        left = memoryview(visible_bytes(bytes(data)))
        while left:
            left = left[self._beneath.write(left) or 0 :]
        return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._beneath, name)


def unguarded(stream: TextIO) -> TextIO:
    """Return the underlying stream, for control sequences of kops itself."""
    while (beneath := getattr(stream, "beneath", None)) is not None:
        stream = beneath
    return stream


def for_data(stream: TextIO) -> TextIO:
    """Return the stream for data that programs read unchanged: the unguarded one, except on a terminal."""
    return stream if stream.isatty() else unguarded(stream)


def guarded_stderr() -> AbstractContextManager[TextIO]:
    """Guard stderr always, because people read it wherever it goes."""
    return redirect_stderr(cast("TextIO", Guard(sys.stderr, lambda: True)))


def guarded_stdout(for_people: Callable[[], bool]) -> AbstractContextManager[TextIO]:
    """Guard stdout: always on a terminal, and in a pipe or file if the output is for people.

    :param for_people: returns whether the output is for people, such as a table
    """
    terminal = sys.stdout.isatty()
    return redirect_stdout(cast("TextIO", Guard(sys.stdout, lambda: terminal or for_people())))

"""The logs of a sandbox's parts: last lines, and new ones."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

from kops.sandbox.parts import SandboxProcess

_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class LogLine:
    part: SandboxProcess
    line: str


def read(parts: Sequence[SandboxProcess], *, lines: int, follow: bool = False) -> Iterator[LogLine]:
    """Return the last lines of each part's log.

    :param lines: how many of each log
    :param follow: continue with new lines until the caller stops
    """
    tails = [_Tail(part) for part in parts]
    for tail in tails:
        yield from deque(tail.new(), maxlen=lines)
    while follow:
        time.sleep(_POLL_SECONDS)
        for tail in tails:
            yield from tail.new()


class _Tail:
    """Follows a log that grows and is rotated."""

    def __init__(self, part: SandboxProcess) -> None:
        self._part = part
        self._stream: TextIO | None = None
        self._rest = ""

    def new(self) -> Iterator[LogLine]:
        """Return the complete lines that were written since the last call."""
        yield from self._read()
        if self._stream is not None and self._renamed(self._stream):
            self._stream.close()
            self._stream = None
            yield from self._read()

    def _read(self) -> Iterator[LogLine]:
        if self._stream is None:
            try:
                self._stream = self._part.log.open(encoding="utf-8", errors="replace")
            except FileNotFoundError:
                return
        for piece in self._stream:
            self._rest += piece
            if self._rest.endswith("\n"):
                yield LogLine(self._part, self._rest[:-1])
                self._rest = ""

    def _renamed(self, stream: TextIO) -> bool:
        try:
            return not os.path.samestat(os.fstat(stream.fileno()), self._part.log.stat())
        except FileNotFoundError:
            return False

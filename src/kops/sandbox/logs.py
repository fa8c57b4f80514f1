"""The brokers' logs: their last lines, and those that come."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from kops.sandbox.model import Node, Sandbox

_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class LogLine:
    """A line that a broker wrote, without its end."""

    broker: int
    line: str


def read(sandbox: Sandbox, nodes: Sequence[Node], *, lines: int, follow: bool = False) -> Iterator[LogLine]:
    """Return the last lines of each broker's log.

    :param lines: how many of each broker
    :param follow: go on with the lines that come, until the caller stops
    """
    tails = [_Tail(node.id, sandbox.log_file(node)) for node in nodes]
    for tail in tails:
        yield from deque(tail.new(), maxlen=lines)
    while follow:
        time.sleep(_POLL_SECONDS)
        for tail in tails:
            yield from tail.new()


class _Tail:
    """Reads on in a log that grows, and that is renamed when it is big."""

    def __init__(self, broker: int, file: Path) -> None:
        self._broker = broker
        self._file = file
        self._stream: TextIO | None = None
        self._rest = ""

    def new(self) -> Iterator[LogLine]:
        """Return the whole lines that were written since the last time."""
        yield from self._read()
        if self._stream is not None and self._renamed(self._stream):
            self._stream.close()
            self._stream = None
            yield from self._read()

    def _read(self) -> Iterator[LogLine]:
        if self._stream is None:
            try:
                self._stream = self._file.open(encoding="utf-8", errors="replace")
            except FileNotFoundError:
                return
        for piece in self._stream:
            self._rest += piece
            if self._rest.endswith("\n"):
                yield LogLine(self._broker, self._rest[:-1])
                self._rest = ""

    def _renamed(self, stream: TextIO) -> bool:
        try:
            return not os.path.samestat(os.fstat(stream.fileno()), self._file.stat())
        except FileNotFoundError:
            return False

"""A few moments in which Ctrl-C and SIGTERM wait: while what has been done is written down."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Leave signals that arrive meanwhile unanswered: what they would stop is over. Only the main thread can."""
    try:
        before = {number: signal.signal(number, lambda _number, _frame: None) for number in _SIGNALS}
    except ValueError:  # not the main thread, which alone gets signals
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

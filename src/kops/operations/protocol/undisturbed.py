"""A short period in which Ctrl-C and SIGTERM have no effect: while the outcome of a change is written down."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore signals until the block ends: the work that they would stop is over. Has no effect outside the main thread."""
    try:
        before = {number: signal.signal(number, lambda _number, _frame: None) for number in _SIGNALS}
    except ValueError:  # not the main thread, the only one that can handle signals
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

"""SIGINT, SIGTERM and SIGHUP as exceptions, which end a command in order: reported, and journalled where it changes something.

CPython runs a pending signal handler inside the C code of a library too, wherever that calls ``PyObject_Str``. confluent-kafka then raises
its own ``TypeError`` in place of the handler's exception. So the last of those is kept, and ``kept_stops`` raises it again.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from kops.core.errors import ExitCode, KopsError, Terminated

STOPS = (KeyboardInterrupt, Terminated)
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_raised: list[BaseException] = []


def stop_on_signals() -> None:
    """Raise ``KeyboardInterrupt`` on SIGINT, and ``Terminated`` on SIGTERM and SIGHUP.

    An embedding program's handler of SIGINT stays, and so does an ignored SIGHUP (``nohup``). Only the main thread can handle signals;
    elsewhere this has no effect.
    """
    try:
        signal.signal(signal.SIGTERM, _stop)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, _stop)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _stop)
    except ValueError:  # not the main thread
        return


@contextmanager
def kept_stops() -> Iterator[None]:
    """Raise the exception of a signal in place of the error by which a library replaced it."""
    try:
        yield
    except STOPS:
        _raised.clear()
        raise
    except KopsError:
        raise
    except Exception as error:
        if _raised:
            raise _raised.pop() from error
        raise


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


def exit_code(stop: BaseException) -> ExitCode:
    """Return the exit code of a command that one of ``STOPS`` ended, or a refused prompt (Ctrl-C or Ctrl-D there)."""
    return ExitCode.TERMINATED if isinstance(stop, Terminated) else ExitCode.INTERRUPTED


def _stop(number: int, _frame: object) -> None:
    _raised[:] = [KeyboardInterrupt() if number == signal.SIGINT else Terminated()]
    raise _raised[0]

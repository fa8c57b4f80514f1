"""The reason why a Spark job failed, in one sentence."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from kops.core.errors import KopsError, OperationFailed, Unreachable
from kops.core.rights import missing_right
from kops.spark.driver.launch import how_jvm_ended

_ENDING_SECONDS = 10.0
_UNREACHABLE = ("Timeout expired while fetching topic metadata", "Timed out waiting for a node assignment", "TimeoutException")


@contextlib.contextmanager
def explained(doing: str, *, hint: str = "nothing was written; --debug shows all that Spark said") -> Iterator[None]:
    """Turn Spark's exceptions into an error that states what could not be done and why.

    :param doing: such as ``compute totals``
    :param hint: of the error
    :raises Unreachable: when the brokers did not answer Spark
    :raises AuthorizationFailed: where they refuse it for a missing right that is known
    :raises OperationFailed: for anything else, the end of Spark's JVM too
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except KopsError:
        raise
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise_hidden_interrupt(error)
        reason = lost_jvm(error)
        if reason is None and isinstance(error, ConnectionError):
            raise
        reason = reason or root_cause(str(error))
        cause, _, place = reason.partition(": ")
        if right := missing_right(cause, place):
            raise right.lacking(f"could not {doing}") from error
        kind = Unreachable if any(words in reason for words in _UNREACHABLE) else OperationFailed
        raise kind(f"could not {doing}: {reason}", hint=hint) from error


def lost_jvm(error: BaseException) -> str | None:
    """Return how Spark's JVM ended where that is why py4j raises an error; None: it runs, or it is another process or machine's."""
    from py4j.protocol import Py4JError, Py4JJavaError

    silent = isinstance(error, (ConnectionError, Py4JError)) and not isinstance(error, Py4JJavaError)
    ended = how_jvm_ended(_ENDING_SECONDS if silent else 0)
    return ended and f"Spark's JVM {ended}; was it out of memory?"


def raise_hidden_interrupt(error: BaseException) -> None:
    """Raise the Ctrl-C that an error hides: PySpark cleans up over the connection that py4j closed because of it, and fails."""
    hidden = error.__context__
    while hidden is not None:
        if isinstance(hidden, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        hidden = hidden.__context__


def root_cause(text: str) -> str:
    """Return the last cause of a Java stack trace, or the last line of a Python one, on one line."""
    if "Python worker exited unexpectedly" in text:  # the last cause is an EOFException
        return "a Python worker of Spark ended unexpectedly; was it out of memory?"
    causes = re.findall(r"^Caused by: (.+)$", text, re.MULTILINE)
    python = re.findall(r"^(?:\w+\.)*(\w*(?:Error|Exception)): (.+)$", text, re.MULTILINE)
    if causes:
        return _short(causes[-1])
    if python:
        return _short(": ".join(python[-1]))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return _short(lines[0] if lines else "no reason given")


def _short(line: str) -> str:
    return re.sub(r"^(?:\w+\.)+(\w+)", r"\1", line.strip())[:300]

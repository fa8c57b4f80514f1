"""Reading back what brokers show only after a moment.

The controller responds as soon as a change is decided; each broker shows it once its metadata has caught up, and every request may go to
another broker. So one read that differs proves nothing, while one that agrees does: then one broker knows it, and the others are waited
for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from kops.core.errors import VerificationFailed
from kops.core.plan import ItemResult, Json, Status

SETTLE_SECONDS = 10.0
SETTLE_SECONDS_EACH = 0.01
"""For each thing read back, in addition: a broker takes up a change after those before it, such as the logs of many new topics."""
POLL_SECONDS = 0.1

Results = tuple[ItemResult, ...]
_TOGETHER: ContextVar[int] = ContextVar("_TOGETHER", default=0)


@contextmanager
def together(count: int) -> Iterator[None]:
    """Let each ``settled`` in the block wait as for this many results: brokers take up what was changed together."""
    token = _TOGETHER.set(count)
    try:
        yield
    finally:
        _TOGETHER.reset(token)


def settled(read: Callable[[], Results], heard_by_all: Callable[[], None] | None = None) -> Results:
    """Read until everything is as planned, or ``SETTLE_SECONDS`` have passed, and ``SETTLE_SECONDS_EACH`` for each result.

    :param read: reads back and returns the results; those that differ from the plan have the error ``verification_failed``
    :param heard_by_all: for what every broker shows: waits, once one does, until all do, so that no later read is of before the change
    """
    started = time.monotonic()
    while True:
        results = read()
        late = time.monotonic() > started + SETTLE_SECONDS + SETTLE_SECONDS_EACH * max(len(results), _TOGETHER.get())
        if late or not any((result.error or {}).get("code") == VerificationFailed.slug for result in results):
            if heard_by_all is not None:
                heard_by_all()
            return results
        time.sleep(POLL_SECONDS)


def as_read_back(result: ItemResult, now: Json, wanted: Json, wrong: VerificationFailed, value: Json = None) -> ItemResult:
    """Return the result of an item whose present value was read.

    A request whose outcome is not known was carried out if the value is as planned; otherwise it stays unknown.

    :param wrong: the error where a request that succeeded has left another value, and ``value`` what is returned with it
    """
    if result.status not in (Status.DONE, Status.UNKNOWN):
        return result
    if now == wanted:
        return ItemResult(result.target, Status.DONE, value=now)
    if result.status is Status.UNKNOWN:
        return result
    return ItemResult(result.target, Status.FAILED, error=wrong.as_json(), value=value)

"""Reading back from brokers that hear of a change one after another.

The controller answers once a change is decided; each broker shows it when its metadata has caught up, and every request may go
to another broker. So one look that differs proves nothing, and one that agrees does.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from kops.core.errors import VerificationFailed
from kops.core.plan import ItemResult

SETTLE_SECONDS = 10.0
POLL_SECONDS = 0.1

Results = tuple[ItemResult, ...]


def settled(look: Callable[[], Results], *, seconds: float = SETTLE_SECONDS) -> Results:
    """Look until nothing is other than planned, or the time is over.

    :param look: reads back and returns the results; those that are not as planned have the error ``verification_failed``
    """
    deadline = time.monotonic() + seconds
    while True:
        results = look()
        if time.monotonic() > deadline or not any((result.error or {}).get("code") == VerificationFailed.slug for result in results):
            return results
        time.sleep(POLL_SECONDS)

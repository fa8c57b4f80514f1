"""Waits until what was written is visible to ``read_committed`` consumers."""

from __future__ import annotations

import time
from collections.abc import Mapping

from kops.core.errors import TimedOut
from kops.core.models import TopicPartition
from kops.operations.services import Services

PATIENCE_SECONDS = 120.0
_POLL_SECONDS = 0.2


def wait_until_stable(services: Services, ends: Mapping[TopicPartition, int]) -> None:
    """Wait until the last stable offsets have reached these ends.

    A transaction that a crash left open holds them back until the broker aborts it (``transaction.timeout.ms``).

    :raises TimedOut: when one does so for too long
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        bounds = services.kafka.offsets.bounds(ends, isolation="read_committed")
        behind = [partition for partition, end in ends.items() if bounds[partition].log_end_offset < end]
        if not behind:
            return
        if time.monotonic() > deadline:
            offset = bounds[behind[0]].log_end_offset
            raise TimedOut(
                f"{behind[0]} has an open transaction at offset {offset}, and cannot be read back yet",
                hint="it ends with its time-out; run `kops state verify` then",
            )
        time.sleep(_POLL_SECONDS)

"""Compares this machine's clock, from which ``@-1h`` is counted, with the cluster's."""

from __future__ import annotations

from concurrent.futures import TimeoutError  # noqa: A004 - Python's own only since 3.11
from typing import TYPE_CHECKING

from kops.core.errors import KopsError
from kops.core.groups.lag import age_text
from kops.core.times import CLOCKS_DIFFER_MS, time_text, to_milliseconds
from kops.gateways.threads import in_thread
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.gateways.kafka import Kafka

MOST_SECONDS = 3.0
"""The comparison is not worth a longer wait, as for a cluster that only librdkafka can connect to."""


def clock_notes(services: Services, kafka: Kafka | None = None) -> list[str]:
    """Return a sentence if this machine's clock differs from that of the active controller; none if it agrees or cannot be compared.

    DescribeQuorum has when the controller last heard from each replica; of itself it says its own time now (``LeaderState``,
    KIP-836, Kafka 3.3). No other request that changes nothing returns a time of a broker.

    :param kafka: of the cluster; None for that of the session
    """
    before = to_milliseconds(services.now())
    answer = in_thread((kafka or services.kafka).details.quorum)
    try:
        leader = answer.result(MOST_SECONDS).leader_replica
    except (KopsError, TimeoutError):
        return []
    after = to_milliseconds(services.now())
    if leader is None or leader.last_fetch is None:
        return []
    ahead, behind = before - leader.last_fetch, leader.last_fetch - after
    if max(ahead, behind) <= CLOCKS_DIFFER_MS:
        return []
    how = f"{age_text(ahead)} ahead of" if ahead > 0 else f"{age_text(behind)} behind"
    return [
        f"this machine's clock ({time_text(after)}) is {how} the cluster's ({time_text(leader.last_fetch)}): relative times are by this"
        " machine's"
    ]

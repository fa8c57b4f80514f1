"""Compares this machine's clock, from which ``@-1h`` is counted, with the cluster's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kops.core.errors import KopsError
from kops.core.groups.lag import age_text
from kops.core.times import CLOCKS_DIFFER_MS, time_text, to_milliseconds
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.gateways.kafka import Kafka


def clock_notes(services: Services, kafka: Kafka | None = None) -> list[str]:
    """Return a sentence if this machine's clock differs from that of the active controller; none if it agrees or cannot be compared.

    DescribeQuorum has when the controller last heard from each replica; of itself it says its own time now (``LeaderState``,
    KIP-836, Kafka 3.3). No other request that changes nothing returns a time of a broker.

    :param kafka: of the cluster; None for that of the session
    """
    before = to_milliseconds(services.now())
    try:
        leader = (kafka or services.kafka).details.quorum().leader_replica
    except KopsError:
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

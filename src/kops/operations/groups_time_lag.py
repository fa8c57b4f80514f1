"""Lag in time: the age of the first record that a group has not read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kops.core.errors import KopsError
from kops.core.lag import Place, TimeLag, time_lag_of
from kops.core.models import Bounds, Committed, TopicPartition
from kops.core.rights import reason
from kops.core.times import to_milliseconds
from kops.gateways.kafka.offsets import READ_UNCOMMITTED
from kops.operations.protocol import Services

MOST_PLACES = 2_000
"""So many are read in about a second: what is asked for more asks for it by name."""


def place_of(partition: TopicPartition, committed: Committed, bounds: Bounds) -> Place | None:
    """Return where a group would read on; None when nothing is left to read."""
    offset = max(committed.offset, bounds.log_start_offset)
    return (partition, offset) if offset < bounds.log_end_offset else None


def places_of(committed: Mapping[TopicPartition, Committed], bounds: Mapping[TopicPartition, Bounds | KopsError]) -> list[Place]:
    """Return where a group would read on, of the partitions with something left to read."""
    found = (place_of(p, at, ends) for p, at in committed.items() if isinstance(ends := bounds.get(p), Bounds))
    return [place for place in found if place is not None]


def time_lags(services: Services, places: Iterable[Place], *, isolation: str = READ_UNCOMMITTED) -> dict[Place, TimeLag]:
    """Return the lag in time at some places, by the timestamp of the first record there or after it.

    Reads one record of each, without joining a group. Why a time is not known is in its note; nothing is raised for a single partition.

    :param places: with something left to read
    :param isolation: ``read_committed`` passes over the records of aborted and open transactions, as the group would
    """
    found = services.kafka.groups.first_records(places, isolation=isolation)
    now = to_milliseconds(services.now())
    return {
        place: TimeLag(None, None, reason(answer)) if isinstance(answer, KopsError) else time_lag_of(place, answer, now)
        for place, answer in found.items()
    }

"""Lag in time: the age of the first record that a group has not read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kops.core.errors import KopsError
from kops.core.groups.lag import Place, TimeLag, time_lag_of
from kops.core.models import READ_UNCOMMITTED, Bounds, GroupOffsets, TopicPartition
from kops.core.rights import reason
from kops.core.times import to_milliseconds
from kops.operations.services import Services

MOST_PLACES = 2_000
"""This many are read in about a second: more are read only on request."""


def unread_places(
    groups: Iterable[GroupOffsets], bounds: Mapping[TopicPartition, Bounds | KopsError], *, most: int | None = None
) -> set[Place]:
    """Return where groups resume, in the partitions with records left to read.

    :param most: stop when there are more
    """
    ends: dict[str, dict[int, Bounds]] = {}
    for partition, found in bounds.items():
        if isinstance(found, Bounds):
            ends.setdefault(partition.topic, {})[partition.partition] = found
    unread: set[tuple[str, int, int]] = set()
    for group in groups:
        for topic, offsets in group.offsets.items():
            known = ends.get(topic, {})
            for number, committed in offsets.items():
                there = known.get(number)
                if there is not None and committed < there.log_end_offset > there.log_start_offset:
                    unread.add((topic, number, max(committed, there.log_start_offset)))
        if most is not None and len(unread) > most:
            break
    return {(TopicPartition(topic, number), offset) for topic, number, offset in unread}


def time_lags(services: Services, places: Iterable[Place], *, isolation: str = READ_UNCOMMITTED) -> dict[Place, TimeLag]:
    """Return the lag in time at some places: the age of the first record at or after each of them, by its timestamp.

    Reads one record per place, without joining a group. If a time is not known, the note says why; one partition never fails the others.

    :param places: with records left to read
    :param isolation: ``read_committed`` skips the records of aborted and open transactions, as the group would
    """
    found = services.kafka.groups.first_records(places, isolation=isolation)
    now = to_milliseconds(services.now())
    return {
        place: TimeLag(None, None, reason(answer)) if isinstance(answer, KopsError) else time_lag_of(place, answer, now)
        for place, answer in found.items()
    }

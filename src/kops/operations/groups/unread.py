"""What a group has not read: the age of its first record, and the records that retention will soon delete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kops.core.cluster.models import sizes_by_replica
from kops.core.errors import KopsError
from kops.core.groups.lag import Aged, Headroom, Place, Retention, TimeLag, headroom_by_age, headroom_by_size, time_lag_of
from kops.core.models import READ_UNCOMMITTED, Bounds, GroupOffsets, Setting, TopicPartition, value_of
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


def headrooms(
    services: Services,
    places: Sequence[Place],
    bounds: Mapping[TopicPartition, Bounds | KopsError],
    times: Mapping[Place, TimeLag],
    *,
    within: int,
) -> dict[Place, Headroom]:
    """Return what retention will delete unread within a time, for the places where it will delete something.

    One request per distinct ``retention.ms`` finds up to which offset the records of each partition will be too old by then.

    :param places: where groups resume, with records left to read
    :param bounds: of their partitions
    :param times: of the places, where known: they say when the first record expires; missing ones are read for places at risk
    :param within: milliseconds from now
    :raises KopsError: when settings or offsets cannot be read
    """
    retention = retentions(services, {partition.topic for partition, _ in places})
    now = to_milliseconds(services.now())
    by_age = _young_from(services, places, retention, now, within)
    at_risk: dict[Place, int] = {}
    for place in places:
        ends = bounds.get(place[0])
        if isinstance(ends, Bounds) and place[0] in by_age:
            young = by_age[place[0]]
            at_risk[place] = max(0, (ends.log_end_offset if young is None else min(young, ends.log_end_offset)) - place[1])
    aged = {place[0] for place, count in at_risk.items() if count}
    sizes = _sizes(services, aged | {partition for partition, _ in places if retention.get(partition.topic, Retention()).size is not None})
    newest = services.kafka.offsets.newest(aged) if aged else {}
    known = _with_times(services, [place for place in places if at_risk.get(place) or place[0] in sizes], times)
    found: dict[Place, Headroom] = {}
    for place in places:
        rule, ends = retention.get(place[0].topic), bounds.get(place[0])
        if rule is None or not isinstance(ends, Bounds):
            continue
        oldest, risks = known.get(place, TimeLag(None)).timestamp, []
        size, latest = sizes.get(place[0]), newest.get(place[0])
        younger = by_age.get(place[0]) is not None
        timestamp = None if latest is None else latest[1]
        risks.append(headroom_by_age(rule, Aged(at_risk.get(place, 0), oldest, younger, timestamp, size), now))
        if rule.size is not None and size is not None:
            risks.append(headroom_by_size(rule.size, size, place, ends, oldest=oldest, now=now, within=within))
        first = min((risk for risk in risks if risk is not None), key=lambda risk: risk.expires, default=None)
        if first is not None and first.expires <= now + within:
            found[place] = first
    return found


def _with_times(services: Services, places: Sequence[Place], times: Mapping[Place, TimeLag]) -> Mapping[Place, TimeLag]:
    """Return the times of some places. Those that are not known are read, unless there are more than ``MOST_PLACES``."""
    unknown = [place for place in places if place not in times]
    return times if not unknown or len(unknown) > MOST_PLACES else {**times, **time_lags(services, unknown)}


def retentions(services: Services, topics: Iterable[str]) -> dict[str, Retention]:
    """Return the retention of topics, without those that no longer exist."""
    settings = services.kafka.topics.settings(sorted(set(topics)), missing_ok=True)
    return {topic: retention_of(values) for topic, values in settings.items()}


def retention_of(settings: Mapping[str, Setting]) -> Retention:
    """Return a topic's retention: none if ``cleanup.policy`` lacks ``delete``; -1 means no limit."""
    policy = value_of(settings, "cleanup.policy", "delete").split(",")
    if "delete" not in policy:
        return Retention()
    defaults = Retention()
    return Retention(
        _limit(settings.get("retention.ms")),
        _limit(settings.get("retention.bytes")),
        _limit(settings.get("segment.ms")) or defaults.segment_ms,
        _limit(settings.get("segment.bytes")) or defaults.segment_size,
    )


def _limit(setting: Setting | None) -> int | None:
    value = int(setting.value) if setting is not None and setting.value not in (None, "") else -1
    return value if value >= 0 else None


def _young_from(
    services: Services, places: Iterable[Place], retention: Mapping[str, Retention], now: int, within: int
) -> dict[TopicPartition, int | None]:
    """Return the first offset of each partition whose record will not have expired by then; None if all will have."""
    limits = {partition: retention.get(partition.topic, Retention()).milliseconds for partition, _ in places}
    return services.kafka.offsets.at_times({place: max(0, now + within - limit) for place, limit in limits.items() if limit is not None})


def _sizes(services: Services, partitions: set[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the size of each partition's largest replica in bytes; brokers that do not report sizes are skipped."""
    if not partitions:
        return {}
    brokers = [broker.id for broker in services.kafka.cluster().brokers]
    answers = services.kafka.log_dirs.describe_or_errors(brokers, partitions).values()
    known = sizes_by_replica(folder for answer in answers if not isinstance(answer, KopsError) for folder in answer)
    return {partition: max(sizes.values()) for partition, sizes in known.items()}

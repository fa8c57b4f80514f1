"""What a shorter retention deletes at once: it is the brokers that do it, soon after the setting is changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kops.core.errors import KopsError, Unreachable
from kops.core.models import Bounds, Topic, TopicPartition
from kops.core.sizes import size_text
from kops.core.times import to_milliseconds
from kops.core.topics.settings import POLICY, RETENTION, people_value
from kops.core.topics.warnings import Effective
from kops.operations.services import Services
from kops.operations.topics.needs import need_warnings, needs_below
from kops.operations.topics.select import places_of

RETENTION_SIZE = "retention.bytes"


def expiry_warnings(services: Services, topics: Sequence[Topic], pairs: Sequence[tuple[Effective, Effective]]) -> list[str]:
    """Return what goes with the new settings, and who has yet to read it.

    :param topics: as they are, in the order of ``pairs``
    :param pairs: each topic as it is and as it would be
    """
    by_time = {topic: limit for topic, pair in zip(topics, pairs, strict=True) if (limit := _shorter(RETENTION, *pair)) is not None}
    by_size = {topic: limit for topic, pair in zip(topics, pairs, strict=True) if (limit := _shorter(RETENTION_SIZE, *pair)) is not None}
    try:
        return [*_too_old(services, by_time), *_too_big(services, by_size)]
    except Unreachable:
        raise
    except KopsError as error:
        return [f"it could not be seen how many records the new retention deletes: {error.message}"]


def _shorter(name: str, before: Effective, after: Effective) -> int | None:
    """Return a limit that holds now and did not before, None when nothing more expires by it."""
    new, old = _limit(name, after), _limit(name, before)
    return new if new is not None and (old is None or new < old) else None


def _limit(name: str, topic: Effective) -> int | None:
    value = topic.settings.get(name, "")
    return int(value) if value.isdigit() and "delete" in topic.settings.get(POLICY, "").split(",") else None


def _too_old(services: Services, limits: Mapping[Topic, int]) -> Iterator[str]:
    cuts: dict[TopicPartition, tuple[Bounds, int]] = {}
    for limit in sorted(set(limits.values())):
        partitions = [place for topic, own in limits.items() if own == limit for place in places_of(topic)]
        bounds = services.kafka.offsets.bounds(partitions)
        first_kept = services.kafka.offsets.at_time(partitions, max(0, to_milliseconds(services.now()) - limit))
        for place in partitions:
            kept = first_kept[place]
            cuts[place] = bounds[place], bounds[place].log_end_offset if kept is None else kept
    for topic, limit in limits.items():
        held = sum(bounds.log_end_offset - bounds.log_start_offset for place, (bounds, _) in cuts.items() if place.topic == topic.name)
        going = sum(max(0, cut - bounds.log_start_offset) for place, (bounds, cut) in cuts.items() if place.topic == topic.name)
        if going:
            old = people_value(RETENTION, str(limit))
            yield f"{topic.name}: up to {going:,} of {held:,} records are older than retention.ms {old}: they are deleted for good soon"
    yield from need_warnings(needs_below(services, cuts))


def _too_big(services: Services, limits: Mapping[Topic, int]) -> Iterator[str]:
    leaders = {TopicPartition(topic.name, part.partition): part.leader for topic in limits for part in topic.partitions}
    asked = {leader for leader in leaders.values() if leader is not None}
    if not asked:
        return
    sizes: dict[TopicPartition, int] = {}
    for broker, answer in services.kafka.log_dirs.describe_or_errors(asked, leaders).items():
        if isinstance(answer, KopsError):
            raise answer
        sizes |= {
            one.partition: one.size for found in answer for one in found.replicas if leaders[one.partition] == broker and not one.future
        }
    for topic, limit in limits.items():
        large = {place: size for place in places_of(topic) if (size := sizes.get(place, 0)) > limit}
        if large:
            most = max(large, key=lambda place: large[place])
            over = f"{len(large)} of {len(topic.partitions)} partitions hold more than retention.bytes {limit} ({size_text(limit)})"
            yield f"{topic.name}: {over}, {most} has {size_text(large[most])}: their oldest segments are deleted for good soon"

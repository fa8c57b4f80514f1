"""What a change of topics affects: groups that read them, Kafka Streams applications, and records that are deleted.

What the principal may not see becomes a warning in the plan: a change must not fail because a group may not be described.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kops.core.errors import KopsError, answer_or_error
from kops.core.findings import names_text
from kops.core.models import Bounds, CommittedOffset, Group, Topic, TopicPartition
from kops.core.offsets.arithmetic import is_streams_metadata
from kops.core.sizes import size_text
from kops.core.streams.topics import owner_of
from kops.core.times import to_milliseconds
from kops.core.topics.names import STREAMS_SUFFIXES
from kops.core.topics.settings import POLICY, RETENTION, readable_value
from kops.core.topics.warnings import EffectiveSettings
from kops.operations.groups.matching import is_streams, why_incomplete
from kops.operations.services import Services

RETENTION_SIZE = "retention.bytes"
SHOWN = 5


@dataclass(frozen=True)
class Readers:
    """Groups by topic.

    :param committed: groups with committed offsets for the topic
    :param active: groups with members that read it now
    :param group_ids: all groups of the cluster
    :param unseen: why some groups could not be read: the first error; empty if all could be
    """

    committed: dict[str, list[str]]
    active: dict[str, list[str]]
    group_ids: tuple[str, ...] = ()
    unseen: str = ""

    def of(self, topic: str) -> set[str]:
        """Return the groups that have committed offsets for a topic, or read it now."""
        return {*self.committed.get(topic, ()), *self.active.get(topic, ())}


def readers_of(services: Services, topics: Collection[str]) -> Readers:
    """Find the groups that use some topics; what the principal may not see becomes a warning, not an error."""
    committed: dict[str, list[str]] = {topic: [] for topic in topics}
    active: dict[str, list[str]] = {topic: [] for topic in topics}
    groups = services.kafka.groups

    def ask() -> tuple[
        Sequence[Group], Mapping[str, Mapping[TopicPartition, CommittedOffset] | KopsError], Mapping[str, Group | KopsError]
    ]:
        listed = groups.listed(partial=True)
        offsets = groups.committed_or_errors([group.group_id for group in listed if group.type != "share"])
        return listed, offsets, groups.describe_or_errors([group.group_id for group in listed if group.state != "EMPTY"])

    answer = answer_or_error(ask)
    if isinstance(answer, KopsError):
        return Readers(committed, active, unseen=answer.message)
    listed, offsets, members = answer
    errors = [answer for answer in (why_incomplete(services), *offsets.values(), *members.values()) if isinstance(answer, KopsError)]
    for group_id, found in offsets.items():
        if not isinstance(found, KopsError):
            _note(committed, group_id, (partition.topic for partition in found))
    for group_id, group in members.items():
        if not isinstance(group, KopsError):
            _note(active, group_id, (partition.topic for partition in group.assigned))
    return Readers(committed, active, tuple(group.group_id for group in listed), errors[0].message if errors else "")


def reader_warnings(readers: Readers, topics: Sequence[str]) -> list[str]:
    texts = []
    for topic in topics:
        application = owner_of(topic, readers.group_ids)
        if application:
            texts.append(f"{topic} is an internal topic of the Kafka Streams application {application}: deleting it destroys its state")
        if readers.active.get(topic):
            texts.append(f"{topic} is being read by {group_names(readers.active[topic])}")
        if readers.committed.get(topic):
            texts.append(f"{topic} has committed offsets of {group_names(readers.committed[topic])}: they are deleted with it")
    if readers.unseen:
        texts.append(f"not every group could be asked whether it uses what is deleted: {readers.unseen}")
    return texts


def _note(into: dict[str, list[str]], group_id: str, topics: Iterable[str]) -> None:
    for topic in sorted(set(topics) & into.keys()):
        into[topic].append(group_id)


def group_names(group_ids: Sequence[str]) -> str:
    """Format the names of groups: ``groups a, b and 3 more``."""
    return f"group{'s' if len(group_ids) > 1 else ''} {names_text(group_ids)}"


def streams_uses(services: Services, topics: Collection[str], readers: Readers) -> dict[str, list[str]]:
    """Return per topic how Kafka Streams uses it, as far as that can be seen: phrases to follow the name of the topic.

    The group of an application is recognized by its type, by the assignor of its members, by internal topics that begin with its name, or
    by the metadata of its commits.
    """
    owners = {owner_of(name, readers.group_ids) for name in services.kafka.topics.names()}
    uses: dict[str, list[str]] = {topic: [] for topic in topics}
    readers_by_topic = {topic: readers.of(topic) for topic in topics}
    applications = _applications(services, {group for groups in readers_by_topic.values() for group in groups}, owners)
    for topic in topics:
        if topic.endswith(STREAMS_SUFFIXES):
            owner = owner_of(topic, readers.group_ids)
            what = f"the Kafka Streams application {owner}" if owner else "a Kafka Streams application, by its name"
            uses[topic].append(f"is an internal topic of {what}")
        uses[topic] += [
            f"is read by the Kafka Streams application {group}" for group in sorted(readers_by_topic[topic]) if group in applications
        ]
    return uses


def _applications(services: Services, group_ids: Collection[str], owners: Collection[str | None]) -> set[str]:
    found = {group_id for group_id in group_ids if group_id in owners}
    unsure = sorted(set(group_ids) - found)
    if not unsure:
        return found
    groups = services.kafka.groups
    answer = answer_or_error(lambda: (groups.describe_or_errors(unsure), groups.committed_or_errors(unsure)))
    if isinstance(answer, KopsError):
        return found  # readers_of already warns that not every group could be read
    described, committed = answer
    return found | {name for name in unsure if _is_streams(described[name]) or _stores_time(committed[name])}


def _is_streams(group: Group | KopsError) -> bool:
    return isinstance(group, Group) and is_streams(group)


def _stores_time(offsets: Mapping[TopicPartition, CommittedOffset] | KopsError) -> bool:
    return not isinstance(offsets, KopsError) and any(is_streams_metadata(committed.metadata) for committed in offsets.values())


@dataclass(frozen=True)
class Needs:
    """The groups that still need records.

    :param records: by topic and group, how many of the records the group has not read yet
    :param unseen: why not every group could be read; empty if all were
    """

    records: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unseen: str = ""


def needs_below(services: Services, cuts: Mapping[TopicPartition, tuple[Bounds, int]]) -> Needs:
    """Return the groups that have not read all records below some offsets.

    A group without a committed offset for a partition needs nothing there. What the principal may not see becomes a warning, not an error.

    :param cuts: by partition, its bounds and the offset below which records are deleted
    """
    cutting = {partition: cut for partition, cut in cuts.items() if cut[1] > cut[0].log_start_offset}
    if not cutting:
        return Needs()
    groups = services.kafka.groups
    listed = groups.listed(partial=True)
    answers = answer_or_error(lambda: groups.committed_or_errors([group.group_id for group in listed if group.type != "share"]))
    if isinstance(answers, KopsError):
        return Needs(unseen=answers.message)
    records: dict[str, dict[str, int]] = {}
    missing = why_incomplete(services)
    unseen = missing.message if missing else ""
    for group_id, found in answers.items():
        if isinstance(found, KopsError):
            unseen = unseen or found.message
            continue
        for topic, count in _needed(found, cutting).items():
            records.setdefault(topic, {})[group_id] = count
    return Needs(records, unseen)


def _needed(committed: Mapping[TopicPartition, CommittedOffset], cutting: Mapping[TopicPartition, tuple[Bounds, int]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for partition, where in committed.items():
        if partition not in cutting:
            continue
        bounds, cut = cutting[partition]
        left = cut - max(where.offset, bounds.log_start_offset)
        if left > 0:
            counts[partition.topic] = counts.get(partition.topic, 0) + left
    return counts


def need_warnings(needs: Needs) -> list[str]:
    """Return a sentence per group that has not read all records to be deleted, those that lose most first."""
    texts = []
    for topic, by_group in needs.records.items():
        ordered = sorted(by_group.items(), key=lambda one: (-one[1], one[0]))
        texts += [
            f"group {group_id} has yet to read {count:,} of the records to be deleted from {topic}" for group_id, count in ordered[:SHOWN]
        ]
        if len(ordered) > SHOWN:
            rest = sum(count for _, count in ordered[SHOWN:])
            texts.append(f"{len(ordered) - SHOWN} more groups have yet to read {rest:,} of the records to be deleted from {topic}")
    if needs.unseen:
        texts.append(f"not every group could be asked whether it still needs what is deleted: {needs.unseen}")
    return texts


def expiry_warnings(services: Services, topics: Sequence[Topic], pairs: Sequence[tuple[EffectiveSettings, EffectiveSettings]]) -> list[str]:
    """Return warnings about the records that new settings delete, and the groups that have not read them.

    :param topics: as they are, in the order of ``pairs``
    :param pairs: each topic before and after the change
    """
    by_time = {topic: limit for topic, pair in zip(topics, pairs, strict=True) if (limit := _shorter(RETENTION, *pair)) is not None}
    by_size = {topic: limit for topic, pair in zip(topics, pairs, strict=True) if (limit := _shorter(RETENTION_SIZE, *pair)) is not None}
    found = answer_or_error(lambda: [*_too_old(services, by_time), *_too_big(services, by_size)])
    return [f"how many records the new retention deletes is not known: {found.message}"] if isinstance(found, KopsError) else found


def _shorter(name: str, before: EffectiveSettings, after: EffectiveSettings) -> int | None:
    """Return the new value of a limit if it is stricter than before; None if no more records expire because of it."""
    new, old = _limit(name, after), _limit(name, before)
    return new if new is not None and (old is None or new < old) else None


def _limit(name: str, topic: EffectiveSettings) -> int | None:
    value = topic.settings.get(name, "")
    return int(value) if value.isdigit() and "delete" in topic.settings.get(POLICY, "").split(",") else None


def _too_old(services: Services, limits: Mapping[Topic, int]) -> Iterator[str]:
    now = to_milliseconds(services.now())
    times = {place: max(0, now - limit) for topic, limit in limits.items() for place in topic.places}
    bounds, first_kept = services.kafka.offsets.bounds(times), services.kafka.offsets.at_times(times)
    cuts: dict[TopicPartition, tuple[Bounds, int]] = {}
    for place, ends in bounds.items():
        kept = first_kept[place]
        cuts[place] = ends, ends.log_end_offset if kept is None else kept
    for topic, limit in limits.items():
        of_topic = [cut for place, cut in cuts.items() if place.topic == topic.name]
        held = sum(ends.offsets for ends, _ in of_topic)
        doomed = sum(max(0, cut - ends.log_start_offset) for ends, cut in of_topic)
        if doomed:
            old = readable_value(RETENTION, str(limit))
            yield f"{topic.name}: up to {doomed:,} of {held:,} records are older than retention.ms {old}: they are deleted for good soon"
    yield from need_warnings(needs_below(services, cuts))


def _too_big(services: Services, limits: Mapping[Topic, int]) -> Iterator[str]:
    leaders = {place: each.leader for topic in limits for place, each in zip(topic.places, topic.partitions, strict=True)}
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
        large = {place: size for place in topic.places if (size := sizes.get(place, 0)) > limit}
        if large:
            most = max(large, key=lambda place: large[place])
            over = f"{len(large)} of {len(topic.partitions)} partitions hold more than retention.bytes {limit} ({size_text(limit)})"
            yield f"{topic.name}: {over}, {most} has {size_text(large[most])}: their oldest segments are deleted for good soon"

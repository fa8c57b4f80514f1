"""The topics that records go to: they exist, are large enough, and accept records as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.durations import duration_text
from kops.core.errors import Refused
from kops.core.findings import counted
from kops.core.models import Bounds, Setting, TopicPartition, value_of
from kops.core.topics.names import no_topics_text
from kops.operations.replay.request import BY_KEY, KEEP, ReplayRequest
from kops.operations.services import Services

_TIMES, _LARGEST, _POLICY, _RETENTION = "message.timestamp.type", "max.message.bytes", "cleanup.policy", "retention.ms"


@dataclass(frozen=True)
class Targets:
    """The target topics, by name.

    :param counts: number of partitions of each
    :param ids: topic ids
    :param ends: the end of each partition
    :param own: they have no records yet
    """

    counts: Mapping[str, int]
    ids: Mapping[str, str | None]
    ends: Mapping[TopicPartition, int]
    settings: Mapping[str, Mapping[str, Setting]]
    own: bool

    def setting(self, topic: str, name: str) -> str:
        return value_of(self.settings[topic], name)

    @property
    def largest(self) -> int:
        """Bytes of the largest batch that all of them accept; 0 where there are none."""
        return min((int(self.setting(topic, _LARGEST) or 1_048_588) for topic in self.counts), default=0)

    @property
    def appends_times(self) -> list[str]:
        return [topic for topic in self.counts if self.setting(topic, _TIMES) == "LogAppendTime"]

    @property
    def compacted(self) -> list[str]:
        return [topic for topic in self.counts if "compact" in self.setting(topic, _POLICY)]

    @property
    def no_undo(self) -> str:
        """Why records that are sent there cannot be undone; empty when they can."""
        only_compacted = [topic for topic in self.counts if self.setting(topic, _POLICY) == "compact"]
        if only_compacted:
            return f"{only_compacted[0]} is compacted, and brokers delete no records there"
        return "" if self.own else f"{' or '.join(self.counts)} had records before"

    def retention(self, topic: str) -> int | None:
        """Return how long records are kept, in milliseconds; None for ever."""
        milliseconds = int(self.setting(topic, _RETENTION) or -1)
        return milliseconds if milliseconds >= 0 and "delete" in self.setting(topic, _POLICY) else None


def targets_of(services: Services, topics: Sequence[str], request: ReplayRequest) -> Targets:
    """Describe the topics as targets.

    :raises Refused: naming all that do not exist, or one that would set its own timestamps
    """
    found = services.kafka.topics.existing(topics)
    missing = sorted(set(topics) - set(found))
    if missing:
        make = f"`kops topics create {missing[0]}`" if len(missing) == 1 else "`kops topics create NAME`, or `kops topics apply FILE`"
        raise Refused(
            f"{no_topics_text(missing)}: nothing was sent",
            hint=f"make {'it' if len(missing) == 1 else 'them'} first: {make}"
            + ("" if request.target else "; or leave out with --where what goes there"),
            missing=missing,
        )
    places = [place for topic in found.values() for place in topic.places]
    bounds: Mapping[TopicPartition, Bounds] = services.kafka.offsets.bounds(places)
    empty = all(bound.empty for bound in bounds.values())
    counts = {name: len(topic.partitions) for name, topic in sorted(found.items())}
    ids = {name: topic.topic_id for name, topic in found.items()}
    ends = {place: bound.log_end_offset for place, bound in bounds.items()}
    targets = Targets(counts, ids, ends, services.kafka.topics.settings(found), empty)
    if targets.appends_times and not request.accept_new_times:
        raise Refused(
            f"{', '.join(targets.appends_times)} has {_TIMES}=LogAppendTime: every record would get the time of its appending",
            hint="alter it to CreateTime, or --accept-new-timestamps",
        )
    return targets


def placement(request: ReplayRequest, partitions: int, targets: Targets, *, changed: bool) -> tuple[str, str]:
    """Return how the partition of a record is chosen (``keep``, ``key`` or an expression), and a sentence about it.

    :param partitions: of the source
    :param changed: keys may differ from those before
    """
    counts = set(targets.counts.values())
    fitting = all(count >= partitions for count in counts)
    chosen = request.partition_by
    if chosen == KEEP and not fitting:
        few = min(targets.counts, key=lambda name: targets.counts[name])
        raise Refused(
            f"{few} has {counted(targets.counts[few], 'partition')}, and {request.source} has {partitions}: partitions cannot be kept",
            hint=f"--partition-by key, or an expression such as partition % {targets.counts[few]}",
        )
    if chosen is None:
        chosen = KEEP if counts == {partitions} and not changed else BY_KEY
    if chosen == KEEP:
        return chosen, "each record keeps its partition, and the order within it"
    if chosen == BY_KEY:
        return chosen, "partitions by murmur2 of the key, without a key by the source's; what comes of one source partition keeps its order"
    return chosen, f"partitions by {chosen}; what comes of one source partition keeps its order"


def guard_of(targets: Targets) -> dict[str, Any]:
    """Return the state of the targets that must not change before the replay begins."""
    ends = {str(place): end for place, end in targets.ends.items()} if targets.own else {}
    return {"topics": dict(targets.ids), "partitions": dict(targets.counts), "empty_ends": ends}


def warnings_of(targets: Targets, has_older: Callable[[int], bool]) -> list[str]:
    """Return what the targets will do with the records that their writer may not expect.

    :param has_older: whether some of the records are older than a number of milliseconds
    """
    warnings = []
    for topic in targets.counts:
        kept = targets.retention(topic)
        if kept is not None and has_older(kept):
            warnings.append(
                f"{topic} keeps records for {duration_text(kept)}, and some of these are older: brokers may delete them at once"
            )
    if targets.appends_times:
        warnings.append(f"{', '.join(targets.appends_times)} gives each record the time of its appending")
    if targets.compacted:
        warnings.append(
            f"{', '.join(targets.compacted)} is compacted: records without a key are refused, and older ones of a key disappear"
        )
    return warnings

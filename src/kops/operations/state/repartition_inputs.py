"""What the topics that an application reads need before it can have another number of partitions. Nothing is changed here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kops.core.errors import Refused, UndecodableRecord, UsageProblem
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.murmur2 import partition_for
from kops.core.records.models import OffsetRange
from kops.core.statefile import StateFile
from kops.core.topics.names import topics_not_found
from kops.formats.streams import offset_metadata
from kops.formats.streams.offset_metadata import UNKNOWN_TIME, OffsetMetadata
from kops.operations.services import Services
from kops.operations.state.snapshot_topics import unprocessed


@dataclass(frozen=True)
class InputChoice:
    """What the operator decided about input topics.

    :param grow: add partitions to those that have fewer
    :param keep: leave them: the program sets the partitions of its repartition topics itself
    :param instead: topic -> the one that the application reads from now on
    """

    grow: bool = False
    keep: bool = False
    instead: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Inputs:
    """What becomes of the input topics.

    :param grow: topic -> its new number of partitions
    :param commits: offsets for partitions that had none
    :param kept: those that have another number of partitions, and keep it
    """

    grow: Mapping[str, int]
    commits: Mapping[TopicPartition, CommittedOffset]
    warnings: tuple[str, ...]
    kept: frozenset[str]


def parse_replaced_inputs(texts: Sequence[str]) -> dict[str, str]:
    """Return the topics of ``--input OLD=NEW``.

    :raises UsageProblem: when one does not name two topics
    """
    found = {}
    for text in texts:
        old, equals, new = text.partition("=")
        if not (old and equals and new):
            raise UsageProblem(f"--input {text} does not name two topics", hint="write it like --input orders=orders-12")
        found[old] = new
    return found


def plan_inputs(
    services: Services,
    state_file: StateFile,
    partitions: int,
    choice: InputChoice,
    *,
    keyed: Mapping[str, bool],
    committed: Mapping[TopicPartition, CommittedOffset],
) -> Inputs:
    """Decide what becomes of each input topic.

    A store without a new key takes its tasks from its input, one with a new key from its repartition topic; that has as many
    partitions as the input unless the program says otherwise (``RepartitionTopics``).

    :param keyed: input topics, and whether the keys of their records decide who has their state
    :raises Refused: when an input does not fit and nothing was decided; or holds records for tasks that will not be theirs
    """
    unknown = sorted(choice.instead.keys() - keyed.keys())
    if unknown:
        raise UsageProblem(f"{unknown[0]} is not an input topic of {state_file.path}", hint=f"input topics: {', '.join(sorted(keyed))}")
    sizes = _sizes(services, [*keyed, *choice.instead.values()])
    isolation = state_file.isolation
    grow: dict[str, int] = {}
    commits: dict[TopicPartition, CommittedOffset] = {}
    warnings: list[str] = []
    kept = set[str]()
    for topic, is_keyed in sorted(keyed.items()):
        size = sizes[topic]
        everywhere = [TopicPartition(topic, number) for number in range(size)]
        metadata = emissions_of(found for at, found in committed.items() if at.topic == topic)
        left = unprocessed(services, everywhere, committed, isolation=isolation)
        if topic in choice.instead:
            new = choice.instead[topic]
            _refuse_left(topic, left, f"{new} is read instead of it")
            if sizes[new] != partitions:
                raise Refused(f"{new} has {sizes[new]} partitions, not {partitions}", hint="name a topic that has as many")
            bounds = services.kafka.offsets.bounds(TopicPartition(new, number) for number in range(partitions))
            commits |= {at: CommittedOffset(bound.log_start_offset, metadata) for at, bound in bounds.items() if at not in committed}
            warnings.append(
                f"{topic} is no longer read: before the application starts, let producers write to {new} and the program read it"
            )
        elif size == partitions:
            if is_keyed:
                _refuse_misplaced(services, left, partitions, isolation)
            starts = services.kafka.offsets.bounds([at for at in everywhere if at not in committed])
            commits |= {at: CommittedOffset(bound.log_start_offset, metadata) for at, bound in starts.items()}
        elif choice.grow and size < partitions:
            if is_keyed:
                _refuse_left(topic, left, "its keys move to other partitions")
            grow[topic] = partitions
            commits |= {TopicPartition(topic, number): CommittedOffset(0, metadata) for number in range(size, partitions)}
            warnings.append(_growing(topic, size, partitions, is_keyed=is_keyed))
        elif choice.keep and not is_keyed:
            kept.add(topic)
        else:
            raise _unfit(topic, size, partitions, is_keyed=is_keyed)
    return Inputs(grow, commits, tuple(warnings), frozenset(kept))


def keyed_inputs(state_file: StateFile) -> dict[str, bool]:
    """Return the input topics, and whether a store takes the keys of their records."""
    keyed: dict[str, bool] = {}
    for store in state_file.stores:
        for source in store.inputs:
            keyed[source.topic] = keyed.get(source.topic, False) or not store.moves
    return keyed


def _sizes(services: Services, topics: Sequence[str]) -> dict[str, int]:
    found = {name: len(topic.partitions) for name, topic in services.kafka.topics.existing(topics).items()}
    for topic in topics:
        if topic not in found:
            hint = f"make it: kops topics create {topic} --like TOPIC --partitions N"
            raise topics_not_found([topic], hint=hint)
    return found


def _refuse_left(topic: str, left: Mapping[TopicPartition, tuple[int, int]], why: str) -> None:
    if left:
        partition, (start, end) = next(iter(left.items()))
        raise Refused(
            f"{partition} has records from offset {start} to {end} that were not processed, and {why}",
            hint=f"stop the producers of {topic}, start the application until it has caught up, and stop it again",
        )


def _refuse_misplaced(services: Services, left: Mapping[TopicPartition, tuple[int, int]], partitions: int, isolation: str) -> None:
    """Refuse unprocessed records from before partitions were added to a topic: their keys' state will be in another task."""
    for partition, (start, end) in left.items():
        for batch in services.kafka.records.read({partition: OffsetRange(start, end)}, isolation=isolation):
            for record in batch:
                if record.key is not None and partition_for(record.key, partitions) != record.partition:
                    raise Refused(
                        f"{partition} has a record at offset {record.offset} that was not processed, and whose key belongs to another of "
                        f"{partitions} partitions: the task that reads it will not have its state",
                        hint="produce such records again with the default partitioner, and `kops offsets seek` over them",
                    )


def _growing(topic: str, size: int, partitions: int, *, is_keyed: bool) -> str:
    keys = "; stop its producers now, and start them again when this is done: until they know the new partitions, " if is_keyed else ""
    consequence = f"{keys}they write keys where their state is no longer" if is_keyed else "; keys move for its other readers too"
    return f"{topic} grows from {size} to {partitions} partitions, which cannot be undone{consequence}"


def _unfit(topic: str, size: int, partitions: int, *, is_keyed: bool) -> Refused:
    ways = [f"--input {topic}=NEW reads another topic that has {partitions}"]
    if size < partitions:
        ways.insert(0, "--grow-inputs adds partitions to it, for good")
    if not is_keyed:
        ways.append("--keep-inputs leaves it, where the program says Repartitioned.withNumberOfPartitions")
    return Refused(
        f"the input {topic} has {size} partitions, and the application's tasks follow it: {partitions} are needed", hint="; ".join(ways)
    )


def emissions_of(committed: Iterable[CommittedOffset]) -> str:
    """Return metadata for partitions that take over from others: how far stores that emit on window close have emitted.

    Each task restores the greatest time of its partitions. If several are merged, the least is taken: a window that closed in between is
    sent again rather than never. If a partition never emitted, it is unknown.

    :param committed: of the partitions before
    """
    found = [_emissions(one) for one in committed]
    names = set.intersection(*(set(each) for each in found)) if found else set()
    if not names:
        return ""
    return offset_metadata.encode(OffsetMetadata(UNKNOWN_TIME, {name: min(each[name] for each in found) for name in sorted(names)}))


def _emissions(committed: CommittedOffset) -> dict[str, int]:
    try:
        return dict(offset_metadata.decode(committed.metadata or "").last_emissions_ms)
    except UndecodableRecord:
        return {}

"""Compares moves of groups with the cluster: before offsets are committed, and when they are read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from kops.core.errors import GroupActive, KopsError, NotFound, Refused, StateMoved, TimedOut
from kops.core.findings import counted, names_text
from kops.core.models import Bounds, CommittedOffset, Group, GroupOffsets, TopicPartition
from kops.core.offsets.arithmetic import is_streams_metadata
from kops.core.offsets.moves import ABSENT, Column, GroupMoves, TopicMoves
from kops.core.plan import ItemResult, Status
from kops.operations.offsets.items import not_as_written
from kops.operations.services import Services

_WARNED = 8
"""Partitions that are warned about one by one."""

Outcome = dict[TopicPartition, KopsError] | KopsError
"""The partitions of a group that could not be committed, with their errors; or one error if none could."""


def refusal_of(group: GroupMoves) -> GroupActive:
    return GroupActive(
        f"group {group.group} was left alone: it {group.left}", hint="stop its consumers, then run it again", group=group.group
    )


def moved_since(group: GroupMoves, found: GroupOffsets) -> KopsError | None:
    """Return an error if the commits of a group differ from those that the plan was computed from."""
    for topic in group.topics:
        now = found.offsets.get(topic.topic, {})
        if tuple(map(now.get, topic.partitions)) != topic.before.offsets and any(now.get(p) != before for p, before, _ in topic.pairs()):
            return state_moved(group.group)
    return None


def results_of(group: GroupMoves, outcome: Outcome) -> Iterator[ItemResult]:
    """Yield a result per partition to be moved, and one for the group if the plan skips it."""
    if isinstance(outcome, KopsError):
        error = outcome.as_json()
        status = Status.UNKNOWN if outcome.slug == TimedOut.slug else Status.FAILED
        if group.left:
            yield ItemResult(group.group, status, error=error)
        for topic in group.topics:
            prefix = group.prefix(topic.topic)
            yield from (ItemResult(f"{prefix}{partition}", status, error=error) for partition, _, _ in topic.pairs())
        return
    for topic in group.topics:
        prefix = group.prefix(topic.topic)
        if not outcome:
            yield from map(ItemResult._make, [(f"{prefix}{partition}", Status.DONE, None, after) for partition, _, after in topic.pairs()])
            continue
        for partition, _, after in topic.pairs():
            failure = outcome.get(TopicPartition(topic.topic, partition))
            status = Status.DONE if failure is None else Status.UNKNOWN if isinstance(failure, TimedOut) else Status.FAILED
            yield ItemResult(f"{prefix}{partition}", status, failure.as_json() if failure else None, None if failure else after)


def as_written(group: GroupMoves, found: GroupOffsets | KopsError) -> bool:
    """Whether all is as planned, partitions that do not move included; if not, ``wrong_results`` looks at those that move."""
    if isinstance(found, KopsError):
        return False
    now = ((topic.after, current_column(found, topic.topic, topic.partitions)) for topic in group.topics)
    return all(after.offsets == column.offsets and after.metadata == column.metadata for after, column in now)


def wrong_results(group: GroupMoves, found: GroupOffsets | KopsError) -> Iterator[ItemResult]:
    for topic in group.topics:
        prefix = group.prefix(topic.topic)
        for at in topic.places():
            partition = topic.partitions[at]
            target = f"{prefix}{partition}"
            if isinstance(found, KopsError):
                yield ItemResult(target, Status.UNKNOWN, error=found.as_json())
                continue
            offset = found.offsets.get(topic.topic, {}).get(partition)
            text = found.metadata.get(topic.topic, {}).get(partition, "")
            actual = None if offset is None else CommittedOffset(offset, text)
            error = not_as_written(target, topic.after.committed(at, partition), actual)
            if error is not None:
                yield ItemResult(target, Status.FAILED, error.as_json(), offset)


def strayed_partitions(group: GroupMoves, found: GroupOffsets) -> list[TopicPartition]:
    """Return the partitions whose offset is neither the previous nor the planned one."""
    return [
        TopicPartition(topic.topic, partition)
        for topic in group.topics
        for partition, before, after in topic.pairs()
        if found.offsets.get(topic.topic, {}).get(partition) not in (before, after)
    ]


def remaining_moves(topic: TopicMoves, found: GroupOffsets) -> TopicMoves:
    """Return the moves that an interrupted plan has left to do: from the current commits."""
    now = current_column(found, topic.topic, topic.partitions)
    return replace(topic, before=now, rewritten=_with_other_metadata(topic, now, topic.after))


def _with_other_metadata(topic: TopicMoves, now: Column, wanted: Column) -> frozenset[int]:
    """Return the partitions, of those whose metadata the plan changes, that do not have the wanted metadata now."""
    return frozenset(
        partition
        for partition in topic.rewritten
        if (text := wanted.metadata.get(partition, "")) is not None and text != now.metadata.get(partition, "")
    )


def state_moved(name: str) -> StateMoved:
    return StateMoved(
        f"group {name} changed since the plan was made", hint="run the command again to plan from what is there now", group=name
    )


def is_plain(group: GroupMoves) -> bool:
    """Whether only offsets are written: no metadata, leader epochs or deletions."""
    return all(not topic.after.metadata and not topic.after.epochs and None not in topic.after.offsets for topic in group.topics)


def has_streams_metadata(group: GroupMoves) -> bool:
    """Whether Kafka Streams committed any of the offsets to be moved."""
    return any(is_streams_metadata(text) for topic in group.topics for text in topic.before.metadata.values())


def moved_back(group: GroupMoves, found: GroupOffsets, not_done: Set[str]) -> tuple[tuple[TopicMoves, ...], list[TopicPartition]]:
    """Return the moves that restore a group's previous offsets, and the partitions that somebody else has moved since.

    A partition that still has its previous offset was not moved, or is back already; one with neither that nor the planned one has strayed.

    :param found: its current commits
    :param not_done: targets that the plan did not move
    """
    topics, strayed = [], []
    for topic in group.topics:
        prefix = group.prefix(topic.topic)
        done = topic.some([at for at in topic.places() if f"{prefix}{topic.partitions[at]}" not in not_done])
        if not done.partitions:
            continue
        now = current_column(found, topic.topic, done.partitions)
        places = zip(done.partitions, now.offsets, done.before.offsets, done.after.offsets, strict=True)
        strayed += [TopicPartition(topic.topic, partition) for partition, offset, before, after in places if offset not in (before, after)]
        rewritten = _with_other_metadata(done, now, done.before)
        reasons = tuple(
            "had no commit" if before is None else "its metadata is restored" if before == offset and partition in rewritten else ""
            for partition, offset, before in zip(done.partitions, now.offsets, done.before.offsets, strict=True)
        )
        topics.append(TopicMoves(topic.topic, done.partitions, now, done.before, reasons, rewritten))
    return tuple(topics), strayed


def current_column(found: GroupOffsets, topic: str, partitions: tuple[int, ...]) -> Column:
    offsets = tuple(map(found.offsets.get(topic, {}).get, partitions))
    known = found.epochs.get(topic)
    epochs = tuple(map(known.get, partitions)) if known else ()
    texts = found.metadata.get(topic)
    return Column(offsets, epochs, {partition: texts[partition] for partition in partitions if partition in texts} if texts else {})


def group_or_none(services: Services, group_id: str) -> Group | None:
    try:
        return services.kafka.groups.describe([group_id])[group_id]
    except NotFound:
        return None


def state_of(group: Group | None) -> str:
    """Return the state of a group for a plan; ABSENT if it does not exist."""
    return ABSENT if group is None else group.state


def states_now(services: Services, names: Sequence[str]) -> dict[str, Group | None]:
    """Return the current groups: a single one with its members, many as listed, without members."""
    if len(names) == 1:
        return {names[0]: group_or_none(services, names[0])}
    return {group.group_id: group for group in services.kafka.groups.listed()}


def moved_since_planned(services: Services, groups: Iterable[GroupMoves]) -> dict[str, KopsError]:
    """Return an error per group whose commits differ from those that the plan was computed from, or cannot be read."""
    planned = {group.group: group for group in groups}
    found = services.kafka.groups.read_offsets(planned, stable=True)
    problems = {name: one if isinstance(one, KopsError) else moved_since(planned[name], one) for name, one in found}
    return {name: problem for name, problem in problems.items() if problem is not None}


def refuse_outside_log(services: Services, groups: Sequence[GroupMoves]) -> None:
    """Refuse a plan with an offset that the log no longer has.

    :raises StateMoved: naming the first
    """
    columns = {(topic.topic, topic.partitions, topic.after.offsets): topic for group in groups for topic in group.topics}
    places = {TopicPartition(topic.topic, partition) for topic in columns.values() for partition in topic.partitions}
    bounds = services.kafka.offsets.bounds_or_errors(places)
    suspect = {key for key, topic in columns.items() if not _fits(topic, bounds)}
    for group in groups:
        for topic in group.topics:
            if suspect and (topic.topic, topic.partitions, topic.after.offsets) in suspect:
                for partition, _, after in topic.pairs():
                    _refuse_outside(TopicPartition(topic.topic, partition), after, bounds)


def _fits(topic: TopicMoves, bounds: Mapping[TopicPartition, Bounds | KopsError]) -> bool:
    """Whether the log has every offset, including those that are not written."""
    for partition, offset in zip(topic.partitions, topic.after.offsets, strict=True):
        found = bounds[TopicPartition(topic.topic, partition)]
        if isinstance(found, KopsError) or offset is None or not found.log_start_offset <= offset <= found.log_end_offset:
            return False
    return True


def _refuse_outside(partition: TopicPartition, offset: int | None, bounds: Mapping[TopicPartition, Bounds | KopsError]) -> None:
    """Refuse one offset that the log no longer has.

    :raises StateMoved: when it is outside of the log, or the partition no longer exists
    """
    found = bounds[partition]
    if offset is None:
        return
    if isinstance(found, NotFound):
        raise StateMoved(f"{partition}: {found.message}", hint="run the command again to plan from what is there now")
    if isinstance(found, KopsError):
        raise found
    if not found.log_start_offset <= offset <= found.log_end_offset:
        has = f"{found.log_start_offset} to {found.log_end_offset}"
        raise StateMoved(f"{partition} no longer has offset {offset}, it has {has}", hint="run the command again")


def passed_over(groups: Sequence[GroupMoves], bounds: Mapping[TopicPartition, Bounds | KopsError]) -> tuple[str, ...]:
    """Return how many offsets moves skip and go back over, in a sentence: only those that the logs have.

    :param bounds: of the partitions
    """
    pairs = [
        ((topic.topic, partition), before, after)
        for group in groups
        for topic in group.topics
        for partition, before, after in topic.pairs()
        if before is not None and after is not None
    ]
    logs = {(at.topic, at.partition): found for at, found in bounds.items() if isinstance(found, Bounds)}
    skipped = again = unknown = 0
    for at, before, after in pairs:
        log = logs.get(at)
        if log is None:
            unknown += 1
            continue
        low, high = log.log_start_offset, log.log_end_offset
        delta = min(max(after, low), high) - min(max(before, low), high)
        if delta > 0:
            skipped += delta
        else:
            again -= delta
    said = [f"skips {counted(skipped, 'unread offset')}"] if skipped else []
    said += [f"reads {counted(again, 'offset')} again"] if again else []
    said += [f"how many in {counted(unknown, 'partition')} is not known, since the log cannot be read"] if unknown else []
    return (", ".join(said),) if said else ()


def outside_log(services: Services, groups: Sequence[GroupMoves]) -> list[str]:
    """Return a warning per partition whose log no longer has an offset to be committed, and one for all after the first few.

    :raises Refused: when a plan of one group commits for a partition whose bounds cannot be read, for example because it no longer exists
    """
    offsets: dict[TopicPartition, set[int]] = {}
    for topic in (topic for group in groups for topic in group.topics):
        for partition, _, after in topic.pairs():
            if after is not None:
                offsets.setdefault(TopicPartition(topic.topic, partition), set()).add(after)
    warnings = []
    for place, bounds in services.kafka.offsets.bounds_or_errors(offsets).items():
        if isinstance(bounds, KopsError):
            if len(groups) == 1:
                raise Refused(f"{place}: {bounds.message}", hint="offsets can no longer be committed for it")
            warnings.append(f"{place}: {bounds.message}: its offsets cannot be committed")
            continue
        outside = [str(offset) for offset in sorted(offsets[place]) if not bounds.log_start_offset <= offset <= bounds.log_end_offset]
        if outside:
            has = f"{bounds.log_start_offset} to {bounds.log_end_offset}"
            warnings.append(f"{place}: the log has {has}, not {names_text(outside)}: consumers will follow auto.offset.reset")
    if (more := len(warnings) - _WARNED) > 1:
        return [*warnings[:_WARNED], f"the same is true of {counted(more, 'more partition')}"]
    return warnings

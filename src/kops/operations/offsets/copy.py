"""``kops offsets copy``: copies the committed offsets of a group to another group, other topics, or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kops.core.errors import KopsError, NotFound, Refused, UsageProblem
from kops.core.models import READ_UNCOMMITTED, Bounds, CommittedOffset, TopicPartition
from kops.core.offsets.arithmetic import NewOffset, Strategy, ToLatest, ToOffset, ToTime, resolve
from kops.core.offsets.moves import group_moves
from kops.core.plan import Plan
from kops.operations.groups.matching import find_group
from kops.operations.offsets.checks import state_of
from kops.operations.offsets.choose import committed_now, ready_group
from kops.operations.offsets.landings import by_strategy
from kops.operations.offsets.move import plan_moves
from kops.operations.offsets.rules import Rule, included, narrowing
from kops.operations.services import Services

BY_OFFSET, BY_TIME = "offset", "time"


def plan_copy(
    services: Services,
    source: str,
    target: str,
    *,
    topics: Sequence[str],
    renames: Mapping[str, str],
    by: str,
    new_group: bool,
    wait_empty: str | None,
) -> Plan:
    """Plan to copy the committed offsets of one group to another.

    A commit that is copied by offset to the same partition keeps its metadata and leader epoch: it is the same commit.

    :param topics: only these partitions of the source: ``orders``, ``orders:0,3-5``, ``orders-*``
    :param renames: for topics of the source, the topics to commit for instead, such as their copies made by a mirror
    :param by: ``offset``, or ``time``: the first record at or after the timestamp of the record that the source would read next
    :raises Refused: when the target has members or does not exist, or the source has no such commits
    """
    if source == target and not renames:
        raise UsageProblem("a group cannot be copied to itself", hint="name another group, or --rename TOPIC=OTHER")
    narrow = narrowing(topics or sorted(renames))
    try:
        find_group(services, source)
    except NotFound as missing:
        raise Refused(missing.message, hint=missing.hint, group=source) from missing
    commits = _chosen(services, source, topics, narrow, renames)
    group, current = ready_group(services, target, new_group=new_group, wait_empty=wait_empty)
    places = {partition: TopicPartition(renames.get(partition.topic, partition.topic), partition.partition) for partition in commits}
    _refuse_twice(places)
    strategies = _by_time(services, commits) if by == BY_TIME else {p: ToOffset(commit.offset) for p, commit in commits.items()}
    bounds = services.kafka.offsets.bounds_or_errors(places.values())
    there = {place: ends for place, ends in bounds.items() if isinstance(ends, Bounds)}
    times, warnings = by_strategy(services, {places[p]: strategy for p, strategy in strategies.items()}, there)
    wanted: dict[TopicPartition, tuple[CommittedOffset | None, str]] = {}
    unchanged: dict[TopicPartition, str] = {}
    for partition, committed in commits.items():
        place = places[partition]
        ends = bounds[place]
        if isinstance(ends, NotFound):
            unchanged[place] = f"does not exist; {source} stands at {committed.offset} in {partition}"
            continue
        if isinstance(ends, KopsError):
            raise ends
        new = resolve(strategies[partition], None, ends, times.get(place))
        same = place == partition and by == BY_OFFSET and new.offset == committed.offset
        wanted[place] = (committed if same else CommittedOffset(new.offset), _reason(new, partition, place, committed.offset))
    if not wanted:
        missing_place = min(unchanged)
        raise Refused(f"there is no partition {missing_place}", hint="`kops topics create` makes topics", topic=missing_place.topic)
    summary = f"copy offsets of group {source} to {f'group {target}' if source != target else ', '.join(sorted(set(renames.values())))}"
    kept = {place: (current.get(place), reason) for place, reason in unchanged.items()}
    moves = group_moves(target, state_of(group), {**kept, **wanted}, current)
    return plan_moves(services, [moves], summary=summary, warnings=warnings)


def parse_renames(texts: Sequence[str]) -> dict[str, str]:
    """Parse the options ``--rename OLD=NEW``.

    :raises UsageProblem: when one is invalid, or a topic is named twice
    """
    renames: dict[str, str] = {}
    for text in texts:
        old, equals, new = text.partition("=")
        if not (equals and old and new) or old in renames:
            what = "is named twice" if old in renames else "names no two topics"
            raise UsageProblem(f"--rename {text} {what}", hint="write it like --rename orders=mirror.orders")
        renames[old] = new
    return renames


def _chosen(
    services: Services, source: str, topics: Sequence[str], narrow: Sequence[Rule], renames: Mapping[str, str]
) -> dict[TopicPartition, CommittedOffset]:
    commits = committed_now(services, source)
    chosen = {partition: committed for partition, committed in commits.items() if included(partition, narrow)}
    unknown = sorted(renames.keys() - {partition.topic for partition in chosen})
    if not chosen or unknown:
        what = f" of {unknown[0]}" if unknown else f" of {', '.join(topics)}" if topics else ""
        raise Refused(
            f"group {source} shows no committed offsets{what}", hint=f"`kops offsets show {source}` shows what it has", group=source
        )
    return chosen


def _refuse_twice(places: Mapping[TopicPartition, TopicPartition]) -> None:
    seen: dict[TopicPartition, TopicPartition] = {}
    for partition, place in places.items():
        if place in seen:
            raise UsageProblem(f"{place} would get the offsets of {seen[place]} and {partition}", hint="name the topics with --topic")
        seen[place] = partition


def _by_time(services: Services, commits: Mapping[TopicPartition, CommittedOffset]) -> dict[TopicPartition, Strategy]:
    """Return per partition the timestamp of the record that the source would read next; the log end if there is none."""
    bounds = services.kafka.offsets.bounds(commits)
    starts = {partition: max(found.offset, bounds[partition].log_start_offset) for partition, found in commits.items()}
    unread = {(p, start) for p, start in starts.items() if start < bounds[p].log_end_offset}
    records = services.kafka.groups.first_records(unread, isolation=READ_UNCOMMITTED)
    strategies: dict[TopicPartition, Strategy] = {}
    for partition, start in starts.items():
        record = records.get((partition, start))
        if isinstance(record, KopsError):
            raise record
        if record is None:
            strategies[partition] = ToLatest()
        elif record.timestamp is None:
            raise Refused(f"the record at {partition} offset {record.offset} has no time", hint="copy by offset", topic=partition.topic)
        else:
            strategies[partition] = ToTime(record.timestamp)
    return strategies


def _reason(new: NewOffset, partition: TopicPartition, place: TopicPartition, offset: int) -> str:
    origin = f"{partition} is at {offset}" if place != partition else ""
    return "; ".join(text for text in (origin, new.reason) if text)

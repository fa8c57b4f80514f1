"""The lag of groups: many groups per request, and the end of each partition read once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import le, sub
from typing import Any

from kops.core.blocks import Block
from kops.core.errors import KopsError, NotFound, Refused
from kops.core.findings import counted
from kops.core.groups.lag import age_text
from kops.core.models import READ_COMMITTED, READ_UNCOMMITTED, Bounds, CommittedOffset, Group, GroupOffsets, TopicPartition
from kops.core.offsets.arithmetic import lag_of
from kops.core.rights import reason
from kops.core.selection import is_glob
from kops.operations.groups.details import Details, details_of
from kops.operations.groups.matching import WITH_OFFSETS, matching_listed
from kops.operations.services import Services

Row = dict[str, Any]

_NUMBERS = (
    "partition",
    "committed",
    "log_start_offset",
    "log_end_offset",
    "last_stable_offset",
    "lag",
    "time_lag_ms",
    "first_unread",
    "note",
)
_FACTS = (*_NUMBERS, "transaction", "expires")
"""The keys whose values are the same for every group with the same committed offset."""
_KEYS = ("group", "topic", *_NUMBERS, "client_id", "state", "transaction", "expires")
"""The keys of a row, in order."""


@dataclass(frozen=True, slots=True)
class _Ends:
    """The bounds of a topic's partitions.

    :param stable: the last stable offsets; None where they were not requested
    """

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    stable: tuple[int | None, ...]


class LagRows:
    """Creates rows, and caches what the rows of many groups have in common.

    :param bounds: log start and high watermark, or why they are not known
    :param isolation: by which lag is counted
    """

    def __init__(self, bounds: Mapping[TopicPartition, Bounds | KopsError], details: Details, isolation: str) -> None:
        self._bounds = bounds
        self._details = details
        self._to_stable = isolation == READ_COMMITTED
        self._ends: dict[tuple[str, tuple[int, ...]], _Ends | None] = {}
        self._shown: dict[str, dict[tuple[int, int | None], tuple[Any, ...]]] = {}

    def of(self, group: Group, committed: GroupOffsets) -> Iterator[Block]:
        """Yield the rows of a group, one block per topic."""
        owners: dict[str, dict[int, str]] = {}
        for member in group.members:
            for partition in member.assignment:
                owners.setdefault(partition.topic, {})[partition.partition] = member.client_id
        for topic, partitions, offsets in committed.columns():
            while owners and (first := min(owners)) < topic:
                yield self._single(group, first, {}, owners.pop(first))
            owned = owners.pop(topic, None)
            block = None if owned else self._plain(group, topic, partitions, offsets)
            yield block or self._single(group, topic, dict(zip(partitions, offsets, strict=True)), owned or {})
        for topic in sorted(owners):
            yield self._single(group, topic, {}, owners[topic])

    def _plain(self, group: Group, topic: str, partitions: tuple[int, ...], offsets: tuple[int, ...]) -> Block | None:
        """Return the rows of a topic that consist of numbers only; None if a row may need a note or other details."""
        found = self._ends_of(topic, partitions)
        if found is None or self._to_stable:
            return None
        lags = tuple(map(sub, found.ends, offsets))
        if min(lags) < 0 or not all(map(le, found.starts, offsets)):
            return None
        if self._details.known and (any(lags) or self._details.held or self._details.headroom):
            return None
        common = _row(group, topic)
        each: dict[str, Any] = {
            "partition": partitions,
            "committed": offsets,
            "log_start_offset": found.starts,
            "log_end_offset": found.ends,
            "last_stable_offset": found.stable,
            "lag": lags,
            "time_lag_ms": tuple([None if lag else 0 for lag in lags]),
        }
        return Block(len(partitions), common, each)

    def _ends_of(self, topic: str, partitions: tuple[int, ...]) -> _Ends | None:
        """Return the bounds of partitions; None unless all are known."""
        if (topic, partitions) not in self._ends:
            places = [TopicPartition(topic, partition) for partition in partitions]
            bounds = [found for place in places if isinstance(found := self._bounds[place], Bounds)]
            known = _Ends(
                tuple(found.log_start_offset for found in bounds),
                tuple(found.log_end_offset for found in bounds),
                tuple(map(self._details.stable.get, places)),
            )
            self._ends[topic, partitions] = known if len(bounds) == len(places) else None
        return self._ends[topic, partitions]

    def _single(self, group: Group, topic: str, committed: Mapping[int, int], owners: Mapping[int, str]) -> Block:
        """Return the rows of a topic partition by partition; groups with the same committed offset share the result."""
        partitions = sorted({*committed, *owners})
        shown = self._shown.setdefault(topic, {})
        facts = []
        for place in zip(partitions, map(committed.get, partitions), strict=True):
            if place not in shown:
                shown[place] = tuple(map(self._fact_row(topic, *place).__getitem__, _FACTS))
            facts.append(shown[place])
        each: dict[str, Any] = dict(zip(_FACTS, zip(*facts, strict=True), strict=True))
        if owners:
            each["client_id"] = list(map(owners.get, partitions))
        return Block(len(partitions), _row(group, topic), each)

    def _fact_row(self, topic: str, number: int, offset: int | None) -> Row:
        """Return the part that does not depend on the group: everything about a partition and an offset committed there."""
        partition = TopicPartition(topic, number)
        ends, details = self._bounds[partition], self._details
        stable = details.stable.get(partition)
        row: Row = {**dict.fromkeys(_FACTS), "partition": number, "committed": offset, "last_stable_offset": stable, "note": ""}
        if not isinstance(ends, Bounds):
            row["note"] = "no longer exists" if isinstance(ends, NotFound) else reason(ends)
            return row
        row |= {"log_start_offset": ends.log_start_offset, "log_end_offset": ends.log_end_offset}
        limits = _until_stable(ends, stable, offset) if self._to_stable and stable is not None else ends
        row["lag"], row["note"] = lag_of(None if offset is None else CommittedOffset(offset), limits)
        if row["lag"] == 0:
            row["time_lag_ms"] = 0
        if details.known and offset is not None:
            details.complete(row, partition, max(offset, ends.log_start_offset))
        return row


def _row(group: Group, topic: str) -> Row:
    known = {"group": group.group_id, "topic": topic, "note": "", "state": group.state}
    return {key: known.get(key) for key in _KEYS}


def _until_stable(ends: Bounds, stable: int, committed: int | None) -> Bounds:
    """Return bounds that end at the last stable offset, or at the committed offset if a ``read_uncommitted`` group is beyond it."""
    beyond = min(committed, ends.log_end_offset) if committed else 0
    return Bounds(ends.log_start_offset, max(stable, beyond))


@dataclass(frozen=True)
class LagReport:
    """The commits of groups, and the ends of their partitions.

    :param bounds: log start and high watermark, or why they are not known
    :param problems: by group or topic: what could not be read, and why
    :param isolation: ``read_uncommitted`` counts lag to the high watermark, ``read_committed`` to the last stable offset
    :param without_offsets: groups that a pattern matched, of types without committed offsets
    """

    groups: Mapping[str, Group]
    offsets: Mapping[str, GroupOffsets]
    bounds: Mapping[TopicPartition, Bounds | KopsError]
    problems: Mapping[str, KopsError]
    isolation: str
    details: Details
    without_offsets: tuple[str, ...]

    @property
    def blocks(self) -> Iterator[Block]:
        """Yield a row per partition that a group has committed or is assigned. Rows are created as they are read, and not kept."""
        made = LagRows(self.bounds, self.details, self.isolation)
        return chain.from_iterable(made.of(self.groups[name], self.offsets[name]) for name in sorted(self.offsets))

    @property
    def rows(self) -> Iterator[Row]:
        return chain.from_iterable(block.rows() for block in self.blocks)


def lag(
    services: Services,
    patterns: Sequence[str],
    *,
    regex: bool = False,
    isolation: str = READ_UNCOMMITTED,
    times: bool | None = None,
    within: int | None = None,
) -> LagReport:
    """Return the lag of groups in each partition that they have committed or are assigned.

    :param isolation: with ``read_committed``, lag ends at the last stable offset, where the first open transaction begins
    :param times: whether to read the age of the first unread records, and open transactions; None: unless there are many
    :param within: milliseconds; also find what retention will delete unread within them
    :raises NotFound: for a group that does not exist
    :raises Refused: for a group named in full whose type has no committed offsets
    """
    problems: dict[str, KopsError] = {}
    listed = matching_listed(services, patterns, regex=regex, problems=problems)
    # A group listed as empty has no members to describe: with thousands of groups this saves half of all requests.
    described = services.kafka.groups.describe_or_errors(name for name, group in listed.items() if group.state != "EMPTY")
    groups: dict[str, Group] = {}
    without: list[str] = []
    for name, answer in {**listed, **described}.items():
        if isinstance(answer, KopsError):
            if not isinstance(answer, NotFound):  # deleted since it was listed
                problems[name] = answer
        elif answer.type in WITH_OFFSETS:
            groups[name] = answer
        elif name in patterns and not regex and not is_glob(name):
            raise Refused(f"{name} is a {answer.type} group: it has no committed offsets", hint="`kops groups describe` shows it")
        else:
            without.append(f"{name} ({answer.type})")
    offsets: dict[str, GroupOffsets] = {}
    seen: dict[str, set[int]] = defaultdict(set)
    for name, committed in services.kafka.groups.read_offsets(sorted(groups)):
        if isinstance(committed, KopsError):
            problems[name] = committed
            continue
        offsets[name] = committed
        for topic, found_offsets in committed.offsets.items():
            seen[topic].update(found_offsets)
    assigned = {partition for name in offsets for partition in groups[name].assigned}
    bounds = services.kafka.offsets.bounds_or_errors(
        assigned.union(TopicPartition(topic, partition) for topic, partitions in seen.items() for partition in partitions)
    )
    for partition, found in bounds.items():
        if isinstance(found, KopsError) and not isinstance(found, NotFound):
            problems.setdefault(f"topic {partition.topic}", found)
    details = details_of(services, offsets, bounds, isolation=isolation, times=times, within=within)
    return LagReport(groups, offsets, bounds, problems, isolation, details, tuple(without))


class Sums:
    """Sums lag up as rows pass by."""

    def __init__(self) -> None:
        self.groups: set[str] = set()
        self.partitions = self.lag = self.without_commit = self.past_end = self.untimed = 0
        self.largest_lag: int | None = None
        self.time_lag_ms: int | None = None

    def add(self, block: Block) -> None:
        self.partitions += block.length
        self.groups.add(block.common["group"])
        lags = [lag for lag in block.column("lag") if lag is not None]
        self.lag += sum(lags)
        self.largest_lag = _largest(self.largest_lag, lags)
        if len(lags) < block.length:
            self.without_commit += block.column("committed").count(None)
        if "note" in block.each:  # a block without notes has nothing past the end
            self.past_end += sum(
                committed is not None and end is not None and committed > end
                for committed, end in zip(block.column("committed"), block.column("log_end_offset"), strict=True)
            )
        times = block.column("time_lag_ms")
        self.time_lag_ms = _largest(self.time_lag_ms, [time for time in times if time is not None])
        if None in times:
            self.untimed += sum(bool(lag) and time is None for lag, time in zip(block.column("lag"), times, strict=True))

    def as_row(self) -> Row:
        """Return the sums; ``time_lag_ms`` is the largest known one."""
        return {
            "partitions": self.partitions,
            "lag": self.lag,
            "largest_lag": self.largest_lag,
            "time_lag_ms": self.time_lag_ms,
            "without_commit": self.without_commit,
            "past_end": self.past_end,
        }

    def sentence(self) -> str:
        without = f", {self.without_commit} without a commit" if self.without_commit else ""
        unknown = f" (not known for {counted(self.untimed, 'partition')})" if self.untimed else ""
        behind = f", {age_text(self.time_lag_ms)} behind{unknown}" if self.time_lag_ms else ""
        past = (
            f", {self.past_end} committed past the end (data was lost, or the topic recreated: see `kops diagnose`)"
            if self.past_end
            else ""
        )
        return f"{counted(len(self.groups), 'group')}, {counted(self.partitions, 'partition')}: lag {self.lag:,}{behind}{without}{past}"


def _largest(known: int | None, more: Sequence[int]) -> int | None:
    largest = max(more, default=known)
    return largest if known is None or largest is None else max(known, largest)


def added_up(blocks: Iterable[Block], *sums: Sums) -> Iterator[Block]:
    """Pass rows through, adding each to the sums."""
    for block in blocks:
        for one in sums:
            one.add(block)
        yield block


def by_group(blocks: Iterable[Block]) -> list[Row]:
    states: dict[str, str] = {}
    sums: dict[str, Sums] = defaultdict(Sums)
    for block in blocks:
        group = block.common["group"]
        states[group] = block.common["state"]
        sums[group].add(block)
    return [{"group": name, "state": states[name], **found.as_row()} for name, found in sorted(sums.items())]


def by_topic(blocks: Iterable[Block]) -> list[Row]:
    sums: dict[str, Sums] = defaultdict(Sums)
    for block in blocks:
        sums[block.common["topic"]].add(block)
    return [{"topic": name, "groups": len(found.groups), **found.as_row()} for name, found in sorted(sums.items())]

"""The lag of groups: many groups per request, and the end of each partition read once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from kops.core.blocks import Block
from kops.core.errors import KopsError, NotFound, Refused
from kops.core.findings import counted
from kops.core.models import READ_UNCOMMITTED, Bounds, Group, GroupOffsets, TopicPartition
from kops.core.selection import is_glob
from kops.operations.groups.details import NO_DETAILS, Details, details_of
from kops.operations.groups.lag_rows import LagRows
from kops.operations.groups.matching import KEPT_IN, WITH_OFFSETS, matching_listed, unlisted
from kops.operations.services import Services

Row = dict[str, Any]


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
    isolation: str = READ_UNCOMMITTED
    details: Details = field(default=NO_DETAILS)
    without_offsets: tuple[str, ...] = ()

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
    listed = matching_listed(services, patterns, regex=regex)
    # A group listed as empty has no members to describe: with thousands of groups this saves half of all requests.
    described = services.kafka.groups.describe_or_errors(name for name, group in listed.items() if group.state != "EMPTY")
    groups: dict[str, Group] = {}
    problems: dict[str, KopsError] = {}
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
    if any(regex or is_glob(name) for name in patterns) and (missing := unlisted(services)):
        problems[KEPT_IN] = missing
    offsets: dict[str, GroupOffsets] = {}
    seen: dict[str, set[int]] = defaultdict(set)
    for name, committed in services.kafka.groups.read_offsets(sorted(groups)):
        if isinstance(committed, KopsError):
            problems[name] = committed
            continue
        offsets[name] = committed
        for topic, found_offsets in committed.offsets.items():
            seen[topic].update(found_offsets)
    assigned = {partition for name in offsets for member in groups[name].members for partition in member.assignment}
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
        self.partitions = self.lag = self.without_commit = 0
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
        self.time_lag_ms = _largest(self.time_lag_ms, [time for time in block.column("time_lag_ms") if time is not None])

    def as_row(self) -> Row:
        """Return the sums; ``time_lag_ms`` is the largest known one."""
        return {
            "partitions": self.partitions,
            "lag": self.lag,
            "largest_lag": self.largest_lag,
            "time_lag_ms": self.time_lag_ms,
            "without_commit": self.without_commit,
        }

    def sentence(self) -> str:
        from kops.core.groups.lag import age_text

        without = f", {self.without_commit} without a commit" if self.without_commit else ""
        behind = f", {age_text(self.time_lag_ms)} behind" if self.time_lag_ms else ""
        return f"{counted(len(self.groups), 'group')}, {counted(self.partitions, 'partition')}: lag {self.lag:,}{behind}{without}"


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

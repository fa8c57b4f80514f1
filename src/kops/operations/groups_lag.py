"""How far groups are behind: many groups are asked at once, each partition's end once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kops.core.errors import KopsError, NotFound, Refused
from kops.core.models import Bounds, Committed, Group, TopicPartition
from kops.core.offsets import lag_of
from kops.core.rights import reason
from kops.core.selection import is_glob
from kops.gateways.kafka.offsets import READ_COMMITTED, READ_UNCOMMITTED
from kops.operations.groups import WITH_OFFSETS, matching_listed
from kops.operations.groups_details import NO_DETAILS, Details, details_of
from kops.operations.protocol import Services

Row = dict[str, Any]


@dataclass(frozen=True)
class LagReport:
    """What groups have committed, and where their partitions end.

    :param bounds: log start and high watermark, or why they are not known
    :param stable: where open transactions begin (the last stable offset); of partitions for which it was asked
    :param problems: the groups that could not be read
    :param isolation: by which lag is counted: to the high watermark, or with ``read_committed`` to the last stable offset
    :param without_offsets: groups that a pattern matched whose type has no committed offsets
    """

    groups: Mapping[str, Group]
    offsets: Mapping[str, Mapping[TopicPartition, Committed]]
    bounds: Mapping[TopicPartition, Bounds | KopsError]
    problems: Mapping[str, KopsError]
    isolation: str = READ_UNCOMMITTED
    details: Details = field(default=NO_DETAILS)
    without_offsets: tuple[str, ...] = ()
    templates: dict[TopicPartition, Row] = field(default_factory=dict, repr=False)

    @property
    def rows(self) -> Iterator[Row]:
        """Yield a row for each partition that a group has committed or is assigned. They are made as they are read, and not kept."""
        for name in sorted(self.offsets):
            yield from _rows(self, self.groups[name], self.offsets[name])

    @property
    def empty(self) -> bool:
        """Tell whether there is no row."""
        return next(self.rows, None) is None


def lag(
    services: Services,
    patterns: Sequence[str],
    *,
    regex: bool = False,
    isolation: str = READ_UNCOMMITTED,
    times: bool | None = None,
    within: int | None = None,
) -> LagReport:
    """Return how far groups are behind in each partition that they have committed or are assigned.

    :param isolation: with ``read_committed``, lag ends at the last stable offset, where an open transaction begins
    :param times: whether to read how old the first unread records are, and which transactions are open; None: unless there are many
    :param within: milliseconds; also find what retention will delete unread within them
    :raises NotFound: for a group that does not exist
    :raises Refused: for a group, named in full, whose type has no committed offsets
    """
    listed = matching_listed(services, patterns, regex=regex)
    # A group that is listed as empty has no members to ask for, and with thousands of groups that is half of all requests.
    described = services.kafka.groups.describe_or_errors(name for name, group in listed.items() if group.state != "EMPTY")
    groups: dict[str, Group] = {}
    problems: dict[str, KopsError] = {}
    without: list[str] = []
    for name, answer in {**listed, **described}.items():
        if isinstance(answer, KopsError):
            if not isinstance(answer, NotFound):  # gone since it was listed
                problems[name] = answer
        elif answer.type in WITH_OFFSETS:
            groups[name] = answer
        elif name in patterns and not regex and not is_glob(name):
            raise Refused(f"{name} is a {answer.type} group: it has no committed offsets", hint="`kops groups describe` shows it")
        else:
            without.append(f"{name} ({answer.type})")
    offsets: dict[str, dict[TopicPartition, Committed]] = {}
    for name, committed in services.kafka.groups.committed_or_errors(groups).items():
        if isinstance(committed, KopsError):
            problems[name] = committed
        else:
            offsets[name] = committed
    assigned = (partition for name in offsets for member in groups[name].members for partition in member.assignment)
    partitions = {*assigned}.union(*offsets.values())
    bounds = services.kafka.offsets.bounds_or_errors(partitions)
    for partition, found in bounds.items():
        if isinstance(found, KopsError) and not isinstance(found, NotFound):
            problems.setdefault(f"topic {partition.topic}", found)
    details = details_of(services, offsets, bounds, isolation=isolation, times=times, within=within)
    return LagReport(groups, offsets, bounds, problems, isolation, details, tuple(without))


class Sums:
    """Adds lag up while rows go by."""

    def __init__(self) -> None:
        self.groups: set[str] = set()
        self.partitions = self.lag = self.without_commit = 0
        self._last: str | None = None
        self.largest_lag: int | None = None
        self.time_lag_ms: int | None = None

    def add(self, row: Row) -> None:
        """Count a row."""
        self.partitions += 1
        if (group := row["group"]) != self._last:
            self.groups.add(group)
            self._last = group
        lag_now = row["lag"]
        if lag_now is not None:
            self.lag += lag_now
            if self.largest_lag is None or lag_now > self.largest_lag:
                self.largest_lag = lag_now
        elif row["committed"] is None:
            self.without_commit += 1
        time_lag = row["time_lag_ms"]
        if time_lag is not None and (self.time_lag_ms is None or time_lag > self.time_lag_ms):
            self.time_lag_ms = time_lag

    def as_row(self) -> Row:
        """Return the sums; ``time_lag_ms`` is the largest that is known."""
        return {
            "partitions": self.partitions,
            "lag": self.lag,
            "largest_lag": self.largest_lag,
            "time_lag_ms": self.time_lag_ms,
            "without_commit": self.without_commit,
        }

    def sentence(self) -> str:
        """Return the sums for people."""
        from kops.core.lag import age_text

        without = f", {self.without_commit} without a commit" if self.without_commit else ""
        behind = f", {age_text(self.time_lag_ms)} behind" if self.time_lag_ms else ""
        return f"{_count(len(self.groups), 'group')}, {_count(self.partitions, 'partition')}: lag {self.lag}{behind}{without}"


def counted(rows: Iterable[Row], *sums: Sums) -> Iterator[Row]:
    """Yield rows, adding each up on the way."""
    for row in rows:
        for one in sums:
            one.add(row)
        yield row


def by_group(rows: Iterable[Row]) -> list[Row]:
    """Sum rows up by group."""
    states: dict[str, str] = {}
    sums: dict[str, Sums] = defaultdict(Sums)
    for row in rows:
        states[row["group"]] = row["state"]
        sums[row["group"]].add(row)
    return [{"group": name, "state": states[name], **found.as_row()} for name, found in sorted(sums.items())]


def by_topic(rows: Iterable[Row]) -> list[Row]:
    """Sum rows up by topic; each group counts."""
    sums: dict[str, Sums] = defaultdict(Sums)
    for row in rows:
        sums[row["topic"]].add(row)
    return [{"topic": name, "groups": len(found.groups), **found.as_row()} for name, found in sorted(sums.items())]


def _rows(report: LagReport, group: Group, committed: Mapping[TopicPartition, Committed]) -> Iterator[Row]:
    name, state, details = group.group_id, group.state, report.details
    owners = {partition: member.client_id for member in group.members for partition in member.assignment}
    whole = not owners.keys() - committed.keys()
    places = committed.items() if whole else ((p, committed.get(p)) for p in sorted({*committed, *owners}))
    to_stable = report.isolation == READ_COMMITTED
    templates = report.templates
    for partition, found in places:
        ends = report.bounds[partition]
        template = templates.get(partition)
        if template is None:
            template = templates[partition] = _template(partition, ends, details.stable.get(partition))
        row = template.copy()
        row["group"], row["state"] = name, state
        if owners:
            row["client_id"] = owners.get(partition)
        if found is not None:
            row["committed"] = found.offset
        if isinstance(ends, Bounds):
            if found is not None and not to_stable and ends.log_start_offset <= found.offset <= ends.log_end_offset:
                lag_now: int | None = ends.log_end_offset - found.offset  # as lag_of has it: this is nearly every row
            else:
                stable = row["last_stable_offset"]
                lag_now, row["note"] = lag_of(found, _until_stable(ends, stable, found) if to_stable and stable is not None else ends)
            row["lag"] = lag_now
            if lag_now == 0:
                row["time_lag_ms"] = 0
            if details.known and found is not None:
                details.complete(row, partition, max(found.offset, ends.log_start_offset))
        yield row


def _template(partition: TopicPartition, ends: Bounds | KopsError, stable: int | None) -> Row:
    """Return what the rows of a partition have in common: with thousands of groups, copying it is the better part of making a row."""
    note = "" if isinstance(ends, Bounds) else "does not exist any more" if isinstance(ends, NotFound) else reason(ends)
    return {
        "group": "",
        "topic": partition.topic,
        "partition": partition.partition,
        "committed": None,
        "log_start_offset": ends.log_start_offset if isinstance(ends, Bounds) else None,
        "log_end_offset": ends.log_end_offset if isinstance(ends, Bounds) else None,
        "last_stable_offset": stable,
        "lag": None,
        "time_lag_ms": None,
        "first_unread": None,
        "note": note,
        "client_id": None,
        "state": "",
        "transaction": None,
        "expires": None,
    }


def _until_stable(ends: Bounds, stable: int, found: Committed | None) -> Bounds:
    """Return bounds that end at the last stable offset, or at the committed one of a group that does not mind transactions."""
    beyond = min(found.offset, ends.log_end_offset) if found else 0
    return Bounds(ends.log_start_offset, max(stable, beyond))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"

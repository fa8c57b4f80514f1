"""How far groups are behind: many groups are asked at once, each partition's end once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.errors import KopsError, NotFound, Refused
from kops.core.models import Bounds, Committed, Group, TopicPartition
from kops.core.offsets import lag_of
from kops.core.selection import is_glob
from kops.operations.groups import WITH_OFFSETS, matching_groups
from kops.operations.protocol import Services

Row = dict[str, Any]


@dataclass(frozen=True)
class LagReport:
    """Rows, and the groups that could not be read."""

    rows: list[Row]
    problems: Mapping[str, KopsError]


def lag(services: Services, patterns: Sequence[str], *, regex: bool = False) -> LagReport:
    """Return a row for each partition that a group has committed or is assigned.

    :raises NotFound: for a group that does not exist
    :raises Refused: for a group, named in full, whose type has no committed offsets
    """
    names = matching_groups(services, patterns, regex=regex)
    described = services.kafka.groups.describe_or_errors(names)
    groups: dict[str, Group] = {}
    problems: dict[str, KopsError] = {}
    for name, answer in described.items():
        if isinstance(answer, KopsError):
            if not isinstance(answer, NotFound):  # gone since it was listed
                problems[name] = answer
        elif answer.type in WITH_OFFSETS:
            groups[name] = answer
        elif name in patterns and not regex and not is_glob(name):
            raise Refused(f"{name} is a {answer.type} group: it has no committed offsets", hint="`kops groups describe` shows it")
    offsets: dict[str, dict[TopicPartition, Committed]] = {}
    for name, committed in services.kafka.groups.committed_or_errors(groups).items():
        if isinstance(committed, KopsError):
            problems[name] = committed
        else:
            offsets[name] = committed
    owners = {name: _owners(groups[name]) for name in offsets}
    partitions = {partition for name in offsets for partition in (*offsets[name], *owners[name])}
    bounds = services.kafka.offsets.bounds_or_errors(partitions)
    rows = [row for name in sorted(offsets) for row in _rows(groups[name], offsets[name], owners[name], bounds)]
    return LagReport(rows, problems)


def by_group(rows: Iterable[Row]) -> list[Row]:
    """Sum rows up by group."""
    return [{"group": name, "state": parts[0]["state"], **_sums(parts)} for name, parts in _grouped(rows, "group")]


def by_topic(rows: Iterable[Row]) -> list[Row]:
    """Sum rows up by topic; each group counts."""
    return [{"topic": name, "groups": len({row["group"] for row in parts}), **_sums(parts)} for name, parts in _grouped(rows, "topic")]


def total(rows: Sequence[Row]) -> str:
    """Return the sum in a sentence."""
    sums = _sums(rows)
    groups = len({row["group"] for row in rows})
    without = f", {sums['without_commit']} without a commit" if sums["without_commit"] else ""
    return f"{_count(groups, 'group')}, {_count(sums['partitions'], 'partition')}: lag {sums['lag']}{without}"


def _owners(group: Group) -> dict[TopicPartition, str]:
    return {partition: member.client_id for member in group.members for partition in member.assignment}


def _rows(
    group: Group,
    committed: Mapping[TopicPartition, Committed],
    owners: Mapping[TopicPartition, str],
    bounds: Mapping[TopicPartition, Bounds | KopsError],
) -> Iterable[Row]:
    name, state, nothing = group.group_id, group.state, (None, None)
    whole = not owners.keys() - committed.keys()
    places = committed.items() if whole else ((p, committed.get(p)) for p in sorted({*committed, *owners}))
    for partition, found in places:
        ends = bounds[partition]
        if isinstance(ends, KopsError):
            (start, end), lag_now, note = nothing, None, "does not exist any more" if isinstance(ends, NotFound) else ends.message
        else:
            start, end = ends.log_start_offset, ends.log_end_offset
            lag_now, note = lag_of(found, ends)
        yield {
            "group": name,
            "topic": partition.topic,
            "partition": partition.partition,
            "committed": found.offset if found else None,
            "log_start_offset": start,
            "log_end_offset": end,
            "lag": lag_now,
            "note": note,
            "client_id": owners.get(partition) if owners else None,
            "state": state,
        }


def _grouped(rows: Iterable[Row], key: str) -> list[tuple[str, list[Row]]]:
    parts: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        parts[row[key]].append(row)
    return sorted(parts.items())


def _sums(rows: Sequence[Row]) -> Row:
    lags = [row["lag"] for row in rows if row["lag"] is not None]
    return {
        "partitions": len(rows),
        "lag": sum(lags),
        "largest_lag": max(lags, default=None),
        "without_commit": sum(row["committed"] is None for row in rows),
    }


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"

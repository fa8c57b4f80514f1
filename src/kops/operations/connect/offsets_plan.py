"""``kops connect offsets alter`` and ``reset``: planning new offsets of a connector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kops.config.files import parse_json, read_json
from kops.core.connect.models import Connector
from kops.core.errors import NotFound, Refused, UsageProblem
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.offsets.arithmetic import ShiftBy, SkipRecords, Strategy, ToCurrent, resolve
from kops.core.plan import Plan
from kops.core.selection import parse_selection
from kops.operations.connect.offsets import OFFSET, PARTITION, TOPIC, name_of, partition_of, position_of
from kops.operations.connect.offsets_change import Move, OffsetMoves, plan_moves
from kops.operations.connect.select import select
from kops.operations.offsets.landings import by_strategy
from kops.operations.offsets.plan import by_partition
from kops.operations.offsets.strategies import seeks_of
from kops.operations.services import Services

Pair = tuple[Mapping[str, Any], Mapping[str, Any] | None]
"""A partition and its new offset; None deletes it."""


def plan_alter(
    services: Services,
    name: str,
    positions: Sequence[str],
    *,
    partition: str | None = None,
    offset: str | None = None,
    file: Path | None = None,
) -> Plan[OffsetMoves]:
    """Plan to set offsets of a connector.

    :param positions: for a sink: ``orders:0=1200``, ``orders=@-1h``, ``orders:0=+1``, ``orders=start``
    :param partition: for a source: JSON, together with ``offset``
    :param file: offsets as ``kops connect offsets show -o json`` prints them, or as Connect's REST API accepts them
    :raises UsageProblem: for input that is invalid, or belongs to another type of connector
    :raises NotFound: when there is no such connector
    """
    (connector,) = select(services, [name])
    current = _current(services, connector)
    warnings: list[str] = []
    if file is not None:
        pairs = read_offsets(file, name)
    elif partition is not None or offset is not None:
        if connector.type == "sink":
            raise UsageProblem(
                f"{name} is a sink: its partitions are Kafka's", hint="pass positions: orders:0=1200, orders=start, orders=@-1h"
            )
        if partition is None or offset is None:
            raise UsageProblem("--partition and --offset belong together", hint="--offset null deletes the offset of a partition")
        pairs = [(_json(partition, "--partition"), _json(offset, "--offset", nothing=True))]
    elif connector.type != "sink":
        raise UsageProblem(
            f"{name} is a source: its offsets are its plugin's",
            hint="pass --partition JSON --offset JSON; `kops connect offsets show` prints both",
        )
    else:
        pairs, warnings = _positions(services, positions, current)
    plan = plan_moves(services, connector, _moves(pairs, current))
    return replace(plan, warnings=(*plan.warnings, *warnings))


def plan_reset(services: Services, name: str, only: Sequence[str]) -> Plan[OffsetMoves]:
    """Plan to delete offsets of a connector: all, or those of some partitions.

    :param only: for a sink: ``orders`` or ``orders:0,3-5``; for a source: JSON
    :raises NotFound: when the connector does not exist, or has no offset there
    """
    (connector,) = select(services, [name])
    current = _current(services, connector)
    chosen = current if not only else {key: current[key] for key in _chosen(connector, only, current)}
    return plan_moves(services, connector, [Move(partition, before, None) for partition, before in chosen.values()], reset=not only)


def _chosen(connector: Connector, only: Sequence[str], current: Mapping[str, Pair]) -> list[str]:
    keys: list[str] = []
    for text in only:
        if connector.type == "sink":
            selection = parse_selection(text)
            places = {key: partition_of(partition) for key, (partition, _) in current.items()}
            found = [key for key, place in places.items() if place is not None and selection.includes(place)]
        else:
            found = [key for key in [name_of(_json(text, "--partition") or {})] if key in current]
        if not found:
            raise NotFound(f"{connector.name} has no offset for {text}", hint=f"kops connect offsets show {connector.name}")
        keys += found
    return list(dict.fromkeys(keys))


def _current(services: Services, connector: Connector) -> dict[str, Pair]:
    return {name_of(one["partition"]): (one["partition"], one.get("offset")) for one in services.connect.offsets(connector.name)}


def _moves(pairs: Sequence[Pair], current: Mapping[str, Pair]) -> list[Move]:
    moves = {}
    for partition, after in pairs:
        key = name_of(partition)
        if key in moves:
            raise UsageProblem(f"{key} is named twice", hint="give one offset to each partition")
        moves[key] = Move(partition, current[key][1] if key in current else None, after)
    return list(moves.values())


def _positions(services: Services, texts: Sequence[str], current: Mapping[str, Pair]) -> tuple[list[Pair], list[str]]:
    """Resolve positions in topics to offsets, with warnings about times; offsets outside of the log are refused."""
    if not texts:
        raise UsageProblem("no position is given", hint="write it like orders:0=1200, orders=start, orders=end or orders=@-1h")
    strategies: dict[TopicPartition, Strategy] = {}
    for partition, seek in by_partition(services, seeks_of(texts, services.now())).items():
        if isinstance(seek, SkipRecords):
            raise UsageProblem("skip: is for groups only", hint="orders:0=+1 moves one offset forward")
        strategies[partition] = seek
    bounds = services.kafka.offsets.bounds(strategies)
    times, warnings = by_strategy(services, strategies, bounds)
    pairs: list[Pair] = []
    for partition, strategy in sorted(strategies.items(), key=lambda each: each[0]):
        _, before = current.get(str(partition), (None, None))
        here = position_of(before)
        if here is None and isinstance(strategy, (ShiftBy, ToCurrent)):
            raise Refused(f"the connector has no offset for {partition} to count from", hint="name an offset, start, end or a time")
        target = resolve(strategy, None if here is None else CommittedOffset(here), bounds[partition], times.get(partition))
        pairs.append(({TOPIC: partition.topic, PARTITION: partition.partition}, {OFFSET: target.offset}))
    return pairs, warnings


def read_offsets(file: Path, name: str) -> list[Pair]:
    """Read offsets from a JSON file.

    :param name: of the connector; rows of others are ignored
    :raises UsageProblem: when it cannot be read, or has no offsets
    """
    body = read_json(file, hint="`kops connect offsets show NAME -o json` prints the format")
    rows = body.get("offsets") if isinstance(body, dict) else body
    if not isinstance(rows, list) or not all(isinstance(row, dict) and isinstance(row.get("partition"), dict) for row in rows):
        raise UsageProblem(f"{file} has no offsets", hint='the format is [{"partition": {...}, "offset": {...}}]')
    pairs = [(row["partition"], row.get("offset")) for row in rows if row.get("connector") in (None, name)]
    if not pairs:
        raise UsageProblem(f"{file} has no offsets of {name}", hint="`kops connect offsets show NAME -o json` prints the format")
    return pairs


def _json(text: str, option: str, *, nothing: bool = False) -> Any:
    body = parse_json(text, option, hint='quote it in the shell: \'{"filename": "/in.txt"}\'')
    if not isinstance(body, dict) and not (nothing and body is None):
        raise UsageProblem(f"{option} is {text}, not an object", hint='such as \'{"filename": "/in.txt"}\'')
    return body

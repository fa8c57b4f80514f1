"""The log start and end of partitions, the number of offsets between them, and the offset for a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.errors import KopsError
from kops.core.findings import counted
from kops.core.models import READ_COMMITTED, Bounds, TopicPartition
from kops.core.offsets.arithmetic import Landing, ToTime
from kops.core.times import is_relative, parse_time, time_text
from kops.gateways.kafka.offsets import SPECS, FoundOffset
from kops.operations.offsets.landings import by_strategy
from kops.operations.offsets.tiers import COLUMNS, tier_columns
from kops.operations.services import Services
from kops.operations.topics.listing import known_settings, select_partitions

NO_RECORD = "no record since"


@dataclass(frozen=True)
class OffsetReport:
    """A row per partition.

    :param failed: number of partitions that could not be read
    :param warnings: what makes offsets by time other than they seem
    """

    rows: list[dict[str, Any]]
    failed: int = 0
    warnings: Sequence[str] = ()


def offset_report(services: Services, texts: Sequence[str], *, at: str | None = None, regex: bool = False) -> OffsetReport:
    """Return the offsets of partitions.

    ``offsets`` counts from log start to log end; compaction and transactions leave offsets without a record, so there may be fewer records.
    ``last_stable_offset`` is where ``read_committed`` consumers stop: below the log end while a transaction is open.

    ``earliest_local_offset`` and ``latest_tiered_offset`` are None where the topic has no remote storage.

    :param at: a time: adds ``offset_at``, the first offset with this timestamp or a later one, ``timestamp_at``, that of the record there,
        and ``offsets_since``; or one of ``SPECS``: adds the first two
    """
    spec = at if at in SPECS else None
    time = None if at is None or spec else ToTime(parse_time(at, services.now()), is_relative(at))
    topics, places = select_partitions(services, texts, regex=regex)
    bounds = services.kafka.offsets.bounds_or_errors(places)
    stable = services.kafka.offsets.bounds_or_errors(places, isolation=READ_COMMITTED)
    good = {place: found for place in places if isinstance(found := bounds[place], Bounds)}
    times, warnings = (None, []) if time is None else by_strategy(services, dict.fromkeys(good, time), good)
    tiers, unknown = tier_columns(services, good, known_settings(services, topics.values())[0])
    rows = [_row(place, bounds[place], stable[place], times) | tiers.get(place, dict.fromkeys(COLUMNS.values())) for place in places]
    failed = len(places) - len(good)
    if spec:
        answers = services.kafka.offsets.by_spec(good, spec)
        rows = [row | _at_spec(answers.get(place)) for row, place in zip(rows, places, strict=True)]
        failed += sum(isinstance(one, KopsError) for one in answers.values())
    return OffsetReport(rows, failed, [*warnings, *unknown])


def by_topic(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the sums per topic; None if a partition is not known."""
    topics: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        topics.setdefault(row["topic"], []).append(row)
    return [
        {"topic": topic, "partitions": len(some)}
        | {key: _sum(row[key] for row in some) for key in ("offsets", "offsets_since") if key in some[0]}
        for topic, some in topics.items()
    ]


def total_text(rows: Sequence[Mapping[str, Any]]) -> str:
    answered = [row for row in rows if row["offsets"] is not None]
    topics = len({row["topic"] for row in rows})
    text = f"{sum(row['offsets'] for row in answered):,} offsets in {counted(len(rows), 'partition')} of {counted(topics, 'topic')}"
    since = f"; {sum(row['offsets_since'] for row in answered):,} since the time" if rows and "offsets_since" in rows[0] else ""
    unknown = f"; {counted(len(rows) - len(answered), 'partition')} could not be asked" if len(answered) < len(rows) else ""
    return text + since + unknown


def _row(
    place: TopicPartition, bounds: Bounds | KopsError, stable: Bounds | KopsError, times: Mapping[TopicPartition, Landing | None] | None
) -> dict[str, Any]:
    row: dict[str, Any] = {"topic": place.topic, "partition": place.partition}
    known = isinstance(bounds, Bounds)
    row |= {
        "log_start_offset": bounds.log_start_offset if isinstance(bounds, Bounds) else None,
        "log_end_offset": bounds.log_end_offset if isinstance(bounds, Bounds) else None,
        "last_stable_offset": stable.log_end_offset if isinstance(stable, Bounds) else None,
        "offsets": bounds.offsets if isinstance(bounds, Bounds) else None,
    }
    note = "" if isinstance(bounds, Bounds) else bounds.message
    if times is not None:
        at = times.get(place)
        row["offset_at"] = None if at is None else at.offset
        row["timestamp_at"] = None if at is None else time_text(at.timestamp)
        row["offsets_since"] = None if not isinstance(bounds, Bounds) else 0 if at is None else bounds.log_end_offset - at.offset
        note = note or (NO_RECORD if known and at is None else "")
        if at is not None and at.looked is not None and (at.record is None or at.record[0] > at.offset):
            note = "a transaction marker is there"
    if known and row["last_stable_offset"] is not None and row["last_stable_offset"] < row["log_end_offset"]:
        note = "; ".join(one for one in (note, "open transaction") if one)
    return {**row, "note": note}


def _at_spec(found: FoundOffset | KopsError | None) -> dict[str, Any]:
    if not isinstance(found, FoundOffset):
        return {"offset_at": None, "timestamp_at": None} | ({"note": found.message} if found else {})
    return {"offset_at": found.offset, "timestamp_at": time_text(found.timestamp) if found.timestamp >= 0 else None}


def _sum(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)

"""What lag means beyond a number of records: its age, what will expire unread, and which transaction blocks readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kops.core.errors import KopsError
from kops.core.groups.lag import Headroom, OpenTransaction, Place, TimeLag, age_text, held_text
from kops.core.models import READ_COMMITTED, Bounds, GroupOffsets, TopicPartition
from kops.core.rights import reason
from kops.core.times import time_text, to_milliseconds
from kops.operations.groups.open_transactions import find_open_transactions, stable_offsets
from kops.operations.groups.unread import MOST_PLACES, headrooms, time_lags, unread_places
from kops.operations.services import Services

OLD_TRANSACTION_MS = 5_000
"""Younger open transactions are normal for an exactly-once application: they are in the JSON, but not noted in the table."""


@dataclass(frozen=True)
class Details:
    """What was read beyond offsets.

    :param known: whether times and transactions were read
    :param now: when they were read, in milliseconds since the epoch
    :param stable: the last stable offsets that were requested
    :param held: the transaction that holds back the last stable offset, of partitions where it is below the high watermark
    :param warnings: what could not be read, a sentence each
    """

    known: bool
    now: int
    stable: Mapping[TopicPartition, int]
    times: Mapping[Place, TimeLag]
    held: Mapping[TopicPartition, OpenTransaction]
    headroom: Mapping[Place, Headroom]
    warnings: tuple[str, ...]

    def complete(self, row: dict[str, Any], partition: TopicPartition, offset: int) -> None:
        """Add to the row of a partition what is known about the offset at which its group resumes."""
        notes = [row["note"]] if row["note"] else []
        place = (partition, offset)
        if row["lag"]:
            lag = self.times.get(place, TimeLag(None))
            row["time_lag_ms"] = lag.milliseconds
            row["first_unread"] = None if lag.timestamp is None else time_text(lag.timestamp)
            notes += [lag.note] if lag.note else []
        if held := self.held.get(partition):
            row["transaction"] = _transaction_json(held, self.now)
            age = held.age(self.now)
            if held.hanging or age is None or age >= OLD_TRANSACTION_MS:
                notes.append(held_text(held, self.now))
        if risk := self.headroom.get(place):
            row["expires"] = {"at_risk": risk.at_risk, "certain": risk.certain, "from": time_text(risk.expires), "by": risk.by}
            when = f"in {age_text(risk.expires - self.now)}" if risk.expires > self.now else "now"
            notes.append(f"{risk.at_risk} {'' if risk.certain else 'may '}expire, first {when}")
        row["note"] = "; ".join(notes)


def details_of(
    services: Services,
    offsets: Mapping[str, GroupOffsets],
    bounds: Mapping[TopicPartition, Bounds | KopsError],
    *,
    isolation: str,
    times: bool | None,
    within: int | None,
) -> Details:
    """Read the details of some groups.

    :param times: None: read them unless there are more than ``MOST_PLACES`` to read
    :param within: milliseconds; None: do not look at retention
    """
    stable: dict[TopicPartition, int] = {}
    warnings: list[str] = []
    if isolation == READ_COMMITTED:
        stable = stable_offsets(services, (partition for partition, ends in bounds.items() if isinstance(ends, Bounds)))
    unread = unread_places(offsets.values(), bounds, most=None if times or within is not None else MOST_PLACES)
    wanted = len(unread) <= MOST_PLACES if times is None else times
    if times is None and not wanted:
        warnings.append(f"more than {MOST_PLACES:,} partitions are behind: --time reads their age, and open transactions, all the same")
    held: Mapping[TopicPartition, OpenTransaction] = {}
    found: dict[Place, TimeLag] = {}
    if wanted:
        if isolation != READ_COMMITTED:
            stable = stable_offsets(services, {partition for partition, _ in unread})
        held = _held(services, bounds, stable, warnings)
        readable = [place for place in unread if isolation != READ_COMMITTED or place[1] < stable.get(place[0], 0)]
        found = time_lags(services, readable, isolation=isolation)
    risks: dict[Place, Headroom] = {}
    if within is not None:
        try:
            risks = headrooms(services, sorted(unread), bounds, found, within=within)
        except KopsError as problem:
            warnings.append(f"what will expire is not known: {reason(problem)}")
    now = to_milliseconds(services.now())
    return Details(wanted or within is not None, now, stable, found, held, risks, tuple(warnings))


def _held(
    services: Services, bounds: Mapping[TopicPartition, Bounds | KopsError], stable: Mapping[TopicPartition, int], warnings: list[str]
) -> Mapping[TopicPartition, OpenTransaction]:
    """Return the first open transaction of each partition whose last stable offset is below its end."""
    found, problem = find_open_transactions(services, stable, bounds)
    if problem is not None:
        warnings.append(f"open transactions are not known: {reason(problem)}")
    else:
        warnings += [f"the open transactions of {partition} are not known: {reason(why)}" for partition, why in found.unknown.items()]
    return found.open


def _transaction_json(held: OpenTransaction, now: int) -> dict[str, Any]:
    return {
        "transactional_id": held.transactional_id,
        "producer_id": held.producer_id,
        "producer_epoch": held.producer_epoch,
        "start_offset": held.start_offset,
        "state": held.state,
        "age_ms": held.age(now),
        "timeout_ms": held.timeout_ms,
        "hanging": held.hanging,
    }

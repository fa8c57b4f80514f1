"""Lag in time, what will expire unread, and the transactions that hold consumers back. Pure; times in milliseconds since the epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from kops.core.durations import MILLISECONDS
from kops.core.models import Bounds, TopicPartition
from kops.core.times import CLOCKS_DIFFER_MS, time_text

Place: TypeAlias = tuple[TopicPartition, int]
"""A partition, and the offset at which a group would resume: max(committed, log start)."""

NOTICED_MS = 600_000
"""Brokers look for what has expired every five minutes (``log.retention.check.interval.ms``)."""
FINISHED_STATES = ("Empty", "CompleteCommit", "CompleteAbort", "Dead")
"""States of a transaction that no longer has records to decide about (``TransactionState`` of the brokers)."""


class FirstRecord(NamedTuple):
    """The first record at or after a place.

    :param timestamp: None if the record has none
    :param log_append_time: whether the broker set the timestamp
    """

    offset: int
    timestamp: int | None
    log_append_time: bool = False


class TimeLag(NamedTuple):
    """How long the first unread record has been waiting.

    :param milliseconds: 0 if nothing is unread; None if unknown
    :param timestamp: of that record
    :param note: why it is unknown, or how to interpret it
    """

    milliseconds: int | None
    timestamp: int | None = None
    note: str = ""


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction that has begun in a partition and has not ended there.

    :param start_offset: its first record in the partition
    :param last_timestamp: of its producer's last record there
    :param transactional_id: None if no transaction coordinator reports one for this producer
    :param state: as the coordinator reports it; None if there is no transactional id
    :param started: None if the coordinator does not report it
    :param timeout_ms: after which the coordinator aborts it
    :param includes_partition: whether the coordinator will end it in this partition too; otherwise it stays open here
    :param coordinator_epoch: of the coordinator that last wrote a marker for its producer; -1: none did
    """

    producer_id: int
    producer_epoch: int
    start_offset: int
    last_timestamp: int | None = None
    transactional_id: str | None = None
    state: str | None = None
    started: int | None = None
    timeout_ms: int | None = None
    includes_partition: bool = False
    coordinator_epoch: int = -1

    @property
    def producer(self) -> str:
        return self.transactional_id or f"producer {self.producer_id}"

    @property
    def hanging(self) -> bool:
        """Whether no coordinator will end it here, by the criteria of ``kafka-transactions find-hanging``."""
        return self.transactional_id is None or not self.includes_partition or self.state in FINISHED_STATES

    def age(self, now: int) -> int | None:
        """Return how long it has been open: by the coordinator, otherwise at least since its producer's last record.

        For a hanging transaction the coordinator's start time is not used: it is that of the producer's next transaction.
        """
        since = self.last_timestamp if self.started is None or self.hanging else self.started
        return None if since is None else max(0, now - since)


@dataclass(frozen=True)
class Retention:
    """What deletes a topic's records.

    :param milliseconds: ``retention.ms``; None if age deletes nothing
    :param size: ``retention.bytes``, per partition; None if size deletes nothing
    :param segment_ms: ``segment.ms``: a record that is this much younger than the first of its segment begins another one
    :param segment_size: ``segment.bytes``
    """

    milliseconds: int | None = None
    size: int | None = None
    segment_ms: int = 7 * MILLISECONDS["d"]
    segment_size: int = 1 << 30


@dataclass(frozen=True)
class Headroom:
    """Unread data of a group that will expire within a given time.

    :param at_risk: number of unread offsets that retention may delete within that time
    :param expires: when the first of them may be deleted; a time in the past means at once
    :param by: ``age`` (retention.ms) or ``size`` (retention.bytes; an estimate from the rate at which the unread data arrived)
    :param certain: whether all of them will be deleted; otherwise segments, whose borders brokers do not report, decide how many
    :param keeps: the value of ``retention.ms`` or ``retention.bytes`` that keeps what is unread for about another day
    """

    at_risk: int
    expires: int
    by: str
    certain: bool = False
    keeps: int = -1


class Aged(NamedTuple):
    """The unread records of a partition by age.

    :param at_risk: unread offsets before the first record that will still be young enough
    :param first: timestamp of the first unread record, in milliseconds since the epoch; None if unknown
    :param younger: whether there are records that will still be young enough
    :param newest: the largest timestamp of the partition; None if unknown
    :param size: of the partition in bytes; None if unknown
    """

    at_risk: int
    first: int | None
    younger: bool
    newest: int | None = None
    size: int | None = None


def time_lag_of(place: Place, found: FirstRecord | None, now: int) -> TimeLag:
    """Return the time lag, which is the age of the first unread record.

    :param found: None if there is none, only transaction markers or offsets without records after compaction: nothing is unread
    """
    if found is None:
        return TimeLag(0, None, "no record left: markers or compacted away")
    if found.timestamp is None:
        return TimeLag(None, None, "the record has no timestamp")
    notes = [f"next record is {found.offset}"] if found.offset > place[1] else []
    if found.log_append_time:
        notes.append("by log append time")
    if found.timestamp > now + CLOCKS_DIFFER_MS:
        return TimeLag(None, found.timestamp, "; ".join([*notes, f"misdated: {time_text(found.timestamp)} is after now"]))
    return TimeLag(max(0, now - found.timestamp), found.timestamp, "; ".join(notes))


def held_text(held: OpenTransaction, now: int) -> str:
    """Summarize which transaction holds back the last stable offset, and since when."""
    age = held.age(now)
    since = f" for {age_text(age)}" if age is not None else ""
    return f"{'hanging' if held.hanging else 'open'} transaction of {held.producer} at {held.start_offset}{since}"


def headroom_by_age(rule: Retention, aged: Aged, now: int) -> Headroom | None:
    """Return what retention by time will delete; None if nothing is, or if it cannot be known.

    A segment is deleted when its newest record is older than ``retention.ms``, and only after all segments before it
    (``UnifiedLog.deleteRetentionMsBreachedSegments``). So records go for certain only if all after them are too old as well. If there are
    younger ones, a border of segments must lie in between: ``segment.bytes`` or ``segment.ms`` must have been exceeded; and if brokers have
    not deleted the first record for longer than they need to notice, its segment has younger ones, be they dated in the future.
    """
    retention, first = rule.milliseconds, aged.first
    if retention is None or aged.at_risk <= 0:
        return None
    if aged.younger and first is not None and first + retention < now - NOTICED_MS:
        return None
    keeps = _rounded(max(retention, now - first) + MILLISECONDS["d"]) if first is not None else retention + MILLISECONDS["d"]
    spans = first is None or aged.newest is None or aged.newest - first > rule.segment_ms
    several = spans or aged.size is None or aged.size >= rule.segment_size
    if not aged.younger:
        expires = (first if several else aged.newest) if first is not None else None
        return Headroom(aged.at_risk, now if expires is None else expires + retention, "age", certain=True, keeps=keeps)
    return Headroom(aged.at_risk, now if first is None else first + retention, "age", keeps=keeps) if several else None


def _rounded(milliseconds: int) -> int:
    """Return a time rounded up to full hours."""
    return -(-milliseconds // MILLISECONDS["h"]) * MILLISECONDS["h"]


def headroom_by_size(
    retention_bytes: int, size: int, place: Place, bounds: Bounds, *, oldest: int | None, now: int, within: int
) -> Headroom | None:
    """Return what retention by size will delete within ``within`` milliseconds; None if nothing is.

    The oldest segment is deleted as long as the segments after it still fill ``retention.bytes`` (``deleteRetentionSizeBreachedSegments``).
    This is an estimate: it assumes records of equal size, and that new ones arrive as fast as the unread ones did.

    :param size: of the partition in bytes
    :param oldest: timestamp of the first unread record
    """
    start, end = bounds.log_start_offset, bounds.log_end_offset
    unread = end - place[1]
    if unread <= 0 or end <= start or size <= 0:
        return None
    bytes_each = size / (end - start)
    behind = unread * bytes_each
    grown = behind * within / (now - oldest) if oldest is not None and oldest < now else 0.0
    over = behind + grown - retention_bytes
    if over <= 0:
        return None
    left = max(0.0, retention_bytes - behind)
    wait = 0 if grown <= 0 else int(left * within / grown)
    keeps = int(behind + grown * MILLISECONDS["d"] / within) if within else -1
    return Headroom(min(unread, max(1, int(over / bytes_each))), now + wait, "size", keeps=max(keeps, 2 * retention_bytes))


def age_text(milliseconds: int) -> str:
    """Format a length of time for people, in its two largest units: ``3d4h``, ``5m12s``, ``<1s``."""
    if milliseconds < MILLISECONDS["s"]:
        return "<1s" if milliseconds else "0s"
    large, small = next(pair for pair in (("d", "h"), ("h", "m"), ("m", "s"), ("s", "ms")) if milliseconds >= MILLISECONDS[pair[0]])
    count, rest = divmod(milliseconds, MILLISECONDS[large])
    more = rest // MILLISECONDS[small] if small != "ms" else 0
    return f"{count}{large}{f'{more}{small}' if more else ''}"


@dataclass(frozen=True)
class Limits:
    """Limits of lag, for scripts; None: no limit.

    :param lag: most records
    :param milliseconds: longest time
    """

    lag: int | None = None
    milliseconds: int | None = None

    def exceeded_by(self, row: Mapping[str, Any]) -> str:
        """Summarize how a row of lag exceeds the limits, or that its time is not known; empty if it does not.

        Without a commit, lag is not known and exceeds nothing.
        """
        too_many = self.lag is not None and row["lag"] is not None and row["lag"] > self.lag
        too_long = self.milliseconds is not None and row["time_lag_ms"] is not None and row["time_lag_ms"] > self.milliseconds
        unknown = self.time_unknown(row)
        if not (too_many or too_long or unknown):
            return ""
        topic = f"{row['topic']}:{row['partition']}" if "partition" in row else row.get("topic", "")
        what = [f"lag {row['lag']}"] if too_many else []
        what += [f"{age_text(row['time_lag_ms'])} behind"] if too_long else []
        what += [f"time not known{': ' if row.get('note') else ''}{row.get('note') or ''}"] if unknown else []
        return f"{' '.join(part for part in (row.get('group', ''), topic) if part)} ({', '.join(what)})"

    def time_unknown(self, row: Mapping[str, Any]) -> bool:
        """Whether nothing shows that a partition is within the limit of time: records are unread, and not known since when."""
        return self.milliseconds is not None and "partition" in row and bool(row["lag"]) and row["time_lag_ms"] is None

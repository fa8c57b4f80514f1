"""Offset arithmetic: where a reset would put a group, and why. Pure; gives the same offsets as Apache's ``kafka-consumer-groups``.

Apache clamps every offset that a strategy computes to what the log has, takes the log end if there is no record at or after a time, and
refuses to shift a partition without a commit (``OffsetsUtils`` of kafka-tools 4.3).
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from kops.core.errors import UsageProblem
from kops.core.models import Bounds, CommittedOffset
from kops.core.times import time_text

_STREAMS_MAGIC = (1, 2)
_STREAMS_LEAST_BYTES = 9


@dataclass(frozen=True)
class ToEarliest:
    """The log start."""


@dataclass(frozen=True)
class ToLatest:
    """The log end."""


@dataclass(frozen=True)
class ToCurrent:
    """The committed offset; the log end if there is no commit yet."""


@dataclass(frozen=True)
class ToOffset:
    """One offset.

    :param exact: refuse an offset outside the log instead of clamping it
    :param reason: why this offset
    """

    offset: int
    exact: bool = False
    reason: str = ""


@dataclass(frozen=True)
class ToTime:
    """The first record at or after a time, in milliseconds since the epoch.

    :param relative: whether the time depends on this machine's clock
    """

    milliseconds: int
    relative: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class ShiftBy:
    """A number of offsets forward, or back if negative."""

    count: int
    exact: bool = False


@dataclass(frozen=True)
class SkipRecords:
    """A number of records forward from the group's position; the log has to be read to find the offset."""

    count: int


@dataclass(frozen=True)
class Stay:
    """The partition keeps its commit, or has none; shown with the reason. Its bounds are not read."""

    reason: str


Strategy: TypeAlias = ToEarliest | ToLatest | ToCurrent | ToOffset | ToTime | ShiftBy


@dataclass(frozen=True)
class Landing:
    """The first offset at or after a time, as Kafka finds it, and what is there.

    :param timestamp: of the record or transaction marker there
    :param looked: records that were checked from there on, up to ``until``; None if none were
    :param record: the first of them: its offset and timestamp. At ``offset`` itself may be a transaction marker, which Kafka finds too
    :param earlier: how many of them are of before the time, and the first: its offset and timestamp
    """

    offset: int
    timestamp: int
    looked: int | None = None
    until: int = 0
    record: tuple[int, int | None] | None = None
    earlier: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class NewOffset:
    offset: int
    reason: str = ""


def resolve(strategy: Strategy, committed: CommittedOffset | None, bounds: Bounds, landing: Landing | None = None) -> NewOffset:
    """Return the offset that a strategy gives one partition, and why.

    :param committed: None if the group has no commit for the partition
    :param landing: for ToTime, where it is; None if no record is as late
    :raises UsageProblem: if the strategy gives no offset here
    """
    if isinstance(strategy, ToEarliest):
        return NewOffset(bounds.log_start_offset, "log start")
    if isinstance(strategy, ToLatest):
        return NewOffset(bounds.log_end_offset, "log end")
    if isinstance(strategy, ToTime):
        return _at(strategy.milliseconds, landing, bounds)
    if isinstance(strategy, ToOffset):
        return _within(strategy.offset, bounds, strategy.reason, exact=strategy.exact)
    if isinstance(strategy, ToCurrent):
        return NewOffset(bounds.log_end_offset, "no commit yet: log end") if committed is None else NewOffset(committed.offset, "as it is")
    if committed is None:
        raise UsageProblem("there is no committed offset to shift from", hint="name only partitions with commits, or another strategy")
    sign = "+" if strategy.count >= 0 else "-"
    return _within(committed.offset + strategy.count, bounds, f"{committed.offset} {sign} {abs(strategy.count)}", exact=strategy.exact)


def _at(milliseconds: int, landing: Landing | None, bounds: Bounds) -> NewOffset:
    time = time_text(milliseconds)
    if landing is None:
        return NewOffset(bounds.log_end_offset, f"{'empty' if bounds.empty else f'no record at or after {time}'}: log end")
    if landing.offset < bounds.log_start_offset:
        return NewOffset(bounds.log_start_offset, f"the first record at or after {time} is deleted: log start")
    if landing.looked is None:
        return NewOffset(landing.offset, f"where Kafka finds {time}: of {time_text(landing.timestamp)}")
    if landing.record is None:
        return NewOffset(landing.offset, f"no record at or after {time}: a transaction marker, and no record up to {landing.until}")
    offset, found = landing.record
    own = "without a timestamp" if found is None else f"of {time_text(found)}"
    if offset > landing.offset:
        return NewOffset(landing.offset, f"a transaction marker is there at or after {time}: the next record, {offset}, is {own}")
    return NewOffset(landing.offset, f"first record at or after {time}{'' if found == milliseconds else f': {own}'}")


def _within(offset: int, bounds: Bounds, reason: str, *, exact: bool) -> NewOffset:
    """Clamp an offset to the log, or refuse it if ``exact``."""
    if bounds.log_start_offset <= offset <= bounds.log_end_offset:
        return NewOffset(offset, reason)
    where = "below the log start" if offset < bounds.log_start_offset else "past the log end"
    nearest = bounds.log_start_offset if offset < bounds.log_start_offset else bounds.log_end_offset
    if exact:
        has = f"{bounds.log_start_offset} to {bounds.log_end_offset}"
        raise UsageProblem(
            f"offset {offset} is {where}: the log has {has}", hint="`kops offsets reset --to-offset N` takes the nearest one"
        )
    return NewOffset(nearest, f"{reason} = {offset} is {where}: clamped" if reason else f"{offset} is {where}: clamped")


class Lag(NamedTuple):
    """How far a group is behind in one partition.

    :param lag: offsets left to read, an upper bound of the records: not every offset has one; None without a commit or bounds
    :param note: what is unusual
    """

    lag: int | None
    note: str = ""


def lag_of(committed: CommittedOffset | None, bounds: Bounds) -> Lag:
    """Return the lag: log end - max(committed, log start), as records below the log start are gone."""
    if committed is None:
        return Lag(None, "no commit yet")
    if committed.offset > bounds.log_end_offset:
        return Lag(0, f"committed {committed.offset - bounds.log_end_offset} past the end")
    lost = bounds.log_start_offset - committed.offset
    return Lag(bounds.log_end_offset - max(committed.offset, bounds.log_start_offset), f"{lost} below the log start" if lost > 0 else "")


def is_streams_metadata(metadata: str | None) -> bool:
    """Whether this is metadata that Kafka Streams stores with an offset: ``TopicPartitionMetadata``, version 1 or 2."""
    try:
        content = base64.b64decode((metadata or "").encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return False
    return len(content) >= _STREAMS_LEAST_BYTES and content[0] in _STREAMS_MAGIC


def metadata_after(before: CommittedOffset | None, offset: int) -> str:
    """Return the metadata to store with an offset that is moved.

    Apache's tools always drop it. Kafka Streams keeps the partition's stream time and the windows it has emitted there: on a move
    forward they stay valid, and dropping them would emit every closed window again; on a move back they come from the future, and the
    records in between would find their windows closed. What other applications store belongs to the offset it came with.
    """
    keeps = before is not None and offset >= before.offset and is_streams_metadata(before.metadata)
    return before.metadata or "" if before is not None and keeps else ""

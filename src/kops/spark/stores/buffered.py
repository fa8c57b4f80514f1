"""Compares the windows that are open with those that the buffer of ``suppress()`` holds back. DataFrame to DataFrame.

``KTableSuppressProcessor``: with ``untilWindowCloses`` a result waits until the stream time has passed the end of its window and the grace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kops.core.statefile import Windows
from kops.core.statefile.models import SESSION
from kops.spark.frames import expression
from kops.spark.staging.difference import compacted_view
from kops.spark.staging.outputs import expected_rows
from kops.spark.windows.keys import by_partition, suffix_of, time_of

if TYPE_CHECKING:
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.reading.source import KafkaSource

_TIME = "cast(conv(hex(substring(value, length(value) - 7, 8)), 16, -10) as bigint)"
"""SQL of when a result is to be sent, with which a value of the buffer ends (``BufferValue.serialize``)."""


@dataclass(frozen=True)
class Unbuffered:
    """Windows whose results would not be sent.

    :param open: number of windows that have not closed
    :param missing: how many of them the buffer does not hold
    :param first: keys of the first of these, with their windows
    """

    open: int
    missing: int
    first: tuple[bytes, ...] = ()


def unbuffered(
    kafka: KafkaSource, stage: str, changelog: TopicRange, buffer: TopicRange, windows: Windows, *, limit: int
) -> Unbuffered | None:
    """Return which open windows a buffer does not hold; None where its results do not wait until windows close, but for a time.

    The stream time of a partition is taken from the windows themselves, so it is at most what the application had seen.

    :param stage: of the difference to the changelog
    """
    ends = time_of(windows) if windows.kind == SESSION else f"{time_of(windows)} + {windows.size_ms}"
    waits = windows.close_ms if windows.kind == SESSION else windows.grace_ms
    rows = expected_rows(kafka, stage, changelog).where(f"length(key) >= {suffix_of(windows)}").selectExpr("*", f"{ends} as end")
    latest = "end" if windows.kind == SESSION else "timestamp"  # a session's record has the time of what came last, not of the latest
    times = {row.partition: row.time for row in rows.groupBy("partition").agg(expression(f"max({latest}) as time")).collect()}
    key = "key" if windows.kind == SESSION else "substring(key, 1, length(key) - 4)"  # without the number at its end
    is_open = rows.where(f"end > {by_partition(times)} - {waits}").selectExpr("partition", f"{key} as waiting", "end", "key")
    held = compacted_view(kafka.newest(buffer)).where("value is not null").selectExpr("partition", "key as waiting", f"{_TIME} as sent")
    found = is_open.join(held, ["partition", "waiting"], "left")
    missing = "sent is null"
    counts = found.selectExpr("count(*) as open", f"count_if({missing}) as missing", "count_if(sent != end) as timed").collect()[0]
    if counts.timed and counts.timed == counts.open - counts.missing:
        return None
    first = found.where(missing).orderBy("partition", "key").limit(limit).collect() if counts.missing else []
    return Unbuffered(counts.open, counts.missing, tuple(bytes(row.key) for row in first))

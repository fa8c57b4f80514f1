"""What a store should hold, in the same form for all types of stores, and how its records were judged on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kops.core.errors import Refused
from kops.spark.driver.observing import Watch, watched
from kops.spark.job import FATES, NEGATIVE_TIME, UNDECODABLE, ReadCounts
from kops.spark.staging.difference import MIXED
from kops.spark.stores.prepare import PreparedRecords

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kops.spark.job import Job

_NAMED = 5


@dataclass(frozen=True)
class View:
    """What a store should hold.

    :param rows: ``kops.spark.staging.difference.COLUMNS``, with every partition filled in; a null value is a key that should not be there
    :param seen: returns what was seen; call once, after ``rows`` was computed completely. Raises for undecodable records
    :param live: removes from the compacted view of the changelog what no longer counts, such as expired windows
    :param done: releases what the computation holds
    :param held: what the changelog holds now, in the form of ``difference.compacted_view``; None: the last record of every key
    :param empty: a value that the changelog may hold although it is not in the rows: that of an empty group
    """

    rows: DataFrame
    seen: Callable[[], ReadCounts]
    live: Callable[[DataFrame], DataFrame] = lambda current: current
    done: Callable[[], object] = lambda: None
    held: Callable[[], DataFrame] | None = None
    empty: bytes | None = None


def observed_records(prepared: PreparedRecords) -> tuple[DataFrame, Watch]:
    """Return the judged records, counted as they pass through: ``read``, each of ``FATES``, and ``latest``."""
    fates = {name: f"count_if(fate = {number})" for number, name in FATES.items()}
    latest = f"max(if(fate in ({UNDECODABLE}, {NEGATIVE_TIME}), null, timestamp_ms))"
    return watched(prepared.judged, {"read": prepared.records, **fates, "latest": latest})


def observed_keys(rows: DataFrame) -> tuple[DataFrame, Watch]:
    """Return the rows of a view, counted as they pass through: ``keys`` and ``mixed``."""
    counts = {"keys": "value is not null", "mixed": f"doubt = {MIXED}"}
    return watched(rows, {name: f"count_if({condition})" for name, condition in counts.items()})


def seen_of(prepared: PreparedRecords, job: Job, of_records: Watch, of_keys: Watch) -> ReadCounts:
    """Return what two observations saw.

    :raises UndecodableInput: naming the first records that are not in the declared formats, unless they are to be skipped
    """
    fates, keys = of_records.get, of_keys.get
    refuse_undecodable(prepared, job, fates["undecodable"])
    dropped = {name: fates[name] for name in FATES.values()}
    return ReadCounts(fates["read"], dropped, keys["keys"], keys["mixed"], latest=fates["latest"])


class UndecodableInput(Refused):
    """Records whose bytes are not in the formats that the state file declares; nothing was changed."""

    slug = "undecodable_record"


def refuse_undecodable(prepared: PreparedRecords, job: Job, count: int) -> None:
    """Refuse to continue if there are records that are not in the declared formats, unless they are to be skipped.

    :raises UndecodableInput: naming the first of them
    """
    if not count or job.skip_undecodable:
        return
    topic, source = job.source.topic, job.store.source
    first = prepared.undecodable.orderBy("partition", "offset").limit(_NAMED).collect()
    places = [f"{topic}:{row.partition} at offset {row.offset} ({row.part})" for row in first]
    more = f" and {count - len(places)} more" if count > len(places) else ""
    plural = "record is" if count == 1 else "records are"
    formats = f"key {source.key}, value {source.value}{', and a timestamp that is not null' if source.extracts else ''}"
    raise UndecodableInput(
        f"store {job.store.name}: {count} {plural} not of the formats of {job.state_file.path} ({formats}): {', '.join(places)}{more}",
        hint="correct the formats, or, when the application itself passes over such records, use --on-error skip",
        topic=topic,
        count=count,
        records=[{"partition": row.partition, "offset": row.offset, "part": row.part} for row in first],
    )

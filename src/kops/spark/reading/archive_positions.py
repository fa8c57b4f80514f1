"""Offsets in a topic by the number of records of given producers before them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

    from kops.gateways.wire.batch_consumer import BatchConsumer


def positions(
    session: SparkSession,
    topic: str,
    settings: Mapping[str, str],
    *,
    tails: Mapping[int, tuple[int, int]],
    wanted: Mapping[int, Sequence[int]],
    producers: Sequence[int],
) -> dict[tuple[int, int], int]:
    """Return the offset after the first n records of these producers: that of their next record, or the one after the last.

    :param settings: librdkafka's, secrets included: never to be shown
    :param tails: partition -> the offsets to search
    :param wanted: partition -> numbers of records, ascending
    :return: (partition, records) -> offset, for those that exist
    """
    places, given, ours = sorted(wanted), dict(settings), frozenset(producers)

    def look(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        from kops.gateways.wire.batch_consumer import BatchConsumer

        for number in (row for batch in batches for row in batch.column(0).to_pylist()):
            partition = places[number]
            found = list(
                _offsets_of(BatchConsumer(topic, given, read_committed=True), partition, tails[partition], wanted[partition], ours)
            )
            rows = [[partition] * len(found), [records for records, _ in found], [offset for _, offset in found]]
            arrays = [pyarrow.array(row, pyarrow.int64()) for row in rows]
            yield pyarrow.RecordBatch.from_arrays(arrays, ["partition", "records", "offset"])

    if not places:
        return {}
    rows = session.range(0, len(places), 1, len(places)).mapInArrow(look, "partition bigint, records bigint, offset bigint").collect()
    return {(row.partition, row.records): row["offset"] for row in rows}


def _offsets_of(
    source: BatchConsumer, partition: int, tail: tuple[int, int], wanted: Sequence[int], producers: frozenset[int]
) -> Iterator[tuple[int, int]]:
    """Yield (records, offset); a batch is decoded only if compaction removed records from it."""
    from kops.formats.batches.columns import decode

    counted, left, after = 0, list(wanted), None
    try:
        for data, batches in source.batches(partition, *tail):
            for batch in batches:
                if batch.producer_id not in producers:
                    continue
                whole = batch.last_offset - batch.base_offset + 1 == batch.records
                while left and left[0] < counted + batch.records:
                    at = left[0] - counted
                    yield left.pop(0), batch.base_offset + at if whole else int(decode(data, [batch]).offsets[at])
                counted, after = counted + batch.records, batch.last_offset + 1
    finally:
        source.close()
    if after is not None and left and left[0] == counted:
        yield counted, after

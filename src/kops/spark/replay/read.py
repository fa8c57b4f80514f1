"""From batches of the source to rounds, without Spark's rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from kops.formats.batches.columns import decode, offsets_between
from kops.formats.batches.copy import can_go_on, is_compressed
from kops.formats.batches.frames import frames_of
from kops.formats.batches.header import Batch, is_sound
from kops.gateways.wire.batch_consumer import BatchConsumer
from kops.spark.replay.placed import ByKey
from kops.spark.replay.rounds import Merged, Places, Round, WholeBatch

_SMALL = 64 << 10
"""Bytes of a batch below which a request of its own costs more than to decode it, and to encode many of them as one."""


def rounds_of(source: BatchConsumer, partition: int, start: int, end: int, places: Places) -> Iterator[Round]:
    """Yield the records of a range: batches as they are where they may be, others opened.

    :raises kops.formats.batches.header.UnreadableBatch: when a batch is damaged
    """

    def whole(batch: Batch) -> bool:
        inside = start <= batch.base_offset and batch.last_offset < end
        size = batch.end - batch.at
        return not places.by_key and inside and can_go_on(batch) and size <= places.most and (size >= _SMALL or is_compressed(batch))

    for data, batches in source.batches(partition, start, end):
        for goes_on, some in groupby(batches, whole):
            run = list(some)
            if goes_on and all(is_sound(data, batch) for batch in run):
                yield from (WholeBatch(data, batch, partition, places) for batch in run)
                continue
            after = min(end, run[-1].last_offset + 1)
            if places.by_key:
                columns = offsets_between(decode(data, run), start, end)
                if len(columns):
                    yield ByKey(columns, partition, after, places)
            else:
                frames = offsets_between(frames_of(data, run), start, end)
                if len(frames):
                    yield Merged(frames, partition, after, places)

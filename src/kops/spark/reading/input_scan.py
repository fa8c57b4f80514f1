"""Scans a topic for offsets without a record, and for aborted transactions, by the headers of its batches only."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from kops.gateways.wire.batch_consumer import BatchConsumer
from kops.spark.reading.input_seen import InputSeen

MOST_BYTES = 128 << 20
"""Maximum number of bytes fetched, compressed: a fraction of a second on one machine."""


def scan(settings: Mapping[str, str], topic: str, ranges: Mapping[int, tuple[int, int]]) -> dict[int, InputSeen]:
    """Return what was seen in partitions, up to the first gap of each; partitions beyond the byte limit are left out.

    :param settings: librdkafka's, for which ``connections.can_connect`` is true
    :param ranges: partition -> (first offset, the offset after the last)
    """
    found, left = {}, MOST_BYTES
    for partition, (start, end) in sorted(ranges.items()):
        with contextlib.closing(BatchConsumer(topic, settings)) as consumer:
            for data, _ in consumer.batches(partition, start, end):
                left -= len(data)
                if consumer.gaps.found or left < 0:
                    break
            if left >= 0 or consumer.gaps.found:
                found[partition] = InputSeen(tuple(consumer.gaps.found), aborted=consumer.aborted)
        if left < 0:
            break
    return found

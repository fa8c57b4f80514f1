"""Whole record batches as a topic has them, undecoded."""

from __future__ import annotations

import time
from collections.abc import Iterator

from kops.formats.record_columns import Batch, batches_of, without_aborted
from kops.spark.batch_consumer import PATIENCE_SECONDS, BatchConsumer


class RawBatches(BatchConsumer):
    """Reads ranges of one topic, batch by batch."""

    def batches(self, partition: int, start: int, end: int) -> Iterator[tuple[bytes, list[Batch]]]:
        """Yield what each fetch brought of the batches with records from ``start`` to before ``end``; the outer ones may reach beyond.

        :raises RecordsLost: when the log begins after ``start``
        :raises TimeoutError: when the leader does not answer, or the records do not become readable, in time
        """
        at, deadline = start, time.monotonic() + PATIENCE_SECONDS
        while at < end:
            answer = self._fetch(partition, at)
            found = batches_of(answer.data) if answer else []
            if answer is None or not found:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{self.topic}:{partition} gave no records from offset {at} on within {PATIENCE_SECONDS:g} s")
                continue
            at, deadline = found[-1].last_offset + 1, time.monotonic() + PATIENCE_SECONDS
            inside = [batch for batch in found if batch.base_offset < end and batch.last_offset >= start]
            kept = without_aborted(answer.data, inside, answer.aborted)
            if kept:
                yield answer.data, kept

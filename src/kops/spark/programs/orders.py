"""The orders in which a task of an application's own program is run, and what they show to depend on the order.

Each keeps the order of every partition of every topic, and of what one task wrote to a partition, which is what Kafka guarantees. So each
may have been the one that there was; that several give the same is evidence that all do, and no proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kops.core.streams.program_doubts import BACKWARD, BY_TIME, FORWARD
from kops.formats import runner_frames as frames
from kops.spark.columns.difference import stage_rows

if TYPE_CHECKING:
    import pyarrow

HOW: Mapping[str, Mapping[str, str]] = {
    BY_TIME: {},
    FORWARD: {"commit.ms": "0", "punctuate.records": "1000"},
    BACKWARD: {"cache.bytes": "0"},
}
"""What differs between orders besides: caches are flushed as configured, at the end, and at once; punctuators are called as often."""
_EXAMPLES = 5


def by_time(names: Sequence[str], inputs: Sequence[Iterator[frames.Batch]], answers: Mapping[str, int]) -> Iterator[tuple[int, bytes]]:
    """Yield what is sent: batches of the topic that lags behind in time, so that the runner holds few records of the others.

    :param answers: topics with answers of foreign-key joins, which come last, in the order of these numbers
    """
    for name in answers.keys() - {*names}:
        yield frames.END, frames.encoded_map({"topic": name})
    left = dict(zip(names, inputs, strict=True))
    at = dict.fromkeys(names, -1)
    while left:
        name = min(left, key=lambda each: (answers.get(each, 0), at[each]))
        batch = next(left[name], None)
        if batch is not None:
            at[name] = int(batch.timestamp.max())
            yield frames.RECORDS, frames.encoded_batch(batch)
            continue
        del left[name]
        yield frames.END, frames.encoded_map({"topic": name})


def one_by_one(
    names: Sequence[str], inputs: Sequence[Iterator[frames.Batch]], answers: Mapping[str, int], *, backward: bool
) -> Iterator[tuple[int, bytes]]:
    given = list(zip(names, inputs, strict=True))
    for _, each in sorted(reversed(given) if backward else given, key=lambda one: answers.get(one[0], 0)):
        for batch in each:
            yield frames.RECORDS, frames.encoded_batch(batch)


class Differing:
    """Keys that a task wrote otherwise in another order."""

    def __init__(self) -> None:
        self._values: set[bytes] = set()
        self._times: set[bytes] = set()
        self._elsewhere: set[bytes] = set()

    def add(self, first: pyarrow.Table, other: pyarrow.Table, partition: int) -> None:
        for keys, timed in ((self._values, False), (self._times, True)):
            for batch in stage_rows(first, other, partition, timed=timed):
                keys.update(batch.column("key").to_pylist())
                self._elsewhere.update(batch.filter(batch.column("after_value").is_null()).column("key").to_pylist())

    @property
    def keys(self) -> set[bytes]:
        return self._values | self._times

    @property
    def facts(self) -> dict[str, Any]:
        times = self._times - self._values
        examples = sorted(self._values or times)[:_EXAMPLES]
        counts = {"unsure": len(self._values), "unsure_times": len(times), "elsewhere": len(self._elsewhere)}
        return {**counts, "examples": [key.hex() for key in examples]}

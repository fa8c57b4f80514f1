"""The orders in which a task of an application's own program is run, and what they show to depend on the order.

Each keeps the order of every partition of every topic, and of what one task wrote to a partition, which is what Kafka guarantees. So each
may have been the one that there was; that several give the same is evidence that all do, and no proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
_MOST_KEYS = 100_000
EXAMPLES = 5
"""Keys that are shown of many."""


def by_time(names: Sequence[str], inputs: Sequence[Iterator[frames.Batch]], answers: Mapping[str, int]) -> Iterator[frames.Batch | str]:
    """Yield what is sent: batches of the topic that lags behind in time, so that the runner holds few records of the others.

    A topic that has ended is yielded by its name.

    :param answers: topics with answers of foreign-key joins, which come last, in the order of these numbers
    """
    for name in answers.keys() - {*names}:
        yield name
    left = dict(zip(names, inputs, strict=True))
    at = dict.fromkeys(names, -1)
    while left:
        name = min(left, key=lambda each: (answers.get(each, 0), at[each]))
        batch = next(left[name], None)
        if batch is not None:
            at[name] = int(batch.timestamp.max())
            yield batch
            continue
        del left[name]
        yield name


def one_by_one(
    names: Sequence[str], inputs: Sequence[Iterator[frames.Batch]], answers: Mapping[str, int], *, backward: bool
) -> Iterator[frames.Batch | str]:
    given = list(zip(names, inputs, strict=True))
    for _, each in sorted(reversed(given) if backward else given, key=lambda one: answers.get(one[0], 0)):
        yield from each


class DifferingKeys:
    """Keys that a task wrote otherwise when it was run in another way: how many, and the first of them.

    :param keys: of values, or times, that differ; of very many the first
    """

    def __init__(self) -> None:
        self.keys = set[bytes]()
        self._values, self._times, self._elsewhere = 0, 0, 0
        self._of_values: list[bytes] = []
        self._of_times: list[bytes] = []

    def add(self, first: pyarrow.Table, others: Sequence[pyarrow.Table], partition: int) -> set[bytes]:
        """Compare what the first order and the others wrote of some keys, and return those that differ."""
        values, times, elsewhere = set[bytes](), set[bytes](), set[bytes]()
        for other in others:
            for keys, timed in ((values, False), (times, True)):
                for batch in stage_rows(first, other, partition, timed=timed):
                    keys.update(batch.column("key").to_pylist())
                    elsewhere.update(batch.filter(batch.column("after_value").is_null()).column("key").to_pylist())
        times -= values
        self._values, self._times, self._elsewhere = self._values + len(values), self._times + len(times), self._elsewhere + len(elsewhere)
        self._of_values, self._of_times = first_keys(self._of_values, values), first_keys(self._of_times, times)
        if len(self.keys) < _MOST_KEYS:
            self.keys |= values | times
        return values | times

    @property
    def facts(self) -> dict[str, Any]:
        counts = {"unsure": self._values, "unsure_times": self._times, "elsewhere": self._elsewhere}
        return {**counts, "examples": [key.hex() for key in self._of_values or self._of_times]}


def first_keys(some: Iterable[bytes], more: Iterable[bytes]) -> list[bytes]:
    return sorted((*some, *more))[:EXAMPLES]

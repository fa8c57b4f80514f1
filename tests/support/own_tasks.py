"""What tasks of the programs of ``Programs.java`` get, and what they write."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from kops.formats import runner_frames as frames
from support.own_code import Row

NO_CACHE = {"statestore.cache.max.bytes": "0", "cache.max.bytes.buffering": "0"}
ONE_EACH = dict.fromkeys(("in", "in2", "other", "out", "orders", "customers"), 1)

INPUTS = {
    "count": ["in"],
    "sum": ["in"],
    "untimed": ["in"],
    "exactly_once": ["in"],
    "window": ["in"],
    "session": ["in"],
    "suppress": ["in"],
    "stream_join": ["in", "other"],
    "outer_join": ["in", "other"],
    "tables": ["in", "other"],
    "processor": ["in", "other"],
}


def records(
    topic: str, count: int, value: Callable[[int], bytes] = lambda at: b"%d" % at, *, seed: int = 1, first: int = 0, step: int = 7000
) -> list[Row]:
    """Return records in about the order of their time: some half a minute late, some with headers, few keys."""
    chosen, time, made = random.Random(f"{topic} {seed}"), 1_000_000, []
    for at in range(count):
        time += chosen.randrange(step)
        headers: frames.Headers = (("h", b"%d" % at), ("h", None)) if at % 3 == 0 else ()
        late = chosen.choice([0, 0, 0, 30_000])
        made.append(Row(topic, 0, first + at, time - late, b"k%d" % chosen.randrange(5), value(at), headers))
    return made


def shuffled(*several: Iterable[Row], seed: int = 1) -> list[Row]:
    """Return records of several topics in some order; those of one topic stay in theirs."""
    chosen, left, made = random.Random(seed), [list(one) for one in several], []
    while any(left):
        made.append(chosen.choice([one for one in left if one]).pop(0))
    return made


def by_topic(rows: Iterable[Row]) -> dict[str, list[tuple[bytes | None, bytes | None, int, frames.Headers]]]:
    """Return what was written, without partitions and offsets."""
    topics: dict[str, list[tuple[bytes | None, bytes | None, int, frames.Headers]]] = {}
    for row in rows:
        topics.setdefault(row.topic, []).append((row.key, row.value, row.timestamp, row.headers))
    return topics


def last(rows: Iterable[Row]) -> dict[tuple[str, bytes | None], tuple[bytes | None, int, frames.Headers]]:
    """Return the last row of each key of each topic."""
    return {(row.topic, row.key): (row.value, row.timestamp, row.headers) for row in rows}


def changes(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of changelogs."""
    return [row for row in rows if row.topic.endswith("-changelog")]

"""Records with new parts: byte for byte what encoding them from their lists of keys, values and headers gives."""

import random

import pyarrow
import pytest

from kops.formats.batches.changes import NewContent, with_new
from kops.formats.batches.columns import decode
from kops.formats.batches.copy import columns_of_table
from kops.formats.batches.encode import encode
from kops.formats.batches.frames import compacted, frames_of
from kops.formats.batches.header import Producer, batches_of
from kops.formats.batches.merge import merged

WHO = Producer(7, 3, 11, transactional=True)
HEADERS = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))
SOME = [None, b"", b"k", b"x" * 63, b"y" * 64, b"z" * 900]
NAMES = ["a", "by", "why", "ä" * 40]


def records(count, seed, *, headers):
    rng = random.Random(seed)

    def some_headers():
        return [(rng.choice(NAMES), rng.choice(SOME)) for _ in range(rng.choice((0, 0, 1, 3, 70)))] if headers else []

    return [[rng.choice(SOME), rng.choice(SOME), 1_760_000_000_000 + rng.randrange(10**6), some_headers()] for _ in range(count)]


def encoded(rows):
    """Encode records from lists, the way of rows that Spark made."""
    headers = [[{"key": name, "value": value} for name, value in row[3]] for row in rows]
    kinds = (("key", pyarrow.binary()), ("value", pyarrow.binary()), ("timestamp_ms", pyarrow.int64()))
    found = {name: pyarrow.array([row[index] for row in rows], kind) for index, (name, kind) in enumerate(kinds)}
    return encode(columns_of_table(pyarrow.table({**found, "headers": pyarrow.array(headers, HEADERS)})), WHO)


def binary(values):
    return pyarrow.array(values, pyarrow.binary())


@pytest.mark.parametrize("headers", [False, True])
@pytest.mark.parametrize(
    "what", [(), ("key",), ("value",), ("headers",), ("key", "value"), ("value", "times"), ("key", "value", "headers")]
)
def test_what_is_set_is_new_and_all_else_stays(what, headers):
    rows, rng = records(300, len(what), headers=headers), random.Random(1)
    data = encoded(rows)
    frames = frames_of(data, batches_of(data))
    new = {name: [rng.choice(SOME) for _ in rows] for name in ("key", "value", "by", "new")}
    times = decode(data, batches_of(data)).timestamps + 5
    new["why"] = [b"same"] * len(rows)
    set_headers = {"by": binary(new["by"]), "why": b"same", "new": binary(new["new"])} if "headers" in what else {}
    parts = {name: binary(new[name]) for name in ("key", "value") if name in what}
    changed = with_new(frames, NewContent(**parts, timestamps=times if "times" in what else None, headers=set_headers))
    for index, row in enumerate(rows):
        row[0] = new["key"][index] if "key" in what else row[0]
        row[1] = new["value"][index] if "value" in what else row[1]
        row[2] += 5 * ("times" in what)
        if "headers" in what:
            added = [(name, new[name][index]) for name in set_headers if new[name][index] is not None]
            row[3] = [pair for pair in row[3] if pair[0] not in set_headers] + added
    assert merged(changed, WHO) == encoded(rows)


def test_few_records_do_not_hold_on_to_all():
    rows = records(2000, 3, headers=True)
    data = encoded(rows)
    few = frames_of(data, batches_of(data)).where(slice(5, 2000, 100))
    small = compacted(few)
    assert len(small.content) == int((few.ends - few.at).sum())
    assert merged(small, WHO) == merged(few, WHO) == encoded(rows[5::100])

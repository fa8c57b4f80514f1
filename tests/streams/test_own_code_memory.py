"""Stores and last rows that outgrow the memory of their JVM: they go to RocksDB, and nothing that a task writes is another."""

import random

import pytest

from support.own_code import Host, Row
from support.own_tasks import INPUTS, NO_CACHE, ONE_EACH, by_topic, changes, last, records, shuffled

pytestmark = pytest.mark.streams

VERSIONS = (*(pytest.param(version, marks=pytest.mark.long) for version in ("2.8.2", "3.3.2", "3.6.2", "3.9.1", "4.1.1", "4.3.1")), "4.4.0")
EVERY_DAY = ("count", "session", "tables", "processor")
"""Programs that are not long variants; the last has a test of its own."""
NOTHING_IN_MEMORY = "-Dkops.memory.bytes=0"
A_PART_IN_MEMORY = "-Dkops.memory.bytes=600000"
"""Two tables of the first size, and neither of the second."""


@pytest.fixture(scope="module", params=VERSIONS)
def host(request):
    with Host(request.param, [NOTHING_IN_MEMORY]) as started:
        yield started


@pytest.mark.parametrize(
    "program", [*EVERY_DAY[:-1], *(pytest.param(name, marks=pytest.mark.long) for name in INPUTS if name not in EVERY_DAY)]
)
def test_a_task_without_memory_writes_what_the_driver_says(host, program):
    given = shuffled(*(records(topic, 120) for topic in INPUTS[program]))
    expected = by_topic(host.driven(program, given, NO_CACHE))
    host.start(program, ONE_EACH, NO_CACHE)
    written, facts = host.task(0, 0, given, commit_records="1", keep="all")
    assert by_topic(written) == expected
    if program in ("count", "sum", "exactly_once", "tables"):  # windows and sessions are in RocksDB anyway
        assert facts["on_disk"]
    host.start(program, ONE_EACH, NO_CACHE)  # the tasks of a program share what an outer join knows of the clock
    only_last, facts = host.task(0, 0, given, commit_records="1", changelogs="last")
    assert last(only_last) == {key: row for key, row in last(written).items() if key[0].endswith("-changelog")}
    assert {topic for topic, _ in last(only_last)} <= {*facts["on_disk"].split(",")}
    assert [row.offset for row in only_last] == [row.offset for row in sorted(only_last, key=lambda row: written_at(row, written))]


def written_at(row, written):
    """Return when a task wrote a row, of the rows that it wrote."""
    return next(at for at, one in enumerate(written) if (one.topic, one.offset) == (row.topic, row.offset))


def test_a_store_without_memory_is_not_told_from_one_in_rocksdb(host):
    given = shuffled(records("in", 60), records("other", 60))
    rows = []
    for memory in ("true", "false"):
        host.start("iterates", ONE_EACH, NO_CACHE)
        rows.append(host.task(0, 0, given, memory=memory))
    assert rows[0][0] == rows[1][0]
    assert rows[0][1]["on_disk"]


@pytest.mark.parametrize(("program", "count"), [pytest.param("count", 6000, marks=pytest.mark.long), ("processor", 1800)])
def test_what_outgrows_the_memory_in_the_middle_is_whole(program, count):
    """The processor iterates over its store before, which sorts it, and after: all that it holds then is deleted."""
    chosen = random.Random(5)
    given = [Row("in", 0, at, 1_000_000 + at, b"key-%030d" % chosen.randrange(4000), b"v") for at in range(count)]
    given += [Row("in", 0, count + at, 1_100_000 + at, b"key-%030d" % at, b"w") for at in range(20)]
    with Host("4.4.0", [A_PART_IN_MEMORY]) as host:
        expected = last(changes(host.driven(program, given, NO_CACHE)))
        host.start(program, ONE_EACH, NO_CACHE)
        _, facts = host.task(0, 0, given[:100], changelogs="last")
        assert facts["on_disk"] == ""
        written, facts = host.task(0, 0, given, changelogs="last")
        assert facts["on_disk"] == {"count": "app-counts-changelog", "processor": "kept"}[program]
        assert last(written) == expected
        assert len(written) == len(expected)

"""How much memory a run of a program may take, and what its state is estimated at."""

from types import SimpleNamespace

import pytest

from kops.core.models import Bounds, TopicPartition
from kops.operations.state.input_offsets import ArchiveShare, InputOffsets
from kops.operations.state.own_code import memory as own_code_memory
from kops.operations.state.own_code.memory import Estimate, Memory, estimate, memory_for, tasks_at_a_time

GB = 1 << 30
MEMORY = Memory(8 * GB, 2, 3 * GB)
STATE_FILE = SimpleNamespace(exactly_once=False, reads_committed=False)


def engine(master="local[2]", **conf):
    return SimpleNamespace(master=master, services=SimpleNamespace(connection=SimpleNamespace(spark=SimpleNamespace(conf=conf))))


def store(bounds, *, inputs=("in",), **more):
    """Return the facts of a store with a task for each partition of its changelog, and 1,000 records in each input partition."""
    named = SimpleNamespace(name="sums", changelog="changelog", window=None, inputs=[SimpleNamespace(topic=name) for name in inputs])
    whole = {"lossy": [], "damaged": frozenset(), "base": None, "starts": {}}
    places = {TopicPartition(name, number): Bounds(0, 1_000) for name in inputs for number in range(len(bounds))}
    given = {"partitions": len(bounds), "changelog_bounds": dict(enumerate(bounds)), "input_bounds": places}
    return SimpleNamespace(**{**whole, **given, "store": named, **more})


@pytest.fixture
def estimated(monkeypatch):
    """Estimate a store of which each record of the changelog has 100 bytes, and each of the input 20."""

    def run(found, *, archived=(), sizes=True, tasks=None):
        def of(_services, ranges):
            places = [TopicPartition(wanted.topic, number) for wanted in ranges for number in wanted.ranges]
            return {place: 100.0 if place.topic == "changelog" else 20.0 for place in places} if sizes else None

        monkeypatch.setattr(own_code_memory, "sizes_of", of)
        cut = InputOffsets(dict.fromkeys(found.input_bounds, 1_000), {}, archived=archived)
        return estimate(engine(), STATE_FILE, [found], cut, MEMORY, tasks=tasks)

    return run


def test_of_what_is_free_the_jvms_get_half_after_spark(monkeypatch):
    monkeypatch.setattr(own_code_memory, "free_memory", lambda: 8 * GB)
    many = [store([Bounds(0, 9)] * 6)]
    assert memory_for(engine(), many) == Memory(8 * GB, 2, 3 * GB // 4)
    assert memory_for(engine(**{"spark.driver.memory": "4096m"}), many).heap == GB // 2
    assert memory_for(engine(), [store([Bounds(0, 9)])]) == Memory(8 * GB, 1, 3 * GB // 2)
    assert memory_for(engine(**{"spark.driver.memory": "16G"}), many).heap == GB // 4, "less is not worth a start"


def test_how_many_run_at_a_time():
    assert tasks_at_a_time("local", 64) == 1
    assert tasks_at_a_time("local[3]", 64) == 3
    assert tasks_at_a_time("local[3, 4]", 64) == 3
    assert 1 <= tasks_at_a_time("local[*]", 64) <= 64
    assert tasks_at_a_time("local[3]", 2) == 2
    assert tasks_at_a_time("spark://host:7077", 64) == 0


def test_a_partition_that_is_whole_tells_of_the_others(estimated):
    found = estimated(store([Bounds(0, 0), Bounds(0, 50), Bounds(0, 40)]))
    assert found.state == 2 * 50 * (4 * 100 + 200)
    assert found.seen == "the sizes of changelogs"


def test_after_a_move_each_task_has_another_part(estimated):
    assert estimated(store([Bounds(0, 40)] * 3), tasks=12).state == 2 * 10 * (4 * 100 + 200)
    assert estimated(store([Bounds(0, 0)] * 4), tasks=2).state == 2 * 2_000 * (4 * 20 + 200)


def test_where_none_is_the_input_tells_the_most_that_it_can_be(estimated):
    as_input = 2 * 1_000 * (4 * 20 + 200)
    for found in (
        estimated(store([Bounds(0, 0)] * 3)),
        estimated(store([Bounds(40, 50)], lossy=[0])),
        estimated(store([Bounds(0, 50)], damaged=frozenset({0}))),
    ):
        assert (found.state, found.seen) == (as_input, "the size of the input, as if each record had a key of its own")
    older = ArchiveShare("in", "/archive", 3_000, 60_000, 0, None)
    assert estimated(store([Bounds(0, 0)] * 3), archived=(older,)).state == 2 * as_input
    assert estimated(store([Bounds(0, 0)] * 3, inputs=("in", "other"))).state == 2 * as_input
    windows = SimpleNamespace(**{**vars(store([]).store), "window": object()})
    assert estimated(store([Bounds(0, 0)] * 3, store=windows)).state == 2 * 1_000 * (3 * 20 + 160)


def test_what_a_worker_puts_into_a_file_takes_the_memory_of_a_part(estimated):
    rows = 100_000_000
    in_jvm, in_worker = rows * (2 * 100 + 80), rows * (2 * 100 + 120)
    assert estimated(store([Bounds(0, rows)])).state == 2 * (in_jvm + (512 << 20) + in_worker // 16)


def test_what_nothing_shows_is_not_estimated(estimated):
    assert estimated(store([Bounds(0, 50)]), sizes=False).state is None
    assert estimated(store([Bounds(0, 0)], base="/snapshot")).state is None
    assert estimated(store([Bounds(0, 50)], base="/snapshot")).state is not None


def test_it_is_one_line():
    found = Estimate(MEMORY, 300 << 20, "the sizes of changelogs")
    rest = "and in Spark's workers (estimated from the sizes of changelogs); 8.0 GiB was free"
    assert found.text() == f"memory: up to 300.0 MiB of state at a time in 2 JVMs, {rest}"
    assert found.text(GB) == f"memory: up to 300.0 MiB of state at a time in 2 JVMs with a heap of 1.0 GiB each, {rest}"
    alone = Estimate(Memory(8 * GB, 1, GB), None, "the brokers report no sizes")
    assert alone.text(GB) == (
        "memory: 1 JVM with a heap of 1.0 GiB; the state could not be estimated, since the brokers report no sizes; 8.0 GiB was free"
    )

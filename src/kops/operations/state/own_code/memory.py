"""How much memory a run of an application's own program takes: what its JVMs may, and what its state is estimated at."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kops.core.findings import counted
from kops.core.models import TopicPartition
from kops.core.sizes import size_text
from kops.core.statefile import StateFile
from kops.gateways.machine.memory import free_memory
from kops.operations.engine.spark import Engine
from kops.operations.state.compute import changelog_range
from kops.operations.state.facts import StoreFacts
from kops.operations.state.input_offsets import InputOffsets, sizes_of

if TYPE_CHECKING:
    from kops.spark.reading.ranges import TopicRange

_LEAST_HEAP = 256 << 20
_WAYS = 2
"""Each task has a JVM for the program as it is, and one in which it is disturbed."""
_IN_JVM, _IN_WORKER = (2, 80), (2, 120)
"""How often a task holds the bytes of a row, and how many more it needs for it: in its JVM in the store, and as a changelog's last row; in
Spark's worker as what is to be written, and what the changelog holds."""
_IN_ROCKSDB = 1, 40
"""How much of that is the store's, which one of windows or sessions keeps in RocksDB anyway."""
_DIVIDED, _OF_PARTS = 512 << 20, 16
"""What a worker needs of memory for a task whose rows are in a file (``kops.spark.programs.spill``), besides this share of them: a part."""
_UNITS = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_CHANGELOGS = "the sizes of changelogs"
_INPUT = "the size of the input, as if each record had a key of its own"


@dataclass(frozen=True)
class Memory:
    """What a run may take of this machine's memory.

    :param free: when it began
    :param jvms: that run at a time; 0: they run on other machines
    :param heap: what each is started with; the program's own -Xmx comes before it; 0: what Java gives it
    """

    free: int
    jvms: int
    heap: int


@dataclass(frozen=True)
class Estimate:
    """How large the state is of all tasks that run at a time.

    :param state: in bytes, on other machines that of one task; None: nothing shows it
    :param seen: what the estimate rests on, or why there is none
    """

    memory: Memory
    state: int | None
    seen: str

    def text(self, heap: int = 0) -> str:
        """Say it in one line.

        :param heap: the most that the heap of one of the JVMs could be; 0: it is not known yet
        """
        if not self.memory.jvms:
            return self._elsewhere(heap)
        several, free = self.memory.jvms != 1, f"{size_text(self.memory.free)} was free"
        jvms = counted(self.memory.jvms, "JVM")
        if heap:
            jvms += f" with a heap of {size_text(heap)}{' each' if several else ''}"
        if self.state is None:
            return f"memory: {jvms}; the state could not be estimated, since {self.seen}; {free}"
        size = f"up to {size_text(self.state)} of state at a time"
        return f"memory: {size} in {jvms}, and in Spark's workers (estimated from {self.seen}); {free}"

    def _elsewhere(self, heap: int) -> str:
        where = "a JVM and a Python worker on Spark's executors"
        jvm = f"; the JVMs had a heap of {size_text(heap)} each" if heap else ""
        if self.state is None:
            return f"memory: {where} for each task; the state could not be estimated, since {self.seen}{jvm}"
        return f"memory: up to {size_text(self.state)} of state in each task, in {where} (estimated from {self.seen}){jvm}"


def memory_for(engine: Engine, facts: Sequence[StoreFacts], tasks: int | None = None) -> Memory:
    """Divide the memory that is free: Spark may take what it is set to, and of the rest the JVMs half, and Spark's workers the other.

    :param tasks: as in ``estimate``
    """
    free, jvms = free_memory(), tasks_at_a_time(engine.master, tasks or max((found.partitions for found in facts), default=0))
    return Memory(free, jvms, max(_LEAST_HEAP, (free - _of_spark(engine)) // 2 // _WAYS // jvms) if jvms else 0)


def _of_spark(engine: Engine) -> int:
    from kops.spark.driver.session import DEFAULT_MEMORY, MEMORY

    text = engine.services.connection.spark.conf.get(MEMORY, DEFAULT_MEMORY)
    found = re.fullmatch(r"(\d+)([bkmgt]?)b?", text.strip().lower())
    return int(found[1]) << _UNITS[found[2]] if found else 0


def tasks_at_a_time(master: str, tasks: int) -> int:
    """Return how many of some tasks Spark runs at a time on this machine; 0: it runs elsewhere."""
    found = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    if found is None:
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    most = cores if found[1] == "*" else int(found[1] or 1)
    return min(most, tasks)


def estimate(
    engine: Engine,
    state_file: StateFile,
    facts: Sequence[StoreFacts],
    cut: InputOffsets,
    memory: Memory,
    *,
    tasks: int | None = None,
) -> Estimate:
    """Estimate the state: by a partition of each changelog that has lost nothing; where there is none, by the input.

    :param tasks: how many fill each store after a move to another number of partitions; None: as many as now
    """
    changelogs = [changelog_range(state_file, found) for found in facts]
    inputs = [_inputs(state_file, found, cut) for found in facts]
    sizes = sizes_of(engine.services, [*changelogs, *(wanted for each in inputs for wanted in each)])
    if sizes is None:
        return Estimate(memory, None, "the brokers report no sizes")
    in_jvm, in_worker, seen = 0.0, 0.0, dict[str, None]()
    for found, changelog, read in zip(facts, changelogs, inputs, strict=True):
        whole = {*changelog.ranges} - found.damaged - {*found.lossy}
        rows = [amount for number in whole if (amount := _amount(changelog, number, sizes))[0]]
        if not rows and found.base is not None:
            return Estimate(memory, None, f"nothing is left of {found.store.changelog}, and the tasks start from a snapshot")
        count, size = (max(each) for each in zip(*rows, strict=True)) if rows else _of_input(found, read, cut, sizes)
        share = found.partitions / tasks if tasks else 1
        seen[_CHANGELOGS if rows else _INPUT] = None
        on_disk = (0, 0) if found.store.window is None else _IN_ROCKSDB
        in_jvm += share * ((_IN_JVM[0] - on_disk[0]) * size + (_IN_JVM[1] - on_disk[1]) * count)
        in_worker += share * (_IN_WORKER[0] * size + _IN_WORKER[1] * count)
    in_worker = min(in_worker, _DIVIDED + in_worker / _OF_PARTS)
    return Estimate(memory, round((in_jvm + in_worker) * max(1, memory.jvms)), " and ".join(seen))


def _inputs(state_file: StateFile, facts: StoreFacts, cut: InputOffsets) -> list[TopicRange]:
    from kops.spark.reading.ranges import TopicRange

    committed = state_file.reads_committed
    return [TopicRange(source.topic, cut.ranges(facts, source.topic), read_committed=committed) for source in facts.store.inputs]


def _amount(wanted: TopicRange, number: int, sizes: Mapping[TopicPartition, float]) -> tuple[float, float]:
    """Return how many records a partition has at most, and their bytes."""
    start, end = wanted.ranges[number]
    return end - start, (end - start) * sizes.get(TopicPartition(wanted.topic, number), 0.0)


def _of_input(
    facts: StoreFacts, read: Sequence[TopicRange], cut: InputOffsets, sizes: Mapping[TopicPartition, float]
) -> tuple[float, float]:
    """Return the records of a task's input, and their bytes."""
    amounts = [_amount(wanted, number, sizes) for wanted in read for number in wanted.ranges]
    topics = {wanted.topic for wanted in read}
    amounts += [(share.records, share.bytes) for share in cut.archived if share.topic in topics]
    tasks = max(1, facts.partitions)
    return sum(count for count, _ in amounts) / tasks, sum(size for _, size in amounts) / tasks

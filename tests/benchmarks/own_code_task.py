"""One task of an application's own code on one core: records a second through the runner, in memory.

    .venv/bin/python tests/benchmarks/own_code_task.py [--records 1000000] [--keys 100000] [--version 4.4.0] [--order given]

A sum by own key (texts to longs), without caches, so each record is a row of the changelog. The Java process is bound to one core, and its
own seconds of processor time stand beside those of the clock: other work on the machine lengthens only the latter.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy
import pyarrow

sys.path.insert(0, str(Path(__file__).parent.parent))

from measure import cpu_seconds

from kops.formats import runner_frames as frames
from support.own_code import Host

ROWS = 20_000


def bodies(records: int, keys: int) -> list[bytes]:
    """Return the input as bodies of frames, a record each millisecond."""
    random = numpy.random.default_rng(7)
    names = numpy.array([b"key-%07d" % number for number in range(keys)], dtype=object)
    made = []
    for first in range(0, records, ROWS):
        count = min(ROWS, records - first)
        offsets = numpy.arange(first, first + count)
        zeros = numpy.zeros(count, numpy.int32)
        key = pyarrow.array(names[random.integers(0, keys, count)], pyarrow.binary())
        value = pyarrow.array([b"%d" % number for number in random.integers(-1000, 1000, count)], pyarrow.binary())
        headers = pyarrow.nulls(count, pyarrow.binary())
        made.append(frames.encoded_batch(frames.Batch(["in"], zeros, zeros, offsets, offsets + 1_000_000, key, value, headers)))
    return made


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--version", default="4.4.0")
    parser.add_argument("--order", default="given")
    parser.add_argument("--changelogs", default="all")
    parser.add_argument("--cache", default="0")
    parser.add_argument("--memory", default="true")
    parser.add_argument("--java", default="", help="options of the JVM")
    options = parser.parse_args()
    given = bodies(options.records, options.keys)
    config = dict.fromkeys(("statestore.cache.max.bytes", "cache.max.bytes.buffering"), options.cache)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})  # what the process and its threads inherit
    with Host(options.version, options.java.split()) as host:
        os.sched_setaffinity(0, cores)
        process = host.process_id
        host.start("sum", {"in": 1}, config, memory=options.memory)
        request = {"subtopology": "0", "partition": "0", "order": options.order, "changelogs": options.changelogs}
        host.ask(frames.TASK, frames.encoded_map(request))
        started, spent, rows = time.perf_counter(), cpu_seconds(process), 0
        for body in given:
            rows += sum(map(len, host.ask_for_batches(frames.RECORDS, body)[0]))
        batches, facts = host.ask_for_batches(frames.FINISH)
        rows += sum(map(len, batches))
        seconds, spent = time.perf_counter() - started, cpu_seconds(process) - spent
    print(f"{options.version} {vars(options)}: {facts['processed']} records, {rows} rows, {facts['commits']} commits")
    print(f"  {seconds:.1f} s by the clock, {spent:.1f} s of processor")
    print(f"  {options.records / seconds:,.0f} records a second by the clock, {options.records / spent:,.0f} by the processor")


if __name__ == "__main__":
    main()

"""`kops replay run` beside MirrorMaker 2 and a `kcat` pipe: same broker, same records, same machine, one run.

    python tests/benchmarks/replay.py [--records 10000000] [--size 20] [--runs 3] [--large-batches]

The records come from Apache's own producer benchmark with its defaults (batches of 16 KB, no keys), or, with --large-batches, from kops in
batches of 900 KB. MirrorMaker 2 (connect-mirror, two tasks, its defaults) is timed from its process's start until the target holds as many
records, and from its first record; kops as a whole process: the start of Python and of Spark, and the proof that reads everything back are
included.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy
import pyarrow
from applications import write
from measure import Measured, Peak, apache_command, kafka, kops_command, measured

from kops.config.paths import directories
from kops.gateways.machine.jars import CONNECT_VERSION, KAFKA_VERSION, JarSet, class_path, connect_set, jars_of
from kops.gateways.machine.jdk import require_jdk
from kops.gateways.machine.maven import Artifact
from support.streams_apps import Cluster

PARTITIONS = 6
SOURCE = "numbers"
START = 1_760_000_000_000
WAYS = {
    "by their key": ("--partition-by", "key"),
    "a filter that keeps nothing, so reading alone": ("--where", "offset < 0"),
    "a filter of 1 %": ("--where", "offset % 100 = 0"),
    "filter, transform and route": (
        "--where",
        "offset % 10 != 0",
        "--set",
        "headers[by]='kops'",
        "--to-expression",
        "concat('routed-', partition % 2)",
        "--declare",
        "routed-0,routed-1",
        "--partition-by",
        "keep",
    ),
}


def main() -> int:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--size", type=int, default=20, help="bytes of a value")
    parser.add_argument("--runs", type=int, default=3, help="of kops, each way, and of MirrorMaker 2")
    parser.add_argument("--large-batches", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kops-benchmark-") as name, kafka(Path(name)) as servers:
        folder, cluster = Path(name), Cluster(servers)
        cluster.create(SOURCE, PARTITIONS, {"retention.ms": "-1"})
        (large if options.large_batches else small)(servers, options.records, options.size, folder)
        held = total(cluster, SOURCE)
        whole, first = in_turn(servers, cluster, folder, held, options.runs)
        if shutil.which("kcat"):
            print(f"kcat -C | kcat -P, which loses times, headers and partitions: {piped(servers, cluster, folder):.1f} s", flush=True)
        for what, arguments in WAYS.items():
            runs = [replayed(servers, cluster, folder, arguments) for _ in range(options.runs)]
            middle = statistics.median(run.seconds for run in runs)
            said = ", ".join(f"{run.seconds:.1f}" for run in runs)
            print(
                f"kops, {what}: {said} s, {runs[-1].cpu_seconds:.1f} s of CPU in Python, {runs[-1].megabytes} MB; MirrorMaker 2 takes"
                f" {whole / middle:.2f} times as long, {first / middle:.2f} from its first record",
                flush=True,
            )
    return 0


def in_turn(servers: str, cluster: Cluster, folder: Path, held: int, count: int) -> tuple[float, float]:
    """Copy the source by MirrorMaker 2 and by kops in turn, since either varies by a third.

    :returns: MirrorMaker 2's medians, as ``mirrored`` has them
    """
    theirs = []
    for number in range(count):
        whole, first = mirrored(servers, cluster, folder, held, f"a{number}")
        ours = replayed(servers, cluster, folder, ())
        theirs.append((whole.seconds, first))
        print(
            f"MirrorMaker 2, two tasks, {held:,} records: {whole.seconds:.1f} s, {first:.1f} s from its first record, {whole.megabytes} MB;"
            f" kops after it: {ours.seconds:.1f} s, {ours.megabytes} MB: {whole.seconds / ours.seconds:.2f} times faster",
            flush=True,
        )
    return statistics.median(whole for whole, _ in theirs), statistics.median(first for _, first in theirs)


def small(servers: str, records: int, size: int, folder: Path) -> None:
    """Fill the source with Apache's own tool."""
    sizes = ("--num-records", str(records), "--record-size", str(size), "--throughput", "-1")
    tool = apache_command("org.apache.kafka.tools.ProducerPerformance")
    measured([*tool, "--topic", SOURCE, *sizes, "--bootstrap-server", servers], folder / "fill.out")


def large(servers: str, records: int, size: int, folder: Path) -> None:
    """Fill the source with large batches."""
    step = 500_000

    def tables() -> Iterator[pyarrow.Table]:
        for start in range(0, records, step):
            numbers = numpy.arange(start, min(records, start + step))
            text = pyarrow.array(numbers).cast(pyarrow.string())
            columns = {
                "partition": pyarrow.array((numbers % PARTITIONS).astype(numpy.int32)),
                "key": text.cast(pyarrow.binary()),
                "value": pyarrow.compute.utf8_rpad(text, size, "x").cast(pyarrow.binary()),
                "timestamp": pyarrow.array(numbers + START),
            }
            yield pyarrow.table(columns)

    write(servers, SOURCE, tables())


def total(cluster: Cluster, topic: str) -> int:
    """Return how many records a topic has whose writers use no transactions."""
    return sum(high - low for low, high in cluster.ends(topic).values())


def mirrored(servers: str, cluster: Cluster, folder: Path, records: int, name: str) -> tuple[Measured, float]:
    """Let MirrorMaker 2 copy the source; return its time from its start, and from its first record.

    :param name: of the source's cluster, a new one each time: a worker by the same name would wait minutes for the one that was killed
    """
    cache = directories(os.environ).cache
    jars = [
        *jars_of(connect_set(), cache),
        *jars_of(JarSet("mirror", KAFKA_VERSION, (Artifact("org.apache.kafka", "connect-mirror", CONNECT_VERSION),)), cache),
    ]
    names = {jar.name: jar for jar in jars}
    one = ("checkpoints.topic", "heartbeats.topic", "offset-syncs.topic", "offset.storage", "status.storage", "config.storage")
    settings = {
        "clusters": f"{name}, b",
        f"{name}.bootstrap.servers": servers,
        "b.bootstrap.servers": servers,
        f"{name}->b.enabled": "true",
        f"b->{name}.enabled": "false",
        f"{name}->b.topics": SOURCE,
        "tasks.max": "2",
        "replication.factor": "1",
        "sync.topic.acls.enabled": "false",
        "emit.heartbeats.enabled": "false",
        "emit.checkpoints.enabled": "false",
        **{f"{topic}.replication.factor": "1" for topic in one},
    }
    file = folder / "mm2.properties"
    file.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    command = [
        str(require_jdk().java),
        "-Xmx1G",
        "-cp",
        class_path(list(names.values())),
        "org.apache.kafka.connect.mirror.MirrorMaker",
        str(file),
    ]
    target = f"{name}.{SOURCE}"
    with (folder / "mm2.out").open("wb") as out:
        started = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        peak, began = Peak(process.pid), 0.0
        try:
            while True:
                held = total(cluster, target) if target in cluster.topics(target) else 0
                now = time.monotonic()
                began = began or (now if held else 0.0)
                if held >= records:
                    return Measured(now - started, peak.end()), now - began
                if process.poll() is not None or now - started > 600:
                    raise RuntimeError((folder / "mm2.out").read_text()[-3000:])
                time.sleep(0.05)
        finally:
            process.kill()
            process.wait()
            with contextlib.suppress(Exception):
                cluster.delete(target)


def piped(servers: str, cluster: Cluster, folder: Path) -> float:
    """Copy keys and values through a pipe; return the seconds."""
    cluster.create("piped", PARTITIONS)
    read = f"kcat -C -b {servers} -t {SOURCE} -o beginning -e -q -K '\t' -Z"
    done = measured(["sh", "-c", f"{read} | kcat -P -b {servers} -t piped -K '\t' -Z"], folder / "kcat.out")
    cluster.delete("piped")
    return done.seconds


def replayed(servers: str, cluster: Cluster, folder: Path, arguments: tuple[str, ...]) -> Measured:
    """Replay the source as a whole process."""
    topics = ["routed-0", "routed-1"] if "--to-expression" in arguments else ["replayed"]
    for topic in topics:
        cluster.create(topic, PARTITIONS, {"retention.ms": "-1"})
    to = () if len(topics) > 1 else ("--to", topics[0])
    done = measured(kops_command("replay", "run", SOURCE, *to, *arguments, "-B", servers, "--yes"), folder / "kops.out")
    cluster.delete(*topics)
    return done


if __name__ == "__main__":
    raise SystemExit(main())

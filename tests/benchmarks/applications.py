"""An application of Kafka Streams, its input, and the rebuild of its state by kops beside its reprocessing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import pyarrow
from measure import Measured, Peak

from kops.formats.murmur2_columns import partitions_of
from kops.gateways.wire.batch_producer import BatchProducer
from support.streams import java_command
from support.streams_apps import Cluster

PARTITIONS = 6
FILL_RECORDS = 500_000


@dataclass(frozen=True)
class Input:
    """What a topic is filled with: keys and values by chance, always the same, a record each millisecond.

    :param text: values are texts; else longs
    :param largest: values are from its negative up to it
    :param hot: the share of the records that are of one key, beside what falls to it by chance
    :param seed: of chance
    """

    records: int
    keys: int
    first_timestamp: int
    text: bool = False
    seed: int = 7
    hot: float = 0.0
    largest: int = 1000

    def tables(self) -> Iterable[pyarrow.Table]:
        """Yield the records (partition, key, value, timestamp)."""
        random = numpy.random.default_rng(self.seed)
        keys = numpy.array([b"key-%07d" % number for number in range(self.keys)], dtype=object)
        for first in range(0, self.records, FILL_RECORDS):
            count = min(FILL_RECORDS, self.records - first)
            chosen = random.integers(0, self.keys, count)
            if self.hot:
                chosen[random.random(count) < self.hot] = 0
            column = pyarrow.array(keys[chosen], pyarrow.binary())
            numbers = random.integers(-self.largest, self.largest, count)
            octets = numbers.astype(">i8").tobytes()
            values = [b"v%d" % number for number in numbers] if self.text else [octets[at : at + 8] for at in range(0, len(octets), 8)]
            times = pyarrow.array(numpy.arange(self.first_timestamp + first, self.first_timestamp + first + count))
            columns = [partitions_of(column, PARTITIONS), column, pyarrow.array(values, pyarrow.binary()), times]
            yield pyarrow.table(columns, names=["partition", "key", "value", "timestamp"])


class Rebuild:
    """One application with its input.

    :param program: of ``support.programs`` or ``support.tables``
    :param inputs: by topic
    :param changelogs: with their cleanup policy
    """

    def __init__(self, servers: str, folder: Path, program: Any, inputs: Mapping[str, Input], changelogs: Mapping[str, str]) -> None:
        self.servers, self.program, self.inputs, self.changelogs = servers, program, inputs, changelogs
        self.folder = folder / program.application
        self.folder.mkdir()
        self.state_file = self.folder / "state.yaml"
        self.state_file.write_text(json.dumps(program.state_file()), encoding="utf-8")

    @property
    def records(self) -> int:
        """Return how many records the input has."""
        return sum(each.records for each in self.inputs.values())

    def fill(self) -> None:
        """Write the input."""
        Cluster(self.servers).create_all(dict.fromkeys(self.inputs, PARTITIONS), {"retention.ms": "-1"})
        for topic, records in self.inputs.items():
            write(self.servers, topic, records.tables())

    @property
    def command(self) -> list[str]:
        """Return the command that starts the application."""
        specification = self.folder / "program.json"
        specification.write_text(json.dumps({**self.program.as_json(), "output": None}), encoding="utf-8")
        plain = [part for part in java_command("StreamsRunner") if not part.startswith("-XX:Tiered") and part != "-XX:+UseSerialGC"]
        state = self.folder / "application"
        return [*plain, self.servers, str(specification), str(state), "--threads", "2", "--stop-when-idle"]

    def application(self) -> Measured:
        """Let the application process everything: until its committed offsets reach the end."""
        log = self.folder / "application.log"
        with log.open("w") as output:
            started = time.monotonic()
            process = subprocess.Popen(self.command, stdout=output, stderr=subprocess.STDOUT)
            peak = Peak(process.pid)
            while "CAUGHT_UP" not in log.read_text() and process.poll() is None:
                time.sleep(0.05)
            seconds = time.monotonic() - started
            process.wait(120)
        if "CAUGHT_UP" not in log.read_text():
            raise RuntimeError(log.read_text()[-2000:])
        self.kops("state", "verify", str(self.state_file))
        return Measured(seconds, peak.end(), peak.cpu_seconds)

    def capture(self) -> Path:
        """Let kops capture the application."""
        file = self.folder / "capture.json"
        self.kops("streams", "capture", "--out", str(file), "--", *self.command)
        return file

    def rebuild(self, *options: str, show: bool, capture: Path | None = None) -> Measured:
        """Empty the changelogs, and time the rebuild of the state; kops verifies it by the state file.

        :param capture: of the program, which is to compute it; None: by the state file
        """
        broker = Cluster(self.servers)
        for changelog, policy in self.changelogs.items():
            broker.delete(changelog)
            broker.create(changelog, PARTITIONS, {"cleanup.policy": policy, "retention.ms": "-1"})
        by = ["--app", str(capture)] if capture else [str(self.state_file)]
        measured = self.kops("state", "rebuild", *by, "--yes", *options, show=show)
        self.kops("state", "verify", str(self.state_file))
        return measured

    def kops(self, *arguments: str, show: bool = False) -> Measured:
        """Run kops as a process; with ``show`` tell when it says what."""
        started = time.monotonic()
        command = [sys.executable, "-m", "kops", "-B", self.servers, *arguments]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        peak = Peak(process.pid)
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if show:
                print(f"  {time.monotonic() - started:5.1f} s  {line.rstrip()}", flush=True)
        code = process.wait()
        seconds = time.monotonic() - started
        megabytes = peak.end()
        if code:
            raise RuntimeError(f"kops ended with {code}:\n{''.join(said)}")
        return Measured(seconds, megabytes, peak.cpu_seconds)


def write(servers: str, topic: str, tables: Iterable[pyarrow.Table]) -> None:
    """Write tables of records (partition, key, value, timestamp) to a topic."""
    producer = BatchProducer(topic, {"bootstrap.servers": servers})
    for table in tables:
        producer.write(table)
    producer.close()

"""The runner of an application's own code, and TopologyTestDriver beside it, over the same records."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from kops.config.paths import directories
from kops.formats import runner_frames as frames
from kops.gateways.machine.jars import class_path, jars_of, kafka_set
from support import older_streams
from support.patience import HANG_SECONDS
from support.streams import JVM_OPTIONS, compiled, java_with

TREE = Path(__file__).parent.parent.parent
RUNNER_SOURCES = TREE / "java" / "runner"
HOST_SOURCES = TREE / "tests" / "streams" / "own_code"


@dataclass(frozen=True)
class Row:
    """One record, in or out."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: frames.Headers = ()


class Failed(Exception):
    """What a program threw."""

    def __init__(self, reported: Mapping[str, str]) -> None:
        super().__init__(reported)
        self.reported = dict(reported)


class Host:
    """A Java process that runs programs of ``Programs.java``, one after the other; a context manager.

    :param version: of Kafka
    """

    def __init__(self, version: str, options: Sequence[str] = ()) -> None:
        self.version = version
        self.hello: dict[str, str] = {}
        self._options = options
        self._runs = False

    def __enter__(self) -> Host:
        self._errors = tempfile.TemporaryFile("w+")
        memory = Path("/dev/shm")  # 4.1 syncs a checkpoint file for every record that the driver is given
        options = [f"-Djava.io.tmpdir={memory}"] if memory.is_dir() else []
        command = [*java_with(host_class_path(self.version), [*JVM_OPTIONS, *options, *self._options]), "kops.runner.RunnerHost"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(HANG_SECONDS)
        self._errors.close()

    @property
    def process_id(self) -> int:
        return self._process.pid

    def start(self, program: str, partitions: Mapping[str, int], config: Mapping[str, str] | None = None, **more: str) -> None:
        """Start a program by the runner."""
        self._begin(program, "run")
        settings = {f"partitions.{topic}": str(count) for topic, count in partitions.items()}
        settings |= {f"config.{name}": value for name, value in (config or {}).items()}
        _, self.hello = self.ask(frames.CONFIGURE, frames.encoded_map({**settings, **more}))

    def driven(self, program: str, records: Sequence[Row], config: Mapping[str, str], before: Sequence[Row] = ()) -> list[Row]:
        """Return what a program writes under ``TopologyTestDriver``, topic by topic.

        :param before: records of global topics
        """
        self._begin(program, "driver")
        self.ask(frames.CONFIGURE, frames.encoded_map({f"config.{name}": value for name, value in config.items()}))
        self.ask(frames.RECORDS, frames.encoded_batch(batch_of([*before, *records])))
        return self.ask(frames.FINISH)[0]

    def _begin(self, program: str, how: str) -> None:
        if self._runs:
            self.ask(frames.QUIT)
        self._runs = how == "run"
        assert self._process.stdin is not None
        self._process.stdin.write(frames.frame(ord("P"), frames.encoded_map({"program": program, "how": how})))

    def ask(self, kind: int, body: bytes = b"") -> tuple[list[Row], dict[str, str]]:
        """Send a frame; return the output and the facts of the answer.

        :raises Failed: when the program, or the runner, throws
        """
        batches, facts = self.ask_for_batches(kind, body)
        return [row for batch in batches for row in rows_of(batch)], facts

    def ask_for_batches(self, kind: int, body: bytes = b"") -> tuple[list[frames.Batch], dict[str, str]]:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(frames.frame(kind, body))
        process.stdin.flush()
        batches = []
        while True:
            head = process.stdout.read(frames.HEAD.size)
            if len(head) < frames.HEAD.size:
                self._errors.seek(0)
                raise RuntimeError(f"the host has ended: {self._errors.read()}")
            length, answer = frames.HEAD.unpack(head)
            content = process.stdout.read(length)
            if answer == frames.OUTPUT:
                batches.append(frames.decoded_batch(content))
            elif answer == frames.FAILED:
                raise Failed(frames.decoded_map(content))
            else:
                return batches, frames.decoded_map(content)

    def read_global(self, records: Sequence[Row]) -> None:
        self.ask(frames.GLOBAL, frames.encoded_batch(batch_of(records)))

    def task(
        self,
        subtopology: int,
        partition: int,
        records: Sequence[Row],
        size: int = 1000,
        *,
        restored: Sequence[Row] = (),
        restarts: bool = False,
        **more: str,
    ) -> tuple[list[Row], dict[str, str]]:
        """Run a task over its records, in this order; return all that it wrote, and what happened.

        :param restored: rows of changelogs that its stores start from
        :param restarts: the program begins afresh after each ``size`` records
        """
        request = {"subtopology": str(subtopology), "partition": str(partition), "restarted": str(restarts).lower()}
        request |= {name.replace("_", "."): value for name, value in more.items()}
        request |= {"restores": "true"} if restored else {}
        written, _ = self.ask(frames.TASK, frames.encoded_map(request))
        if restored:
            self.ask(frames.RESTORE, frames.encoded_batch(batch_of(restored)))
        for start in range(0, len(records), size):
            written += self.ask(frames.RECORDS, frames.encoded_batch(batch_of(records[start : start + size])))[0]
            written += self.ask(frames.RESTART)[0] if restarts else []
        rest, facts = self.ask(frames.FINISH)
        return written + rest, facts


def batch_of(rows: Sequence[Row]) -> frames.Batch:
    import numpy
    import pyarrow

    topics = sorted({row.topic for row in rows})
    columns: dict[str, Any] = {
        "topic": numpy.array([topics.index(row.topic) for row in rows], numpy.int32),
        "partition": numpy.array([row.partition for row in rows], numpy.int32),
        "offset": numpy.array([row.offset for row in rows], numpy.int64),
        "timestamp": numpy.array([row.timestamp for row in rows], numpy.int64),
        "key": pyarrow.array([row.key for row in rows], pyarrow.binary()),
        "value": pyarrow.array([row.value for row in rows], pyarrow.binary()),
        "headers": pyarrow.array([frames.encoded_headers(row.headers) for row in rows], pyarrow.binary()),
    }
    return frames.Batch(topics, **columns)


def rows_of(batch: frames.Batch) -> Iterable[Row]:
    numbers = (column.tolist() for column in (batch.topic, batch.partition, batch.offset, batch.timestamp))
    texts = (column.to_pylist() for column in (batch.key, batch.value, batch.headers))
    for topic, partition, offset, timestamp, key, value, headers in zip(*numbers, *texts, strict=True):
        yield Row(batch.topics[topic], partition, offset, timestamp, key, value, frames.decoded_headers(headers))


def runner_classes() -> Path:
    """Return the folder with the runner's classes: compiled for the oldest version, and for Java 11."""
    return _compiled(RUNNER_SOURCES, older_streams.VERSION, jars_of_streams(older_streams.VERSION))


def host_class_path(version: str) -> str:
    """Return the class path of a host with this version of Kafka."""
    jars = jars_of_streams(version)
    runner = runner_classes()
    return class_path([*jars, runner, _compiled(HOST_SOURCES, f"{version}-{runner.name[-16:]}", [*jars, runner])])


BETWEEN = ("3.0.2", "3.1.2", "3.2.3", "3.4.1", "3.5.2", "3.7.2", "3.8.1", "4.0.0", "4.2.0")
"""A version of each line between those that have a broker or a Connect worker in a test."""


def jars_of_streams(version: str) -> list[Path]:
    """Return the jars of Kafka Streams and its test driver."""
    wanted = older_streams.older_set(version) if version in (older_streams.VERSION, *BETWEEN) else kafka_set(version)
    return jars_of(wanted, directories(os.environ).cache)


def _compiled(sources: Path, version: str, jars: Sequence[Path]) -> Path:
    first, *others = sorted(sources.rglob("*.java"))
    return compiled(first, version, jars, others, ("--release", "11"))

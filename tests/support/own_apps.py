"""Applications of ``Apps.java`` and ``Kinds.java`` on a broker: run until all is processed, stopped, and captured."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from kops.gateways.machine.jars import KAFKA_VERSION, class_path
from support.captured import SOURCES as CAPTURED
from support.captured import apache_examples
from support.forked import forked
from support.own_code import TREE, jars_of_streams
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams import Entry, compacted_view, compiled, java_with
from support.streams_apps import Cluster, wait_for

SOURCES = TREE / "tests" / "streams" / "own_code_apps"


def classes(version: str = KAFKA_VERSION, main: str = "Apps") -> Path:
    also = [CAPTURED / ("windows28" if version < "3" else "windows") / "OwnWindows.java"]
    also += [SOURCES / "since43" / "Headed.java"] if main == "Kinds" and version >= "4.3" else []
    return compiled(SOURCES / f"{main}.java", version, jars_of_streams(version), also)


FIRST_MS = (int(time.time()) // 3600 - 1) * 3_600_000
"""The time of the first record: recent, since brokers delete windows from changelogs by the time of day, but at the start of an hour."""


@dataclass
class App:
    """An application with topics of its own.

    :param name: ``texts``, ``seen`` or ``latest``
    :param application: its id, with which its topics begin
    :param settings: further ones, as NAME=VALUE
    :param instances: how many of it run at a time, each with local state of its own
    :param fork: how its Kafka Streams differs from Apache's (``support.forked``)
    """

    cluster: Cluster
    name: str
    application: str
    folder: Path
    version: str = KAFKA_VERSION
    settings: Sequence[str] = ()
    classes: Path | None = None
    inputs: Sequence[str] = field(default=("in",))
    words: Sequence[str] = ()
    main: str = "Apps"
    instances: int = 1
    fork: Callable[[str, bytes], bytes] | None = None
    last_words: ClassVar[str] = "STOPPED"

    @property
    def path(self) -> str:
        return class_path([*self._jars, self.classes or classes(self.version, self.main)])

    @cached_property
    def _jars(self) -> list[Path]:
        jars = jars_of_streams(self.version)
        if self.fork is None:
            return jars
        self.folder.mkdir(parents=True, exist_ok=True)
        return [forked(jar, self.folder, self.fork) if jar.name == f"kafka-streams-{self.version}.jar" else jar for jar in jars]

    @property
    def command(self) -> list[str]:
        """The command that starts it."""
        state = str(self.folder / "state")
        java = java_with(self.path)
        return [*java, self.main, self.name, self.cluster.servers, state, self.application, *self.settings]

    def topic(self, name: str) -> str:
        return f"{self.application}-{name}"

    def run(self) -> None:
        """Run it until all of its input, and of its repartition topics, is processed; then close it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        logs = [self.folder / (f"log-{number}" if number else "log") for number in range(self.instances)]
        processes = [self._started(number, log) for number, log in enumerate(logs)]
        running = list(zip(processes, logs, strict=True))
        try:
            wait_for(f"{self.application} to process all", lambda: self._is_through(running))
            for process, log in running:
                process.terminate()
                process.wait(HANG_SECONDS)
                assert self.last_words in log.read_text(), log.read_text()[-3000:]
        finally:
            for process in processes:
                process.kill()
                process.wait(HANG_SECONDS)

    def _started(self, number: int, log: Path) -> subprocess.Popen[bytes]:
        state = str(self.folder / "state")
        command = [f"{state}-{number}" if number and word == state else word for word in self.command]
        with log.open("wb") as output:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)

    def _is_through(self, running: Sequence[tuple[subprocess.Popen[bytes], Path]]) -> bool:
        for process, log in running:
            assert process.poll() is None, log.read_text()[-3000:]
        committed = self.cluster.committed(self.application)
        topics = [self.topic(name) for name in self.inputs] + [
            topic for topic in self.cluster.topics(self.application) if topic.endswith(("-repartition", "-topic"))
        ]
        ends = {(topic, at): end for topic in topics for at, (_, end) in self.cluster.ends(topic).items() if end}
        return bool(ends) and all(committed.get(at, 0) >= end for at, end in ends.items())

    def forget(self) -> None:
        """Delete its local state."""
        for state in self.folder.glob("state*"):
            shutil.rmtree(state)

    def view(self, store: str) -> dict[bytes, Entry]:
        return compacted_view(self.cluster.read(self.topic(f"{store}-changelog")))


class Example(App):
    """One of Apache's own examples, of which only the settings are given; its topics have names of their own."""

    last_words = ""

    @property
    def command(self) -> list[str]:
        given = self.folder / "example.properties"
        given.parent.mkdir(parents=True, exist_ok=True)
        settings = [f"application.id={self.application}", f"bootstrap.servers={self.cluster.servers}", f"state.dir={self.folder}/state"]
        given.write_text("\n".join([*settings, "commit.interval.ms=100", "session.timeout.ms=6000"]))
        return [*java_with(apache_examples()), f"org.apache.kafka.streams.examples.{self.name}", str(given)]

    def topic(self, name: str) -> str:
        output = "streams-wordcount-processor-output" if "Processor" in self.name else "streams-wordcount-output"
        return {"in": "streams-plaintext-input", "out": output}.get(name) or super().topic(name)


def records(count: int, *, seed: int = 1, keys: int = 60) -> list[Record]:
    """Return records with a second between them, now and then one that deletes.

    :param seed: with another one, the times are others too: of two records of one time, which comes first is not known
    """
    chosen = random.Random(seed)
    return [
        Record(
            b"key-%d" % chosen.randrange(keys),
            b"delete" if chosen.random() < 0.05 else b"%c%d" % (chosen.choice(b"abcdefgh"), at),
            FIRST_MS + at * 1000 + seed,
        )
        for at in range(count)
    ]


RETENTION_MS = 40_000
"""Of the windows of ``Apps.texts``, size and grace, from 3.0 on."""


def start_of(key: bytes) -> int:
    """Return the start of the window of a key: before its number of four bytes."""
    return int.from_bytes(key[-12:-4], "big")


def without_expired(windows: Mapping[bytes, Entry]) -> dict[bytes, Entry]:
    """Leave out windows that have certainly expired: a store has segments of at least a minute."""
    latest: dict[int, int] = {}
    for key, entry in windows.items():
        latest[entry.partition] = max(latest.get(entry.partition, 0), start_of(key))
    return {key: entry for key, entry in windows.items() if start_of(key) >= latest[entry.partition] - RETENTION_MS - 60_000}

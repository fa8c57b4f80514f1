"""The real Kafka Streams, for tests: what it writes without a broker, and how to compare that."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from kops.config.paths import directories
from kops.gateways.machine.jars import KAFKA_VERSION, class_path, jars_of, kafka_set
from kops.gateways.machine.jdk import require_jdk
from support import class_archive
from support.patience import HANG_SECONDS
from support.programs import Headers, Program, Record

JAVA_SOURCES = Path(__file__).parent.parent / "streams" / "oracle"
_OF_JVMS = tempfile.TemporaryDirectory(prefix="kops-tests-", ignore_cleanup_errors=True)
"""Where JVMs that are killed leave RocksDB's library and their state."""
JVM_OPTIONS = (
    *("-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-Dorg.apache.logging.log4j.level=WARN"),
    f"-Djava.io.tmpdir={_OF_JVMS.name}",
)


Held = tuple[str, int, int]
"""Key, start and end of a window or session."""


@dataclass(frozen=True)
class Written:
    """What a program wrote, record by record, by topic."""

    program: Program
    topics: Mapping[str, tuple[Record, ...]]

    @property
    def changelog(self) -> tuple[Record, ...]:
        """Return the records of its store's changelog."""
        return self.topics.get(self.program.changelog, ())

    @property
    def output(self) -> tuple[Record, ...]:
        """Return the records of its output topic."""
        return self.topics.get(self.program.output or "", ())


class Oracle:
    """``TopologyTestDriver`` in one long-lived Java process; a context manager."""

    def __init__(self, version: str = KAFKA_VERSION) -> None:
        self.version = version
        self._process: subprocess.Popen[str] | None = None
        self._errors: Any = None

    def __enter__(self) -> Oracle:
        memory = Path("/dev/shm")  # 4.1 syncs a checkpoint file for every record that the driver is given
        options = (f"-Djava.io.tmpdir={memory}",) if memory.is_dir() else ()
        command = java_command("StreamsOracle", self.version, (*JVM_OPTIONS, *options))
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, encoding="utf-8")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._process is not None
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(HANG_SECONDS)
        self._errors.close()

    def run(self, program: Program, records: Iterable[Record]) -> Written:
        """Feed the records, in this order and as one partition, and return all that was written.

        :raises RuntimeError: when Kafka Streams fails on them; its message says how
        """
        return Written(program, self.ask(program.as_json(), [encoded(record) for record in records]))

    def ask(self, spec: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Record, ...]]:
        """Feed records as ``encoded`` gives them, with the ``topic`` of each where there are several; return what was written, by topic.

        :raises RuntimeError: when Kafka Streams fails on them; its message says how
        """
        answer = self._answer({"spec": spec, "records": records})
        return {topic: tuple(map(_decoded, written)) for topic, written in answer["topics"].items()}

    def several(
        self,
        programs: Sequence[Program],
        records: Sequence[Sequence[Record]],
        config: Iterable[tuple[str, str]] = (),
        *,
        payload_time: bool = False,
    ) -> list[tuple[Written, set[Held]]]:
        """Feed windowed programs, each with a topic and a store of its own; return what each wrote, and what its store still finds."""
        spec = {
            "application": "app",
            "config": dict(config),
            "payload_time": payload_time,
            "several": [program.as_json() for program in programs],
            "from": {"topic": "unused"},
        }
        feeds = zip(programs, records, strict=True)
        answer = self._answer({"spec": spec, "records": [{**encoded(record), "topic": at.topic} for at, feed in feeds for record in feed]})
        topics = {topic: tuple(map(_decoded, written)) for topic, written in answer["topics"].items()}
        return [
            (Written(program, topics), {(key, start, end) for key, start, end in answer["held"][program.store]}) for program in programs
        ]

    def store_type(
        self, spec: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
    ) -> tuple[dict[str, tuple[Record, ...]], dict[str, Any]]:
        """Run a program of ``StoreTypes.java``; return what it wrote, and what Kafka Streams sets for its internal topics, by topic."""
        answer = self._answer({"spec": spec, "records": records})
        return {topic: tuple(map(_decoded, written)) for topic, written in answer["topics"].items()}, answer["settings"]

    def formats(self, name: str, cases: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
        """Call one of the library's own serializers for many cases; see ``FormatCalls.java``.

        :return: of each case ``{"ok": ...}``, or ``{"error": ...}`` where the library refuses it
        """
        results: list[dict[str, Any]] = self._answer({"formats": name, "cases": cases})["results"]
        return results

    def _answer(self, request: Mapping[str, Any]) -> Any:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise RuntimeError(f"the oracle has ended: {self._errors.read()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer


@dataclass(frozen=True)
class Entry:
    """What the compacted view of a changelog holds for one key."""

    value: bytes
    timestamp: int
    headers: Headers
    partition: int | None


def compacted_view(records: Iterable[Record], *, partitions: bool = True) -> dict[bytes, Entry]:
    """Return the last record of each key, without the tombstones: what a restore ends with.

    A key that is in two partitions at once is an error, whatever its values are: each task would hold its own.

    :param records: in the order of their offsets
    :param partitions: False: leave the partition out, for views that are compared with the oracle's
    """
    latest: dict[tuple[int | None, bytes], Record] = {}
    for record in records:
        assert record.key is not None, "a changelog has no null keys"
        latest[(record.partition, record.key)] = record
    view: dict[bytes, Entry] = {}
    for (partition, key), record in latest.items():
        if record.value is not None:
            assert key not in view, f"{key!r} is in two partitions: {view[key]} and {record}"
            view[key] = Entry(record.value, record.timestamp, record.headers, partition)
    return view if partitions else {key: replace(entry, partition=None) for key, entry in view.items()}


def java_command(
    main_class: str,
    version: str = KAFKA_VERSION,
    options: Sequence[str] = JVM_OPTIONS,
    *,
    sources: Path = JAVA_SOURCES,
    also: Sequence[Path] = (),
    jars: Sequence[Path] = (),
) -> list[str]:
    """Return the command that runs a class of a folder with Java sources, compiled once for this version of Kafka, or one of Kafka itself.

    :param also: further sources that are compiled with it
    :param jars: further ones that it needs
    """
    kafka = jars_of(kafka_set(version), directories(os.environ).cache)
    source = sources / f"{main_class}.java"
    classes = [compiled(source, version, [*kafka, *jars], also)] if source.exists() else []
    return [*java_with(class_path([*kafka, *jars, *classes]), options), main_class]


def java_with(path: str, options: Sequence[str] = JVM_OPTIONS) -> list[str]:
    """Return the command of a JVM, up to its main class.

    :param path: the class path; where it begins with the jars of Apache Kafka, their classes come from an archive
    """
    return [str(require_jdk().java), *options, *class_archive.options(path), "-cp", path]


def compiled(
    source: Path,
    version: str,
    jars: Sequence[Path],
    also: Sequence[Path] = (),
    options: Sequence[str] = (),
    compiler: Sequence[str | Path] = (),
) -> Path:
    """Return the folder with the classes of a Java source and of those beside it that it needs; compile them when they changed.

    :param also: further sources, which are compiled in any case
    :param options: of javac, beside the usual ones
    :param compiler: the command of another one, which takes the same options
    """
    digest = hashlib.sha256(version.encode())
    for file in [*sorted(source.parent.glob(f"*{source.suffix}")), *also]:
        digest.update(file.read_bytes())
    target = directories(os.environ).cache / "tests" / f"{source.stem}-{version}-{digest.hexdigest()[:16]}"
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=target.parent))
        javac = [
            *map(str, compiler or (require_jdk().tool("javac"), "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")),
            *options,
            "-cp",
            class_path(jars),
            *(("-sourcepath", str(source.parent)) if source.suffix != ".kt" else ()),
            "-d",
            str(work),
            str(source),
        ]
        javac += map(str, also)
        done = subprocess.run(javac, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{source} does not compile with Kafka {version}:\n{done.stderr}")
        try:
            work.rename(target)
        except OSError:  # another process was faster
            shutil.rmtree(work)
    return target


def encoded(record: Record) -> dict[str, Any]:
    """Return a record as the oracle reads it."""
    headers = [[name, _base64(value)] for name, value in record.headers]
    return {"key": _base64(record.key), "value": _base64(record.value), "timestamp": record.timestamp, "headers": headers}


def _decoded(record: Mapping[str, Any]) -> Record:
    headers = tuple((name, _bytes(value)) for name, value in record["headers"])
    return Record(_bytes(record["key"]), _bytes(record["value"]), record["timestamp"], headers)


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode("ascii")


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)

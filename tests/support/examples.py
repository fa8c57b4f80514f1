"""The applications under ``examples/``, several copies of one beside each other, each with names of its own."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from kops.config.paths import directories
from kops.gateways.machine.jars import KAFKA_VERSION, class_path, jars_of, kafka_set
from support.command_line import Outcome
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams import Entry, compacted_view, compiled, java_with
from support.streams_apps import Cluster, wait_for

EXAMPLES = Path(__file__).parents[2] / "examples"
HOST = Path(__file__).parents[1] / "examples" / "host" / "ExamplesHost.java"
OTHERS = ("prices",)
"""Examples that stand for themselves: their application is one file without what the others share."""
_NAMES = ("application", "name", "topic", "changelog", "repartition")
"""The fields of the examples' files that name something on the cluster."""


def class_directories(environment: Mapping[str, str]) -> str:
    """Return the class path of all examples, compiled; that of Avro is Spark's."""
    spark = find_spec("pyspark")
    assert spark
    assert spark.origin
    jars = [*jars_of(kafka_set(), directories(environment).cache), *Path(spark.origin).parent.glob("jars/avro-1.*.jar")]
    sources = [file for file in sorted(EXAMPLES.glob("*/*.java")) if file.parent.name not in OTHERS]
    return class_path([*jars, compiled(HOST, KAFKA_VERSION, jars, sources)])


class Host:
    """One JVM that runs many applications; a context manager."""

    def __init__(self, classes: str, log: Path) -> None:
        self.classes = classes
        command = [*java_with(classes), "ExamplesHost"]
        self._log = log.open("wb")
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._log, "encoding": "utf-8"}
        self._process = subprocess.Popen(command, **pipes)
        self._started: set[str] = set()
        self._answers: dict[str, str] = {}
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process as process:
            process.kill()
        self._log.close()

    def start(self, name: str, main_class: str, *arguments: str) -> None:
        """Start an application; see :meth:`wait`."""
        self._started.add(name)
        self._say("start", name, main_class, *arguments)

    def stop(self, *names: str) -> None:
        """Close those of the applications that were started, and wait until all are closed."""
        names = tuple(name for name in names if name in self._started)
        for name in names:
            self._started.remove(name)
            self._say("stop", name)
        for name in names:
            self.wait(name, "STOPPED")

    def stop_all(self) -> None:
        """Close whatever a test has left running."""
        self.stop(*self._started)

    def locate(self, name: str, store: str, key: str) -> tuple[int, str]:
        """Return the partition of a key and the ``application.server`` of the instance that has it, as the application knows it."""
        self._say("locate", name, store, key)
        partition, server = self.wait(name, "LOCATED").split()
        return int(partition), server

    def wait(self, name: str, answer: str) -> str:
        """Wait until an application is ``READY``, ``STOPPED`` or ``LOCATED``, and return what else it says.

        :raises RuntimeError: when it fails
        """

        def said() -> bool:
            found = self._answers.get(name, "")
            if found.startswith("FAILED") or self._process.poll() is not None:
                raise RuntimeError(f"{name}: {found or 'the JVM of the examples has ended'}; its log is {self._log.name}")
            return found.startswith(answer)

        wait_for(f"{name} to be {answer}", said)
        return self._answers[name].removeprefix(answer).strip()

    def _say(self, *fields: str) -> None:
        assert self._process.stdin is not None
        self._answers.pop(fields[1], None)
        self._process.stdin.write("\t".join(fields) + "\n")
        self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            what, name, why = line.rstrip("\n").split("\t")
            self._answers[name] = f"{what} {why}"


@dataclass
class Copy:
    """An example with a prefix before all of its names.

    :param folder: for its files and local state
    :param inputs: its topics that are read, repartition topics among them, without the prefix
    :param settings: of Kafka Streams
    """

    host: Host
    cluster: Cluster
    run_kops: Callable[..., Outcome]
    example: str
    main_class: str
    prefix: str
    folder: Path
    inputs: Sequence[str]
    outputs: Sequence[str]
    settings: Mapping[str, str] = field(default_factory=dict)
    state_file_name: str = "state.yaml"

    @property
    def host_name(self) -> str:
        """Return what the host knows it by."""
        return f"{self.prefix}{self.main_class}"

    @property
    def state(self) -> Path:
        """Return where its local state is."""
        return self.folder / "state"

    @property
    def application(self) -> str:
        """Return its application id."""
        return str(self._renamed(self.state_file_name)[0]["application"])

    @property
    def state_file(self) -> str:
        """Write its state file and return the path."""
        (body,) = self._renamed(self.state_file_name)
        body["streams"]["guarantee"] = self.settings.get("processing.guarantee", "at_least_once")
        return self._written(self.state_file_name, [body])

    @property
    def changelogs(self) -> dict[str, str]:
        """Return the changelog of each store."""
        (body,) = self._renamed(self.state_file_name)
        return {name: store.get("changelog") or f"{body['application']}-{name}-changelog" for name, store in body["stores"].items()}

    def kops(self, *arguments: object) -> Outcome:
        """Run kops on the cluster."""
        return self.run_kops(*arguments, "-B", self.cluster.servers)

    def create_topics(self) -> None:
        """Create its topics as its file declares them."""
        self.kops("topics", "apply", self._written("topics.yaml", self._renamed("topics.yaml")), "--yes").ok()

    def view(self, store: str) -> dict[bytes, Entry]:
        """Return what the changelog of a store holds."""
        return compacted_view(self.cluster.read(self.changelogs[store]))

    def views(self) -> dict[str, dict[bytes, Entry]]:
        """Return what all changelogs hold."""
        return {store: self.view(store) for store in self.changelogs}

    def output(self) -> dict[tuple[str, bytes | None], list[bytes | None]]:
        """Return the values that were sent, in their order, by topic and key: between keys there is no order."""
        found: dict[tuple[str, bytes | None], list[bytes | None]] = {}
        for topic in self.outputs:
            for record in self.cluster.read(self.prefix + topic):
                found.setdefault((topic, record.key), []).append(record.value)
        return found

    def committed(self) -> dict[tuple[str, int], int]:
        """Return the committed offsets of its input topics."""
        found = self.cluster.committed(self.application)
        wanted = {self.prefix + topic: topic for topic in self.inputs if not topic.endswith("-repartition")}
        return {(wanted[topic], partition): offset for (topic, partition), offset in found.items() if topic in wanted}

    def produce(self, records: Mapping[str, Sequence[Record]]) -> None:
        """Write records to its topics, named without the prefix."""
        self.cluster.produce_all({self.prefix + topic: several for topic, several in records.items()})

    def start(self, **settings: str) -> None:
        """Start it in the host; settings are Kafka Streams' with ``_`` for ``.``."""
        self.host.start(self.host_name, self.main_class, *self.arguments(self.state, **settings))

    @contextlib.contextmanager
    def second_instance(self, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run another instance of it, in a process of its own that can be killed."""
        log = self.folder / "second.log"
        with log.open("wb") as output:
            process = subprocess.Popen(self.command(self.folder / "second", **settings), stdout=output, stderr=output)
        try:
            wait_for(f"the second instance to be READY ({log})", lambda: "READY" in log.read_text(errors="replace").splitlines())
            yield process
        finally:
            process.kill()
            process.wait(HANG_SECONDS)

    def command(self, state: Path, **settings: str) -> list[str]:
        """Return what starts it in a process of its own."""
        return [*java_with(self.host.classes), self.main_class, *self.arguments(state, **settings)]

    def arguments(self, state: Path, **settings: str) -> list[str]:
        """Return its command line, with its local state in this folder."""
        chosen = {**self.settings, **{key.replace("_", "."): value for key, value in settings.items()}}
        options = [option for key, value in chosen.items() for option in ("--config", f"{key}={value}")]
        return [self.cluster.servers, str(state), "--prefix", self.prefix, *options]

    def _renamed(self, file: str) -> list[Any]:
        documents = list(yaml.safe_load_all((EXAMPLES / self.example / file).read_text(encoding="utf-8")))
        return [_with_prefix(document, self.prefix) for document in documents]

    def _written(self, name: str, documents: Iterable[Any]) -> str:
        file = self.folder / name
        file.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
        return str(file)


def process(copies: Sequence[Copy], *steps: Mapping[str, Sequence[Record]]) -> None:
    """Start copies, let all process each step's records by topic to the end before the next, and close them."""
    for copy in copies:
        copy.start()
    for copy in copies:
        copy.host.wait(copy.host_name, "READY")
    for step in steps:
        for copy in copies:
            copy.produce(step)
        for copy in copies:
            wait_until_processed(copy)
    copies[0].host.stop(*(copy.host_name for copy in copies))


def wait_until_processed(copy: Copy, *, seconds: float = HANG_SECONDS) -> None:
    """Wait until an application has committed the end of every topic that it reads."""
    admin, counts = copy.cluster.admin, copy.cluster.topics(copy.prefix)
    topics = [copy.prefix + topic for topic in copy.inputs]
    wanted = {TopicPartition(topic, number): OffsetSpec.latest() for topic in topics for number in range(counts[topic])}

    def processed() -> bool:
        ends = {(at.topic, at.partition): found.result(HANG_SECONDS).offset for at, found in admin.list_offsets(wanted).items()}
        committed = copy.cluster.committed(copy.application)
        return all(committed.get(at, 0) >= end for at, end in ends.items())

    wait_for(f"{copy.application} to have processed {topics}", processed, seconds)


def _with_prefix(body: Any, prefix: str) -> Any:
    if isinstance(body, dict):
        return {
            key: prefix + value if key in _NAMES and isinstance(value, str) else _with_prefix(value, prefix) for key, value in body.items()
        }
    return [_with_prefix(each, prefix) for each in body] if isinstance(body, list) else body


def with_names(example: str, file: str, folder: Path, names: Mapping[str, str]) -> Path:
    """Write a file of an example with other names and places in it, and return where it is.

    :param names: what is replaced by what
    """
    text = (EXAMPLES / example / file).read_text(encoding="utf-8")
    for old, new in names.items():
        assert old in text, f"{example}/{file} has no {old!r}"
        text = text.replace(old, new)
    path = folder / Path(file).name
    path.write_text(text, encoding="utf-8")
    return path

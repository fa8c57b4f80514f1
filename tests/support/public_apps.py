"""Applications that nobody here wrote: started as their users start them, beside twins that are never broken."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from kops.config.paths import directories
from kops.gateways.machine.jars import CONNECT_VERSION, KAFKA_VERSION, JarSet, class_path, jars_of
from kops.gateways.machine.maven import Artifact
from support.captured import EXAMPLES, ROOT, java, quarkus_app, spring_jar
from support.own_code import jars_of_streams
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams import Entry, compiled
from support.streams_apps import Cluster, wait_for

SOURCES = ROOT / "tests" / "streams" / "public_apps"
SCALA = JarSet(
    "scala",
    f"2.13.16-kafka-{CONNECT_VERSION}",
    (Artifact("org.scala-lang", "scala-compiler", "2.13.16"), Artifact("org.apache.kafka", "kafka-streams-scala_2.13", CONNECT_VERSION)),
)
"""The compiler, and Kafka Streams' Scala API, which the registries have up to the release of the connectors."""
AVRO = JarSet(
    "avro",
    f"1.12.0-kafka-{KAFKA_VERSION}",
    (Artifact("org.apache.avro", "avro", "1.12.0"), Artifact("org.apache.kafka", "kafka-streams", KAFKA_VERSION)),
)
SPRING = JarSet(
    "spring-boot-kafka",
    "3.5.0",
    (
        Artifact("org.springframework.kafka", "spring-kafka", "3.3.6"),
        Artifact("org.springframework.boot", "spring-boot-starter-web", "3.5.0"),
        Artifact("org.apache.kafka", "kafka-streams", "3.9.1"),
    ),
)
SPRING_CLOUD = JarSet(
    "spring-cloud-stream-kafka-streams",
    "4.0.4",
    (
        Artifact("org.springframework.cloud", "spring-cloud-stream-binder-kafka-streams", "4.0.4"),
        Artifact("org.springframework.boot", "spring-boot-starter-json", "3.0.9"),
        Artifact("org.apache.kafka", "kafka-streams", "3.3.2"),
    ),
)
MICRONAUT = JarSet(
    "micronaut-kafka-streams",
    "5.7.0",
    (
        Artifact("io.micronaut.kafka", "micronaut-kafka-streams", "5.7.0"),
        Artifact("io.micronaut", "micronaut-inject-java", "4.7.0"),
        Artifact("io.micronaut", "micronaut-context", "4.7.0"),
        Artifact("io.micronaut", "micronaut-jackson-databind", "4.7.0"),
        Artifact("org.slf4j", "slf4j-simple", "2.0.16"),
    ),
)
"""With the annotation processor, which makes its classes of beans."""
TIMES, BETWEEN, OUTPUT = "timestamps", "all records of a key but the last", "what is sent"
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""Of a class file's constants, by tag."""


@dataclass(frozen=True)
class Public:
    """An application, and what it is given.

    :param start: its start command
    :param inputs: records of each of its topics, by the number of the run they are for
    :param partitions: of its inputs and of its output
    :param settings: further ones
    :param tables: inputs that it reads whole without committing, as global tables
    :param doubtful: keys of its stores are in doubt, so that a rebuild has to be allowed
    :param open: what of its output, and of its stores, is decided by the order of records in several partitions, or by when it punctuates:
        :data:`TIMES` and the like
    """

    name: str
    start: Callable[[Life], list[str]]
    inputs: Mapping[str, Callable[[int], list[Record]]]
    partitions: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    tables: Sequence[str] = ()
    doubtful: bool = False
    open: Sequence[str] = ()


@dataclass
class Life:
    """An application with an id and an output of its own; its input is also that of its twin.

    :param shared: with which the names of its inputs begin
    :param port: of its web server, if it has one
    """

    row: Public
    cluster: Cluster
    shared: str
    application: str
    folder: Path
    guarantee: str
    port: int = 0

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def command(self) -> list[str]:
        self.folder.mkdir(exist_ok=True)
        return self.row.start(self)

    @property
    def topics(self) -> dict[str, str]:
        return {**{name: f"{self.shared}-{name}" for name in self.row.inputs}, "out": f"{self.application}-out"}

    @property
    def settings(self) -> dict[str, str]:
        return {
            "application.id": self.application,
            "bootstrap.servers": self.cluster.servers,
            "state.dir": str(self.state),
            "processing.guarantee": self.guarantee,
            "auto.offset.reset": "earliest",
            "commit.interval.ms": "100",
            "statestore.cache.max.bytes": "0",
            "default.key.serde": "org.apache.kafka.common.serialization.Serdes$StringSerde",
            "default.value.serde": "org.apache.kafka.common.serialization.Serdes$StringSerde",
            "session.timeout.ms": "6000",
            "internal.leave.group.on.close": "true",
            **self.row.settings,
        }

    def file(self, prefix: str = "", without: Sequence[str] = (), **more: str) -> Path:
        """Write the settings into a file, as a program reads them."""
        lines = {**{f"{prefix}{name}": value for name, value in self.settings.items() if name not in without}, **more}
        path = self.folder / "application.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        return path

    def committed(self) -> dict[tuple[str, int], int]:
        """Return the committed offsets of its inputs."""
        inputs = {self.topics[name] for name in self.row.inputs}
        return {at: offset for at, offset in self.cluster.committed(self.application).items() if at[0] in inputs}

    def output(self) -> dict[tuple[int | None, bytes | None], list[Record]]:
        """Return what it has sent, by partition and key: between keys there is no order."""
        found: dict[tuple[int | None, bytes | None], list[Record]] = {}
        if OUTPUT not in self.row.open:
            self.cluster.settle(self.topics["out"])
            for record in self.cluster.read(self.topics["out"]):
                timestamp = 0 if TIMES in self.row.open else record.timestamp
                found.setdefault((record.partition, record.key), []).append(replace(record, offset=None, timestamp=timestamp))
        if BETWEEN in self.row.open:
            return {place: records[-1:] for place, records in found.items() if records[-1].value is not None}
        return found

    def is_through(self) -> bool:
        read = [self.topics[name] for name in self.row.inputs if name not in self.row.tables]
        own = [topic for topic in self.cluster.topics(self.application) if topic.endswith(("-repartition", "-topic"))]
        committed = self.cluster.committed(self.application)
        ends = {(topic, at): end for topic in (*read, *own) for at, (_, end) in self.cluster.ends(topic).items() if end}
        return all(committed.get(at, 0) >= end for at, end in ends.items())


def run_together(lives: Sequence[Life]) -> None:
    """Run applications beside each other until each has processed all that is there, and close them."""
    running = [_Running(life) for life in lives]
    try:
        for each in running:
            wait_for(f"{each.life.application} to process all", each.is_through)
        for each in running:
            each.stop()
    finally:
        for each in running:
            each.kill()


class _Running:
    def __init__(self, life: Life) -> None:
        self.life = life
        self.log = life.folder.with_suffix(".log")
        self._start()

    def _start(self) -> None:
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(self.life.command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)

    def is_through(self) -> bool:
        if self.process.poll() == 0:  # one of Apache's closes itself after five seconds
            if self.life.is_through():
                return True
            self._start()
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        return self.life.is_through()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(HANG_SECONDS)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(HANG_SECONDS)


@dataclass(frozen=True)
class Stores:
    """The changelogs of an application, as its capture names them."""

    life: Life
    capture: Path

    @property
    def all(self) -> list[dict[str, Any]]:
        own = f"{self.life.application}-"
        stores = json.loads(self.capture.read_text())["stores"]
        return [store for store in stores if (store["changelog"] or "").startswith(own)]

    @property
    def changelogs(self) -> dict[str, dict[str, Any]]:
        return {store["changelog"]: store for store in self.all}

    def views(self, life: Life) -> dict[str, View]:
        """Return what the changelogs of this application, or of its twin, hold."""
        found = {}
        for changelog, store in self.changelogs.items():
            topic = life.application + changelog.removeprefix(self.life.application)
            life.cluster.settle(topic)
            found[changelog] = _comparable(store, life.cluster.read(topic), BETWEEN in life.row.open)
        return found

    def check(self, whole: Mapping[str, View], found: Mapping[str, View]) -> None:
        """Compare changelogs. Windows that have expired in the store, which their changelog may still have, need not be there."""
        for changelog, store in self.changelogs.items():
            expected, actual = whole[changelog], found[changelog]
            assert expected, changelog
            at, retention = _TIMES_AT.get((store["kind"] or "").removeprefix("timestamped-")), store.get("retention_ms")
            if at is None or retention is None:
                assert actual == expected, changelog
                continue
            if store.get("retain_duplicates"):
                at += 4  # the number is taken off
            latest: dict[int | None, int] = {}
            for partition, key in expected:
                latest[partition] = max(latest.get(partition, 0), _time(key, at))
            kept = {place: entry for place, entry in expected.items() if _time(place[1], at) >= latest[place[0]] - retention}
            assert actual.items() <= expected.items(), changelog
            assert kept.items() <= actual.items(), changelog


View = Mapping[tuple[int | None, bytes], Entry]
"""What a changelog holds, by partition and key: the same key may be in several where a processor makes it."""
_TIMES_AT = {"window": -12, "session": -16}
"""Where in a key the start of a window, or the end of a session, stands."""


def _time(key: bytes, at: int) -> int:
    return int(struct.unpack_from(">q", key, len(key) + at)[0])


def _comparable(store: Mapping[str, Any], records: Sequence[Record], without_times: bool) -> View:
    """Leave out what differs between two lives: numbers that begin again with each start, and times that the clock gives."""
    latest = {(record.partition, record.key or b""): record for record in records}
    view = {
        place: Entry(record.value, record.timestamp, record.headers, place[0])
        for place, record in latest.items()
        if record.value is not None
    }
    if without_times or store["kind"] == "buffer":
        return {place: replace(entry, timestamp=0) for place, entry in view.items()}
    if store.get("retain_duplicates"):
        without = {(partition, key[:-4]): entry for (partition, key), entry in view.items()}
        assert len(without) == len(view), "records of one key have one time"
        return without
    return view


def made(cluster: Cluster, row: Public, prefix: str, folder: Path, guarantee: str) -> tuple[Life, Life]:
    """Make the topics of an application and its twin."""
    broken, twin = (Life(row, cluster, prefix, f"{prefix}-{name}", folder / name, guarantee) for name in ("broken", "twin"))
    topics = {*broken.topics.values(), *twin.topics.values()}
    cluster.create_all(dict.fromkeys(topics, row.partitions))
    return broken, twin


def give(life: Life, run: int) -> None:
    """Write the records of a run."""
    life.cluster.produce_all({life.topics[name]: records(run) for name, records in life.row.inputs.items()})


def apaches(name: str, *fixed: str, takes_file: bool = False) -> Callable[[Life], list[str]]:
    """Start one of Apache's examples: its classes as they are, but for names of topics, and for settings that its code has.

    :param fixed: names of topics in its code, each with ``=`` and what it is here
    :param takes_file: whether it reads settings from a file
    """

    def start(life: Life) -> list[str]:
        jars = jars_of(EXAMPLES, directories(os.environ).cache)
        (jar,) = (each for each in jars if each.name.startswith("kafka-streams-examples-"))
        replaced = {old: life.topics[new] for old, new in (each.split("=") for each in fixed)}
        if not takes_file:
            replaced["java/util/Properties"] = "GivenProperties"
        changed = _changed_classes(jar, name, replaced, life.folder / "classes")
        given = compiled(SOURCES / "apache" / "GivenProperties.java", "none", [])
        path, file = class_path([changed, given, *jars]), life.file()
        return java(f"-Dgiven={file}", "-cp", path, f"org.apache.kafka.streams.examples.{name}", *[file] * takes_file)

    return start


def _changed_classes(jar: Path, name: str, replaced: Mapping[str, str], target: Path) -> Path:
    """Write the classes of a program with some constants replaced, unless they are there."""
    if not target.exists():
        prefix = f"org/apache/kafka/streams/examples/{name.replace('.', '/')}"
        with zipfile.ZipFile(jar) as whole:
            for entry in whole.namelist():
                if entry.startswith(prefix) and entry.endswith(".class"):
                    file = target / entry
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(_with_constants(whole.read(entry), replaced))
    return target


def _with_constants(content: bytes, replaced: Mapping[str, str]) -> bytes:
    """Replace texts and names of a class file."""
    (count,) = struct.unpack_from(">H", content, 8)
    at, number, parts = 10, 1, [content[:10]]
    while number < count:
        tag = content[at]
        size = 2 + struct.unpack_from(">H", content, at + 1)[0] if tag == 1 else _SIZES[tag]
        constant = content[at : at + 1 + size]
        new = replaced.get(constant[3:].decode("utf-8", "replace")) if tag == 1 else None
        parts.append(constant if new is None else struct.pack(">BH", 1, len(new)) + new.encode())
        at, number = at + 1 + size, number + (2 if tag in (5, 6) else 1)
    return b"".join([*parts, content[at:]])


def plain(main: str) -> Callable[[Life], list[str]]:
    """Start a program of ``plain``."""

    def start(life: Life) -> list[str]:
        jars = jars_of_streams(KAFKA_VERSION)
        classes = compiled(SOURCES / "plain" / f"{main}.java", KAFKA_VERSION, jars)
        return java("-cp", class_path([*jars, classes]), main, life.file(**life.topics))

    return start


def with_avro(main: str) -> Callable[[Life], list[str]]:
    def start(life: Life) -> list[str]:
        jars = jars_of(AVRO, directories(os.environ).cache)
        classes = compiled(SOURCES / "avro" / f"{main}.java", AVRO.version, jars, [SOURCES / "plain" / "Given.java"])
        return java("-cp", class_path([*jars, classes]), main, life.file(**life.topics))

    return start


def in_scala(life: Life) -> list[str]:
    return java("-cp", class_path([*jars_of(SCALA, directories(os.environ).cache), _scala_classes()]), "InScala", life.file(**life.topics))


@cache
def _scala_classes() -> Path:
    jars = jars_of(SCALA, directories(os.environ).cache)
    compiler = ("scala.tools.nsc.Main", "-nowarn")
    return compiled(SOURCES / "scala" / "InScala.scala", SCALA.version, jars, compiler=java("-cp", class_path(jars), *compiler))


def spring_boots(life: Life) -> list[str]:
    """Start a fat jar."""
    own = {f"app.{name}": topic for name, topic in life.topics.items()}
    named = {"spring.kafka.bootstrap-servers": life.cluster.servers, "spring.kafka.streams.application-id": life.application}
    named["server.port"] = str(life.port)
    file = life.file("spring.kafka.streams.properties.", **own, **named)
    return java("-jar", _spring_jar(), f"--spring.config.location=file:{file}")


@cache
def _spring_jar() -> Path:
    jars = jars_of(SPRING, directories(os.environ).cache)
    classes = compiled(SOURCES / "spring" / "SpringWindows.java", SPRING.version, jars, options=("-parameters",))
    target = classes.with_suffix(".jar")
    if not target.exists():
        whole = target.with_suffix(f".{os.getpid()}")
        spring_jar(whole, classes, jars, "SpringWindows").rename(target)
    return target


def spring_clouds(life: Life) -> list[str]:
    jars = jars_of(SPRING_CLOUD, directories(os.environ).cache)
    classes = compiled(SOURCES / "spring" / "SpringCloudWords.java", SPRING_CLOUD.version, jars, options=("-parameters",))
    binder = "spring.cloud.stream.kafka.streams.binder."
    named = {
        f"{binder}brokers": life.cluster.servers,
        f"{binder}applicationId": life.application,
        "spring.cloud.stream.bindings.words-in-0.destination": life.topics["in"],
        "spring.cloud.stream.bindings.words-out-0.destination": life.topics["out"],
    }
    file = life.file(f"{binder}configuration.", ("bootstrap.servers", "application.id"), **named)
    return java("-cp", class_path([*jars, classes]), "SpringCloudWords", f"--spring.config.location=file:{file}")


def micronauts(life: Life) -> list[str]:
    jars = jars_of(MICRONAUT, directories(os.environ).cache)
    classes = compiled(
        SOURCES / "micronaut" / "MicronautWords.java", MICRONAUT.version, jars, options=("-processorpath", class_path(jars), "-parameters")
    )
    own = {f"app.{name}": topic for name, topic in life.topics.items()}
    named = {"kafka.bootstrap.servers": life.cluster.servers, "micronaut.application.name": "words"}
    file = life.file("kafka.streams.default.", **own, **named)
    options = ("-Djava.util.concurrent.ForkJoinPool.common.parallelism=2", f"-Dmicronaut.config.files={file}")  # with 1 it finds no beans
    return java(*options, "-cp", class_path([*jars, classes]), "published.MicronautWords")


def quarkus(life: Life) -> list[str]:
    """Start the weather stations of ``plain``, laid out as Quarkus does."""
    folder = life.folder / "quarkus-app"
    if not folder.exists():
        jars = jars_of_streams(KAFKA_VERSION)
        quarkus_app(folder, compiled(SOURCES / "plain" / "Weather.java", KAFKA_VERSION, jars), jars, "Weather")
    return java("-jar", folder / "quarkus-run.jar", life.file(**life.topics))


def keep(life: Life) -> None:
    """Copy the local state, if it has any, to have it stale later."""
    if life.state.exists():
        shutil.copytree(life.state, life.folder / "kept")


def wipe(life: Life) -> None:
    shutil.rmtree(life.state, ignore_errors=True)


def put_back(life: Life) -> None:
    """Give it the local state that it had then."""
    wipe(life)
    if (life.folder / "kept").exists():
        (life.folder / "kept").rename(life.state)

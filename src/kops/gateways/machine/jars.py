"""The jars of Apache Kafka and those with which Spark reads Kafka; fetched once, then cached.

A set lives in ``<cache>/jars/<set>-<version>/``. It is assembled in a sibling directory and renamed, so a set is
complete or absent, and a lock per set prevents concurrent fetches. For closed networks a directory of
jars (``--jars DIR``, ``KOPS_JARS_DIR``) replaces the cache: either laid out like it (copy ``<cache>/jars`` from
another machine) or holding the jars themselves.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kops.core.errors import MissingRequirement, UsageProblem
from kops.core.extras import STATE, needs
from kops.core.progress import SILENT, Progress
from kops.gateways.machine.checksums import pinned
from kops.gateways.machine.maven import OFFLINE_HINT, Artifact, Repository
from kops.gateways.machine.poms import resolve
from kops.gateways.machine.private_files import lock_whole

KAFKA_VERSION = "4.4.0"
"""The Apache Kafka that kops is tested with."""
CONNECT_VERSION = "4.3.1"
"""The Connect of the newest connectors of Apache Kafka's own that every mirror of Maven Central has. They do not run in a worker of 4.4.0:
it no longer has the class by which they find their version (``org.apache.kafka.common.utils.AppInfoParser``)."""

_LOG4J_VERSION = "2.25.5"
_LOCK_SECONDS = 1800.0


@dataclass(frozen=True)
class JarSet:
    """Jars that belong together.

    :param name: ``kafka`` or ``spark-kafka``
    :param artifacts: the requested ones; their dependencies are added
    :param exclude: organisations to leave out
    :param beside: a directory whose jars are on the class path anyway, and are left out
    """

    name: str
    version: str
    artifacts: tuple[Artifact, ...]
    exclude: tuple[str, ...] = ()
    beside: Path | None = None

    @property
    def folder(self) -> str:
        return f"{self.name}-{self.version}"

    @property
    def named(self) -> list[str]:
        """The files of the artifacts themselves: kops' cache holds this set where all are there, and not that of an earlier kops."""
        return [f"{artifact.name}-{artifact.version}.jar" for artifact in self.artifacts]

    @property
    def main_jar(self) -> str:
        """The file whose presence shows that a directory which somebody else filled holds this set."""
        return self.named[0]


def kafka_set(version: str = KAFKA_VERSION) -> JarSet:
    """Describe Apache Kafka: the broker, its tools, Kafka Streams and its test driver.

    :raises UsageProblem: when it is not a version such as 4.4.0
    """
    if not re.fullmatch(r"(3\.[3-9]|[4-9]\.\d+)\.\d+", version):
        raise UsageProblem(
            f"'{version}' is not a version of Apache Kafka that kops can run",
            hint=f"use 3.3.0, the first that runs without ZooKeeper, or newer, such as {KAFKA_VERSION}",
        )
    names = ("kafka_2.13", "kafka-tools", "kafka-streams", "kafka-streams-test-utils")
    kafka = (*(Artifact("org.apache.kafka", name, version) for name in names), _log4j("log4j-slf4j-impl"))
    if version.startswith("3."):  # Kafka 3 logs to Log4j 1, and its dependency ZooKeeper to Logback
        return JarSet("kafka", version, (*kafka, _log4j("log4j-1.2-api")), exclude=("ch.qos.logback", "ch.qos.reload4j", "log4j"))
    return JarSet("kafka", version, kafka)


def untested(version: str) -> str:
    """Return a sentence about a Kafka that is newer than kops is tested with; empty for others."""
    numbers, tested = (tuple(map(int, text.split("."))) for text in (version, KAFKA_VERSION))
    return f"Kafka {version} is untested: kops is tested with versions up to {KAFKA_VERSION}" if numbers[:2] > tested[:2] else ""


def _log4j(name: str) -> Artifact:
    """Return a part of Log4j; Kafka's POMs leave the binding to its distribution."""
    return Artifact("org.apache.logging.log4j", name, _LOG4J_VERSION)


def connect_set(version: str = CONNECT_VERSION) -> JarSet:
    """Describe Kafka Connect: the worker with its converters and transforms, without connectors.

    :raises UsageProblem: when it is not a version such as 4.4.0
    """
    kafka = kafka_set(version)
    logging = [artifact for artifact in kafka.artifacts if artifact.name.startswith("log4j")]
    return JarSet("connect", version, (Artifact("org.apache.kafka", "connect-runtime", version), *logging), exclude=kafka.exclude)


def spark_kafka_set() -> JarSet:
    """Describe Spark's Kafka connector, of the installed PySpark's version, without what PySpark ships."""
    needs(STATE, "Spark's jars need")
    version = importlib.metadata.version("pyspark")
    connector = Artifact("org.apache.spark", "spark-sql-kafka-0-10_2.13", version)
    return JarSet("spark-kafka", version, (connector,), exclude=("org.scala-lang", "org.apache.hadoop"), beside=pyspark_jars())


def pyspark_jars() -> Path:
    """Return the directory of the jars that PySpark ships, without importing PySpark.

    :raises MissingRequirement: when PySpark is not installed, or without jars
    """
    needs(STATE, "Spark's jars need")
    spec = importlib.util.find_spec("pyspark")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(place) / "jars").is_dir():
            return Path(place) / "jars"
    raise MissingRequirement("PySpark is not installed with its jars", hint="reinstall PySpark in the environment of kops")


def class_path(jars: Sequence[Path]) -> str:
    return os.pathsep.join(str(jar) for jar in jars)


def jars_of(
    wanted: JarSet, cache_directory: Path, *, progress: Progress = SILENT, jars_directory: Path | None = None, fetch: bool = True
) -> list[Path]:
    """Return the jars of a set: from the given directory, otherwise from the cache, otherwise fetched into it.

    :param cache_directory: kops' cache, ``directories.cache``
    :param jars_directory: used instead of the cache; default ``KOPS_JARS_DIR``
    :param fetch: False: never use the network
    :raises MissingRequirement: when they are neither present nor can be fetched
    """
    jars_directory = jars_directory or chosen_directory()
    if jars_directory is not None:
        return _from_directory(wanted, jars_directory)
    jars = cache_directory / "jars"
    present = _jars_in(jars / wanted.folder, wanted.named)
    if present:
        return present
    if not fetch:
        raise MissingRequirement(f"the jars of {wanted.name} {wanted.version} are not in {jars}", hint=OFFLINE_HINT)
    with locked(jars, wanted.folder, progress):
        return _jars_in(jars / wanted.folder, wanted.named) or _fetch(wanted, jars, progress)


def chosen_directory() -> Path | None:
    """Return the directory that ``KOPS_JARS_DIR`` names."""
    return Path(os.environ["KOPS_JARS_DIR"]) if os.environ.get("KOPS_JARS_DIR") else None


def _from_directory(wanted: JarSet, directory: Path) -> list[Path]:
    for folder in (directory / wanted.folder, directory):
        found = _jars_in(folder, [wanted.main_jar])
        if found:
            return found
    raise MissingRequirement(
        f"there is no {wanted.main_jar} in {directory}, nor in {directory / wanted.folder}",
        hint="copy the jars folder of a cache that 'kops doctor --fetch' filled on another machine",
    )


def _jars_in(folder: Path, needed: Iterable[str]) -> list[Path]:
    return sorted(folder.glob("*.jar")) if all((folder / name).is_file() for name in needed) else []


def _fetch(wanted: JarSet, jars: Path, progress: Progress) -> list[Path]:
    """Fetch a set and put its directory in place with one rename, after that of an earlier kops; until then, the next run continues."""
    progress.step(f"fetching the jars of {wanted.name} {wanted.version}, once")
    work = jars / f".{wanted.folder}.part"
    with Repository(work / "repository", progress) as repository:
        digests: Mapping[str, str | None] = pinned().get(wanted.folder, {})
        if not digests:
            present = [jar.name for jar in wanted.beside.glob("*.jar")] if wanted.beside else []
            found = needed_jars(repository, wanted.artifacts, wanted.exclude, progress)
            digests = {each.place: None for each in found if not any(re.match(re.escape(each.name) + r"-\d", jar) for jar in present)}
        files = repository.fetch_all(digests)
    whole, place = gather(files, work / "whole"), jars / wanted.folder
    if place.exists():
        place.rename(work / "earlier")
    whole.rename(place)
    shutil.rmtree(work, ignore_errors=True)
    return _jars_in(place, wanted.named)


def needed_jars(repository: Repository, artifacts: Sequence[Artifact], exclude: Iterable[str], progress: Progress) -> list[Artifact]:
    """Return the jars with which artifacts run; see ``resolve``."""
    progress.step(f"reading the POMs of what {artifacts[0].name} {artifacts[0].version} needs")
    return resolve(artifacts, lambda place: repository.fetch(place).read_bytes(), exclude)


def gather(files: Iterable[Path], folder: Path) -> Path:
    """Move fetched jars into a new folder; return it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in files:
        target = folder / file.name
        file.rename(target.with_name(f"{file.parts[-4]}-{file.name}") if target.exists() else target)  # of two organisations
    return folder


@contextlib.contextmanager
def locked(jars: Path, name: str, progress: Progress) -> Iterator[None]:
    """Hold the lock of one set; the operating system releases it when the process dies."""
    jars.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + _LOCK_SECONDS
    with (jars / f".{name}.lock").open("a") as lock:
        waiting = False
        while not lock_whole(lock.fileno()):
            if time.monotonic() > deadline:
                raise MissingRequirement(f"another kops has been fetching {name} into {jars} for half an hour", hint="stop it, then retry")
            if not waiting:
                progress.step(f"another kops is fetching {name}, waiting for it")
            waiting = True
            time.sleep(0.2)
        yield

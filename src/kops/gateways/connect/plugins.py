"""Connect plugins in the cache of this machine, by Maven coordinate."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from kops.core.errors import MissingRequirement, UsageProblem
from kops.core.extras import STATE, needs
from kops.gateways.machine import ivy
from kops.gateways.machine.archives import cached_folder, fetch_archive, unpack
from kops.gateways.machine.ivy import Artifact, Report, silent
from kops.gateways.machine.jars import repository
from kops.gateways.machine.jdk import require_jdk

CONNECTORS_VERSION = "4.3.1"
"""Of Apache Kafka's own connectors: the newest that every mirror of Maven Central that was tried has. They run in newer workers too."""
FILE_STREAM = f"org.apache.kafka:connect-file:{CONNECTORS_VERSION}"
ARCHIVES = (("plugin", "tar.gz"), ("plugin", "zip"), ("package", "tar.gz"))
"""How plugins are packaged on Maven Central: Debezium and Aiven, others, Camel."""
_OF_THE_WORKER = ("org.slf4j", "ch.qos.logback", "ch.qos.reload4j", "log4j", "org.apache.logging.log4j")
_WORKER_JARS = re.compile(r"(connect-api|connect-json|connect-runtime|connect-transforms|kafka-clients|jakarta\.ws\.rs-api)-\d.*\.jar")
_HINT = "check the coordinate, and the network (KOPS_MAVEN_REPOSITORY=URL names a mirror)"
_FOLDER = "connect-plugins"
_PART = re.compile(r"[A-Za-z0-9_.-]+")


def plugins_directory(cache_directory: Path) -> Path:
    """Return the directory that has one directory per cached plugin: a ``plugin.path``."""
    return cache_directory / "jars" / _FOLDER


def parse_coordinate(text: str) -> Artifact:
    """Parse ``GROUP:ARTIFACT:VERSION``.

    :raises UsageProblem: when it is not a coordinate
    """
    parts = text.split(":")
    if len(parts) != 3 or not all(_PART.fullmatch(part) for part in parts):  # noqa: PLR2004 - group, artifact, version
        raise UsageProblem(
            f"{text!r} is not a Maven coordinate",
            hint="write GROUP:ARTIFACT:VERSION, as io.debezium:debezium-connector-postgres:3.6.0.Final",
        )
    return Artifact(*parts)


def plugin_folder(cache_directory: Path, coordinate: str, *, progress: Report = silent, fetch: bool = True) -> Path:
    """Return the directory of a plugin: its unpacked archive, or its jar with all dependencies if it has no archive.

    :param cache_directory: kops' cache, ``directories.cache``
    :raises UsageProblem: when it is not a Maven coordinate
    :raises MissingRequirement: when it is neither present nor can be fetched
    """
    artifact = parse_coordinate(coordinate)

    def make(work: Path) -> Path:
        needs(STATE, "fetching plugins uses Ivy from PySpark and needs")
        progress(f"fetching {coordinate}")
        for classifier, extension in ARCHIVES:
            try:
                return unpack(fetch_archive(artifact, classifier, extension, work, progress), work / "whole")
            except MissingRequirement:
                continue
        return _jars(artifact, work, progress)

    name = f"{_FOLDER}/{artifact.name}-{artifact.version}"
    return cached_folder(cache_directory / "jars", name, make if fetch else None, report=progress)


def _jars(artifact: Artifact, work: Path, report: Report) -> Path:
    """Fetch a jar and its dependencies, except those that every worker has."""
    java = require_jdk().java
    try:
        files = ivy.resolve([artifact], java=java, work=work, repository=repository(), exclude=_OF_THE_WORKER, report=report)
    except MissingRequirement as missing:
        raise MissingRequirement(f"{artifact.organisation}:{artifact.name}:{artifact.version}: {missing.message}", hint=_HINT) from missing
    whole = work / "whole"
    shutil.rmtree(whole, ignore_errors=True)
    whole.mkdir()
    for file in files:
        if not _WORKER_JARS.fullmatch(file.name):
            shutil.move(file, whole / file.name)
    return whole


def fetched_plugins(cache_directory: Path) -> list[Path]:
    folder = plugins_directory(cache_directory)
    return sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith(".")) if folder.is_dir() else []

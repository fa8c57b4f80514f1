"""Connect plugins in the cache of this machine, by Maven coordinate."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from kops.core.errors import UsageProblem
from kops.core.progress import SILENT, Progress
from kops.gateways.machine.archives import cached_folder, unpack
from kops.gateways.machine.checksums import pinned
from kops.gateways.machine.jars import CONNECT_VERSION, gather, needed_jars
from kops.gateways.machine.maven import Artifact, NotInRepository, Repository

FILE_STREAM = f"org.apache.kafka:connect-file:{CONNECT_VERSION}"
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


def plugin_folder(cache_directory: Path, coordinate: str, *, progress: Progress = SILENT, fetch: bool = True) -> Path:
    """Return the directory of a plugin: its unpacked archive, or its jar with all dependencies if it has no archive.

    :param cache_directory: kops' cache, ``directories.cache``
    :raises UsageProblem: when it is not a Maven coordinate
    :raises MissingRequirement: when it is neither present nor can be fetched
    """
    artifact = parse_coordinate(coordinate)

    def make(work: Path) -> Path:
        progress.step(f"fetching {coordinate}")
        with Repository(work / "repository", progress) as repository:
            if artifact.place in (known := pinned().get(f"{artifact.name}-{artifact.version}", {})):
                return gather(repository.fetch_all(known), work / "whole")
            for classifier, extension in ARCHIVES:
                try:
                    archive = repository.fetch_alone(replace(artifact, classifier=classifier, extension=extension).place)
                except NotInRepository:
                    continue
                return unpack(archive, work / "whole")
            try:
                found = needed_jars(repository, [artifact], _OF_THE_WORKER, progress)
            except NotInRepository as missing:
                raise NotInRepository(f"{coordinate}: {missing.message}", hint=_HINT) from missing
            return gather(
                repository.fetch_all({each.place: None for each in found if not _WORKER_JARS.fullmatch(each.file)}), work / "whole"
            )

    name = f"{_FOLDER}/{artifact.name}-{artifact.version}"
    return cached_folder(cache_directory / "jars", name, make if fetch else None, progress=progress)


def fetched_plugins(cache_directory: Path) -> list[Path]:
    folder = plugins_directory(cache_directory)
    return sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith(".")) if folder.is_dir() else []

"""``kops doctor``: what kops needs on this machine, and how to get what is missing."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kops.config.load import read_config
from kops.config.paths import Directories
from kops.core import extras
from kops.core.errors import KopsError, MissingRequirement
from kops.gateways.connect.plugins import FILE_STREAM, fetched_plugins, plugin_folder
from kops.gateways.machine import jars, jdk
from kops.gateways.machine.archives import registry_folder
from kops.operations.services import Services

OK, MISSING, OPTIONAL = "ok", "missing", "optional"
PLAIN, CONNECT, REGISTRY, ALL = "kafka", "connect", "registry", "all"
"""Choices of ``--fetch``: a plain installation, or what the sandbox needs for Connect or a registry."""

MINIMUM_PYTHON = (3, 10)
MINIMUM_DISK = 2 * 1024**3
"""Bytes: the jars take 135 MB, a sandbox as much as is written to it."""


@dataclass(frozen=True)
class Requirement:
    """One requirement of kops.

    :param status: ok, missing, or optional: absent, but not required or fetched on first use
    :param found: what was found, or what is wrong
    :param hint: what to do about it
    """

    name: str
    status: str
    found: str
    hint: str | None = None


def examine(services: Services, *, fetch: str | None = None, jars_directory: Path | None = None) -> Iterator[Requirement]:
    """Check this machine.

    :param fetch: what to fetch if it is not cached, such as ``ALL``; None: nothing
    :param jars_directory: check this directory of jars instead of the cache
    """
    directories = services.directories
    yield _checked("python", _python)
    for extra in extras.MODULES:
        yield _extra(extra)
    plain, connect, registry = (fetch in (what, ALL) for what in (PLAIN, CONNECT, REGISTRY))
    has_state = not extras.missing_distributions(extras.STATE)
    java = _checked if plain or has_state else _for_the_sandbox
    yield java("java", _java)
    yield java("javac", lambda: str(jdk.require_jdk().tool("javac")))
    yield java("kafka jars", lambda: _jars(services, jars.kafka_set(), plain, jars_directory))
    spark = _checked if has_state else _with_state
    yield spark("spark-kafka jars", lambda: _jars(services, jars.spark_kafka_set(), plain, jars_directory))
    yield _optional("connect jars", lambda: _connect(services, connect, jars_directory), CONNECT, needed=connect)
    yield _optional("registry", lambda: _registry(services, registry), REGISTRY, needed=registry)
    yield _checked("disk", lambda: _disk(directories))
    yield _checked("configuration", lambda: _configuration(directories))


def _checked(name: str, find: Callable[[], str]) -> Requirement:
    try:
        return Requirement(name, OK, find())
    except KopsError as missing:
        return Requirement(name, MISSING, missing.message, missing.hint)


def _extra(extra: str) -> Requirement:
    """Check an optional part of the installation; it may be missing."""
    name, missing = f"extra {extra}", extras.missing_distributions(extra)
    if missing:
        return Requirement(name, OPTIONAL, f"not installed ({', '.join(missing)}); {extras.how_to_add(extra)}")
    versions = {name: _version(name) for name in map(extras.distribution, extras.MODULES[extra])}
    pyspark = versions.get("pyspark", "4.")
    if pyspark[0].isdigit() and not pyspark.startswith("4."):
        return Requirement(name, MISSING, f"PySpark {pyspark} is installed, but 4.x is needed", extras.how_to_add(extra))
    untested = extras.untested_spark(pyspark)
    found = ", ".join(f"{name} {version}" for name, version in versions.items())
    return Requirement(name, OK, f"{found}; {untested}" if untested else found)


def _version(distribution: str) -> str:
    """Return the version of a distribution; what is on the path without metadata, such as Spark's own PySpark, has none."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def _with_state(name: str, find: Callable[[], str]) -> Requirement:
    """Check what is needed only with the extra ``state``, which is not installed."""
    found = _checked(name, find)
    return found if found.status == OK else Requirement(name, OPTIONAL, f"needed only with the extra state: {found.found}")


def _for_the_sandbox(name: str, find: Callable[[], str]) -> Requirement:
    """Check what is needed only with the extra ``state``, which is not installed, and by ``kops sandbox``."""
    found = _checked(name, find)
    return found if found.status == OK else Requirement(name, OPTIONAL, f"needed only by kops sandbox and the extra state: {found.found}")


def _optional(name: str, find: Callable[[], str], what: str, *, needed: bool) -> Requirement:
    """Check an optional requirement; it may be missing unless it was to be fetched."""
    found = _checked(name, find)
    if found.status == OK or needed:
        return found
    return Requirement(name, OPTIONAL, f"not fetched yet: kops sandbox up --{what} or kops doctor --fetch {what} fetches it")


def _connect(services: Services, fetch: bool, jars_directory: Path | None) -> str:
    found = _jars(services, jars.connect_set(), fetch, jars_directory)
    plugin_folder(services.directories.cache, FILE_STREAM, progress=services.progress, fetch=fetch)
    return f"{found}; plugins: {', '.join(folder.name for folder in fetched_plugins(services.directories.cache))}"


def _registry(services: Services, fetch: bool) -> str:
    return str(registry_folder(services.directories.cache, progress=services.progress, fetch=fetch))


def _python() -> str:
    if sys.version_info < MINIMUM_PYTHON:
        raise MissingRequirement(f"Python {platform.python_version()} is too old", hint="install kops with Python 3.10 or newer")
    return f"{platform.python_version()}, {sys.executable}"


def _java() -> str:
    found = jdk.require_jdk()
    return f"{found.version}, {found.java}"


def _jars(services: Services, wanted: jars.JarSet, fetch: bool, jars_directory: Path | None) -> str:
    found = jars.jars_of(wanted, services.directories.cache, progress=services.progress, jars_directory=jars_directory, fetch=fetch)
    return f"{wanted.version}, {len(found)} in {found[0].parent}"


def _disk(directories: Directories) -> str:
    """Check the free space for jars and sandboxes."""
    frees = {}
    for folder in (directories.cache, directories.data):
        there = next(parent for parent in (folder, *folder.parents) if parent.exists())
        if not os.access(there, os.W_OK):
            raise MissingRequirement(f"{there} cannot be written to", hint="change its owner, or set XDG_CACHE_HOME and XDG_DATA_HOME")
        frees[there] = shutil.disk_usage(there).free
    tight = min(frees, key=lambda there: frees[there])
    if frees[tight] < MINIMUM_DISK:
        raise MissingRequirement(
            f"{_gigabytes(frees[tight])} free in {tight}", hint=f"free some space: {_gigabytes(MINIMUM_DISK)} are needed"
        )
    return f"{_gigabytes(frees[tight])} free in {tight}"


def _gigabytes(size: int) -> str:
    return f"{size / 1024**3:.1f} GiB"


def _configuration(directories: Directories) -> str:
    file = read_config(directories)
    for name in file.contexts:
        file.layer(name)
    if not directories.config_file.exists():
        return f"no file yet, {directories.config_file}"
    count = len(file.contexts)
    return f"{count} context{'' if count == 1 else 's'} in {directories.config_file}"

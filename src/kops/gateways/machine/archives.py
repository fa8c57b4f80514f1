"""Programs that Maven repositories provide as archives: fetched once and unpacked atomically."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from kops.core.errors import MissingRequirement
from kops.core.progress import SILENT, Progress
from kops.gateways.machine.checksums import pinned
from kops.gateways.machine.jars import chosen_directory, locked
from kops.gateways.machine.maven import OFFLINE_HINT, Artifact, NotInRepository, Repository

REGISTRY_VERSION = "3.0.9"
REGISTRY = Artifact("io.apicurio", "apicurio-registry-app", REGISTRY_VERSION, "all", "tar.gz")
"""Apicurio, which has Confluent's API under ``/apis/ccompat/v7``."""


def registry_folder(cache_directory: Path, *, progress: Progress = SILENT, fetch: bool = True) -> Path:
    """Return the directory of the schema registry, fetching it if necessary.

    :param cache_directory: kops' cache, ``directories.cache``
    :raises MissingRequirement: when it is neither present nor can be fetched
    """
    jars = cache_directory / "jars"

    def unpacked(work: Path) -> Path:
        progress.step(f"fetching the schema registry {REGISTRY_VERSION}, once")
        with Repository(work / "repository", progress) as repository:
            archive = repository.fetch_alone(REGISTRY.place, pinned()[name][REGISTRY.place])
        return unpack(archive, work / "whole")

    name = f"apicurio-registry-{REGISTRY_VERSION}"
    return cached_folder(jars, name, unpacked if fetch else None, progress=progress)


def cached_folder(jars: Path, name: str, make: Callable[[Path], Path] | None, *, progress: Progress) -> Path:
    """Return a directory below the jars of the cache, creating it if necessary; ``KOPS_JARS_DIR`` is searched first.

    :param name: of the directory, relative to the jars
    :param make: creates it somewhere under the given directory and returns its path; None: it must exist
    :raises MissingRequirement: when it does not exist and must not be created
    """
    given = chosen_directory()
    if given is not None and (given / name).is_dir():
        return given / name
    folder = jars / name
    if folder.is_dir():
        return folder
    if make is None:
        raise MissingRequirement(f"{folder.name} is not in {folder.parent}", hint=OFFLINE_HINT)
    with locked(jars, folder.name, progress):
        if not folder.is_dir():
            work = jars / f".{folder.name}.part"
            work.mkdir(parents=True, exist_ok=True)
            folder.parent.mkdir(exist_ok=True)
            try:
                make(work).rename(folder)
            except NotInRepository:
                shutil.rmtree(work, ignore_errors=True)
                raise
            shutil.rmtree(work, ignore_errors=True)  # only now: until then, the next run continues
    return folder


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a ``tar.gz`` or ``zip`` into a directory, never outside of it; return the directory."""
    shutil.rmtree(folder, ignore_errors=True)
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as zipped:
            zipped.extractall(folder)  # noqa: S202 - it leaves out ".." and absolute paths
    else:
        with tarfile.open(archive) as tarred:
            _extract(tarred, folder)
    return folder


def _extract(tarred: tarfile.TarFile, folder: Path) -> None:
    """Unpack regular files and directories, never outside of ``folder``.

    Python before 3.10.12 and 3.11.4 has no filter for that.

    :raises MissingRequirement: for any other kind of member, or a path outside of ``folder``
    """
    if hasattr(tarfile, "data_filter"):
        tarred.extractall(folder, filter="data")
        return
    root = folder.resolve()
    for member in tarred:
        if not (member.isreg() or member.isdir()) or not (folder / member.name).resolve().is_relative_to(root):
            raise MissingRequirement(
                f"the archive contains {member.name}, which is not safe to unpack", hint="use Python 3.10.12, 3.11.4 or newer"
            )
        tarred.extract(member, folder)

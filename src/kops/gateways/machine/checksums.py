"""Checksums of the jars that kops fetches by default, independent of the repository.

A mirror, or whoever impersonates it, serves both jars and their checksums. Sets of other versions, archives and plugins are verified
by the repository's own checksums only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from kops.core.errors import MissingRequirement

_FILE = Path(__file__).with_name("jars.sha256")


@cache
def pinned() -> dict[str, dict[str, str]]:
    """Return, by set and by name of a jar, its SHA-256 in hexadecimal digits."""
    found: dict[str, dict[str, str]] = {}
    jars: dict[str, str] = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            jars = found.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            digest, name = line.split()
            jars[name] = digest
    return found


def verify_checksums(folder: str, files: Iterable[Path], repository: str) -> None:
    """Reject jars of a pinned set that are not those kops is tested with.

    :param folder: name of the set, such as ``kafka-4.3.1``
    :param repository: where they were fetched from, without credentials
    :raises MissingRequirement: naming the first mismatch; nothing was installed
    """
    known = pinned().get(folder)
    if known is None:
        return
    for file in files:
        if file.name not in known:
            raise _refusal(f"{file.name}, which is not one of the jars of {folder}", repository)
        with file.open("rb") as stream:
            digest = hashlib.sha256()
            while part := stream.read(1 << 20):
                digest.update(part)
        if digest.hexdigest() != known[file.name]:
            raise _refusal(
                f"a {file.name} that is not the one of {folder}: its SHA-256 is {digest.hexdigest()}, not {known[file.name]}", repository
            )


def _refusal(what: str, repository: str) -> MissingRequirement:
    return MissingRequirement(
        f"{repository} serves {what}",
        hint="nothing was installed: fetch from another repository (KOPS_MAVEN_REPOSITORY=URL), or name a folder with --jars",
    )

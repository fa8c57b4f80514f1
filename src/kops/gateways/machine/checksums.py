"""The jars that kops fetches by default: their checksums, independent of the repository, and their places in it.

A mirror, or whoever impersonates it, serves both jars and their checksums. Sets of other versions, archives and plugins are verified
by the repository's own checksums only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from kops.config.http import http_session
from kops.core.errors import MissingRequirement
from kops.gateways.machine.ivy import Report, is_unencrypted

if TYPE_CHECKING:
    from requests import Session

_FILE = Path(__file__).with_name("jars.sha256")
_AT_ONCE = 8
_PATIENCE = (15.0, 120.0)
"""Seconds to connect, and to wait for data."""


@cache
def _places() -> dict[str, dict[str, str]]:
    """Return, by set and by a jar's path in a Maven repository, its SHA-256 in hexadecimal digits."""
    found: dict[str, dict[str, str]] = {}
    jars: dict[str, str] = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            jars = found.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            digest, place = line.split()
            jars[place] = digest
    return found


def pinned() -> dict[str, dict[str, str]]:
    """Return, by set and by name of a jar, its SHA-256 in hexadecimal digits."""
    return {folder: {PurePosixPath(place).name: digest for place, digest in jars.items()} for folder, jars in _places().items()}


def fetch_pinned(folder: str, repository: str, into: Path, report: Report) -> list[Path] | None:
    """Fetch the jars of a pinned set, several at once: since their places are known, no POM is read, and the 95 of Kafka take seconds.

    :returns: None: the set is not pinned, or cannot be fetched so, as from a folder; Ivy tries then, and says what is wrong
    """
    places = [PurePosixPath(place) for place in _places().get(folder, ())]
    if not places or not repository.startswith(("http://", "https://")) or is_unencrypted(repository):
        return None
    from requests.utils import get_auth_from_url

    fetched: list[Path] = []
    with http_session() as session, ThreadPoolExecutor(_AT_ONCE) as pool:
        login = get_auth_from_url(repository)
        session.auth = login if any(login) else session.auth
        try:
            for file in pool.map(partial(_fetch, session, repository.rstrip("/"), into), places):
                fetched.append(file)
                if len(fetched) % 20 == 0 or len(fetched) == len(places):
                    report(f"fetching: {len(fetched)} of {len(places)} jars")
        except OSError:  # those of requests too
            return None
    return fetched


def _fetch(session: Session, repository: str, into: Path, place: PurePosixPath) -> Path:
    """Fetch one jar into a folder named after its artifact, as Ivy's cache has it."""
    file = into / place.parts[-3] / "jars" / place.name
    file.parent.mkdir(parents=True, exist_ok=True)
    with session.get(f"{repository}/{place}", stream=True, timeout=_PATIENCE) as answer, file.open("wb") as target:
        answer.raise_for_status()
        for part in answer.iter_content(1 << 20):
            target.write(part)
    return file


def verify_checksums(folder: str, files: Iterable[Path], repository: str) -> None:
    """Reject jars of a pinned set that are not those kops is tested with.

    :param folder: name of the set, such as ``kafka-4.4.0``
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

"""A Maven repository, read by HTTP: its files are resumed, verified, and complete or absent.

The checksums beside a repository's files detect a damaged file but not a malicious repository; for that are those of ``jars.sha256``
(for the sets that kops fetches by default), and https.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from kops.config.http import http_session
from kops.core.errors import MissingRequirement
from kops.core.progress import Progress
from kops.core.secret_shapes import without_login

if TYPE_CHECKING:
    import requests

MAVEN_CENTRAL = "https://repo1.maven.org/maven2/"
AT_ONCE = 8
OFFLINE_HINT = (
    "run kops doctor --fetch on a machine with network access (KOPS_MAVEN_REPOSITORY=URL names a mirror),"
    " or copy the folder from another machine and name it with --jars DIR or KOPS_JARS_DIR"
)
_PATIENCE = (15.0, 120.0)
"""Seconds to connect, and to wait for data."""
_CHUNK = 1 << 16
_NOTHING_INSTALLED = "nothing was installed: fetch from another repository (KOPS_MAVEN_REPOSITORY=URL), or name a folder with --jars"
_STATED = ("sha1", "sha256")
"""The checksums that repositories have beside a file, in the order in which they are asked for; Maven Central has all first ones."""
_NOT_FOUND, _PARTIAL, _NOT_SATISFIABLE = 404, 206, 416

Advance = Callable[[int, "int | None"], None]


class NotInRepository(MissingRequirement):
    """The repository answered, and does not have the file."""


@dataclass(frozen=True)
class Artifact:
    """A file that Maven's coordinates name.

    :param organisation: Maven's group id
    """

    organisation: str
    name: str
    version: str
    classifier: str = ""
    extension: str = "jar"

    def __str__(self) -> str:
        return f"{self.organisation}:{self.name}:{self.version}"

    @property
    def file(self) -> str:
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{classifier}.{self.extension}"

    @property
    def place(self) -> str:
        """Its path in a repository."""
        return f"{self.organisation.replace('.', '/')}/{self.name}/{self.version}/{self.file}"


def address() -> str:
    """Return the Maven repository to fetch from: Maven Central, unless ``KOPS_MAVEN_REPOSITORY`` names a mirror."""
    return os.environ.get("KOPS_MAVEN_REPOSITORY") or MAVEN_CENTRAL


def is_unencrypted(repository: str) -> bool:
    """Whether what it serves passes a network in plain text."""
    return repository.startswith("http://") and not re.match(r"http://(?:[^/@]*@)?(?:localhost|127\.0\.0\.1|\[::1\])[:/]", repository)


class Repository:
    """The repository of ``address()``; fetched files are kept below a folder, by their place, so that another run resumes.

    :param into: the folder
    """

    def __init__(self, into: Path, progress: Progress) -> None:
        self._into, self._progress = into, progress
        self._root = without_login(address()).rstrip("/")
        self._stopped = threading.Event()
        self._locks: dict[str, threading.Lock] = {}
        self._session: requests.Session | None = None

    def __enter__(self) -> Repository:
        if is_unencrypted(address()):
            self._progress.step(f"warning: jars come from {self._root}/ unencrypted, and so do their checksums: use https://")
        if not self._root.startswith("file:"):
            from requests.utils import get_auth_from_url

            login = get_auth_from_url(address())
            self._session = http_session()
            self._session.auth = login if any(login) else self._session.auth
            self._session.headers["Accept-Encoding"] = "identity"  # a part of a packed file cannot be continued
        return self

    def __exit__(self, *_: object) -> None:
        if self._session:
            self._session.close()

    def fetch_all(self, digests: Mapping[str, str | None]) -> list[Path]:
        """Fetch jars, several at once, and report how many are there.

        :param digests: by place; see ``fetch``
        """
        with ThreadPoolExecutor(AT_ONCE) as pool:
            try:
                running = [pool.submit(self.fetch, place, digest) for place, digest in digests.items()]
                for done, one in enumerate(as_completed(running), 1):
                    one.result()
                    self._progress.advance(done, len(running), "jars")
            except BaseException:
                self._stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [one.result() for one in running]

    def fetch_alone(self, place: str, digest: str | None = None) -> Path:
        """Fetch a large file, and report how much of it is there; see ``fetch``."""
        megabyte = 1_000_000

        def advance(done: int, total: int | None) -> None:
            self._progress.advance(done // megabyte, total and total // megabyte, "MB")

        return self.fetch(place, digest, advance)

    def fetch(self, place: str, digest: str | None = None, advance: Advance = lambda _done, _total: None) -> Path:
        """Fetch a file unless an earlier run did.

        :param place: its path in the repository
        :param digest: its SHA-256 in hexadecimal digits; None: the checksum beside it in the repository counts, if there is one
        :raises NotInRepository: when the repository does not have it
        :raises MissingRequirement: when it cannot be fetched, or is another file; then nothing of it is kept
        """
        file = self._into / place
        with self._locks.setdefault(place, threading.Lock()):
            if file.is_file() and (digest is None or _digest(file, "sha256") == digest):
                return file
            file.unlink(missing_ok=True)
            file.parent.mkdir(parents=True, exist_ok=True)
            part = file.with_name(f"{file.name}.part")
            while True:
                resumed = part.exists()
                self._read(place, part, advance)
                if self._stopped.is_set():
                    return part
                kind, wanted = ("sha256", digest) if digest else self._stated(place)
                found = _digest(part, kind) if wanted else None
                if found == wanted:
                    return part.replace(file)
                part.unlink()
                if not resumed:  # what it continued may have been another version's
                    raise MissingRequirement(
                        f"{self._root}/ serves a {file.name} that is not the expected one: its {kind.upper()} is {found}, not {wanted}",
                        hint=_NOTHING_INSTALLED,
                    )

    def _stated(self, place: str) -> tuple[str, str | None]:
        """Return the kind and the digits of the checksum that the repository has for a file."""
        for kind in _STATED:
            try:
                with self._open(f"{place}.{kind}", 0) as (_start, _size, parts):
                    words = b"".join(parts).decode("utf-8", "replace").lower().split()
            except NotInRepository:
                continue
            digits = [
                word for word in words if re.fullmatch(rf"[0-9a-f]{{{hashlib.new(kind, usedforsecurity=False).digest_size * 2}}}", word)
            ]
            if digits:
                return kind, digits[0]
        return _STATED[0], None

    def _read(self, place: str, part: Path, advance: Advance) -> None:
        """Read a file to its end, where it was left; a connection that breaks is tried again as long as each adds something."""
        while True:
            before = part.stat().st_size if part.exists() else 0
            try:
                with self._open(place, before) as (start, size, parts), part.open("ab") as target:
                    target.truncate(start)
                    for piece in parts:
                        target.write(piece)
                        advance(target.tell(), size)
                        if self._stopped.is_set():
                            return  # an error elsewhere is reported
                return
            except MissingRequirement:
                if not part.exists() or part.stat().st_size <= before:
                    raise

    @contextmanager
    def _open(self, place: str, start: int) -> Iterator[tuple[int, int | None, Iterator[bytes]]]:
        """Yield from which byte on a file is read, its size if that is known, and its parts.

        :param start: the first byte; a repository may begin at 0 instead
        """
        if self._session is None:
            try:
                with Path(url2pathname(urlsplit(self._root).path), place).open("rb") as local:
                    yield 0, None, iter(lambda: local.read(_CHUNK), b"")
            except FileNotFoundError:
                raise NotInRepository(self._cannot(place, "it is not there"), hint=OFFLINE_HINT) from None
            return
        import requests

        headers = {"Range": f"bytes={start}-"} if start else {}
        try:
            with self._session.get(f"{self._root}/{place}", stream=True, timeout=_PATIENCE, headers=headers) as answer:
                if answer.status_code == _NOT_FOUND:
                    raise NotInRepository(self._cannot(place, "it is not there (HTTP 404)"), hint=OFFLINE_HINT)
                if answer.status_code != _NOT_SATISFIABLE or not start:
                    answer.raise_for_status()
                    continues = answer.status_code == _PARTIAL and answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")
                    begun = start if continues else 0
                    length = answer.headers.get("Content-Length", "")
                    yield begun, begun + int(length) if length.isdigit() else None, answer.iter_content(_CHUNK)
                    return
        except requests.RequestException as failed:
            raise MissingRequirement(self._cannot(place, _reason(failed)), hint=OFFLINE_HINT) from failed
        with self._open(place, 0) as whole:
            yield whole

    def _cannot(self, place: str, why: str) -> str:
        return f"{place.rpartition('/')[2]} cannot be fetched from {self._root}/: {why}"


def _digest(file: Path, kind: str) -> str:
    digest = hashlib.new(kind, usedforsecurity=False)
    with file.open("rb") as stream:
        while part := stream.read(_CHUNK):
            digest.update(part)
    return digest.hexdigest()


def _reason(failed: requests.RequestException) -> str:
    """Return why a request failed, without the layers of libraries around it."""
    if failed.response is not None:
        return f"HTTP {failed.response.status_code} {failed.response.reason}"
    inner: Any = failed
    while (
        deeper := getattr(inner, "reason", None) or next((each for each in inner.args if isinstance(each, BaseException)), None)
    ) and isinstance(deeper, BaseException):
        inner = deeper
    return str(inner).rpartition(">: ")[2] or type(inner).__name__

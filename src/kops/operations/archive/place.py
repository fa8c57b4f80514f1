"""Where an archive is stored: a folder on this machine, or anything else that Spark reaches by a URI.

In both cases a run that is killed leaves the archive as it was: only what the newest manifest names belongs to it. In a folder on this
machine that is ``manifest.json``, renamed after it is written; elsewhere Spark writes ``manifests/NUMBER``, with the next number each
time, which exists once its committer has moved it.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kops.config.durable import sync, sync_tree, write_whole
from kops.config.files import is_absent, parse_json, read_text
from kops.core.errors import ConfigError, OperationFailed, UsageProblem
from kops.operations.engine.spark import Engine

FILE, MANIFESTS, RECORDS = "manifest.json", "manifests", "records"


@dataclass(frozen=True)
class ArchivePlace:
    """The location of an archive.

    :param path: absolute, or a URI
    """

    path: str

    @property
    def folder(self) -> Path | None:
        return None if "://" in self.path else Path(self.path)

    @property
    def manifests(self) -> str:
        return f"{self.path}/{MANIFESTS}"

    def records(self, run: str) -> str:
        return f"{self.path}/{RECORDS}/{run}"

    def read(self, engine: Engine) -> dict[str, Any] | None:
        """Return the newest manifest; None when there is none.

        :raises ConfigError: when it is not JSON
        """
        text = _read_local(self.folder) if self.folder else _newest(engine, self.manifests)[1]
        body = None if text is None else parse_json(text, f"the manifest of {self.path}", hint="is it an archive that kops wrote?")
        if body is not None and not isinstance(body, dict):
            raise ConfigError(f"the manifest of {self.path} is not valid", hint="is it an archive that kops wrote?")
        return body

    def write(self, engine: Engine, body: dict[str, Any]) -> None:
        if self.folder:
            _write_local(self.folder, json.dumps(body, indent=2, ensure_ascii=False))
            return
        number = _newest(engine, self.manifests)[0] + 1
        from kops.spark.reading.manifests import write_manifest

        write_manifest(engine.session, self.manifests, number, json.dumps(body, ensure_ascii=False))

    def forget_others(self, runs: Collection[str]) -> None:
        """Delete what killed runs have left; outside this machine it stays, and does not count."""
        left = self.folder / RECORDS if self.folder else None
        for folder in left.iterdir() if left and left.is_dir() else ():
            if folder.name not in runs:
                shutil.rmtree(folder, ignore_errors=True)

    def make(self) -> None:
        """Create the folder if it does not exist, for its owner only: it gets everything that the topic has.

        :raises OperationFailed: when that fails
        """
        try:
            if self.folder is not None and not self.folder.exists():
                self.folder.mkdir(mode=0o700)
        except OSError as error:
            raise OperationFailed(f"cannot make {self.path}: {error.strerror}", hint="nothing was archived") from error

    def make_durable(self, run: str) -> None:
        """Flush a run's files and folders to disk before a manifest names them; outside this machine the storage is responsible for that.

        :raises OperationFailed: when that fails
        """
        if self.folder is None:
            return
        top = Path(self.records(run))
        try:
            sync_tree(top, private=True)
            for path in (top.parent, self.folder, self.folder.parent):
                sync(path)
        except OSError as error:
            raise OperationFailed(f"cannot write {top} to disk: {error.strerror}", hint="the archive is as it was") from error

    def require_seen(self, engine: Engine, run: str) -> None:
        """Refuse when Spark's workers wrote to a folder that this machine does not see.

        :raises UsageProblem: before the manifest names it
        """
        if self.folder and not any(Path(self.records(run)).rglob("*.parquet")):
            raise UsageProblem(
                f"Spark at {engine.master} wrote where this machine does not see it",
                hint="name a folder that its workers and this machine share, or a URI such as s3a://bucket/orders",
            )


def place_of(path: str) -> ArchivePlace:
    """Return the location that a path or URI names.

    :raises UsageProblem: when the folder could not be created
    """
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", path):
        scheme, rest = path.split(":", 1)
        return ArchivePlace(f"{scheme}://{rest.removeprefix('//').rstrip('/')}")
    folder = Path(path).absolute()
    if not folder.exists() and not folder.parent.is_dir():
        raise UsageProblem(f"there is no folder {folder.parent}", hint="make it first")
    if folder.exists() and not folder.is_dir():
        raise UsageProblem(f"{folder} is not a folder", hint="name a new one, or one that `kops replay archive` made")
    return ArchivePlace(str(folder))


def refuse_others(place: ArchivePlace) -> None:
    """Refuse to begin an archive in a folder that has other contents.

    :raises UsageProblem: when it has
    """
    if place.folder and place.folder.is_dir() and any(each.name != RECORDS for each in place.folder.iterdir()):
        raise UsageProblem(f"{place.folder} has other things in it and no {FILE}", hint="name another folder")


def _read_local(folder: Path) -> str | None:
    try:
        return read_text(folder / FILE, hint="may you read it?")
    except ConfigError as error:
        if is_absent(error):
            return None
        raise


def _write_local(folder: Path, text: str) -> None:
    try:
        write_whole(folder / FILE, text)
    except OSError as error:
        raise OperationFailed(f"cannot write {folder / FILE}: {error.strerror}", hint="the archive is as it was") from error


def _newest(engine: Engine, path: str) -> tuple[int, str | None]:
    session = engine.session  # must have started before anything else imports pyspark
    from kops.spark.reading.manifests import newest_manifest

    return newest_manifest(session, path)

"""Opens an archive, reads it whole, and compares it with its manifest before anything is made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kops.core.errors import NotFound, Refused
from kops.operations.archive.manifest import Archive, archive_of_json, held_json
from kops.operations.archive.place import ArchivePlace, place_of
from kops.operations.engine.spark import Engine

if TYPE_CHECKING:
    from kops.spark.types import DataFrame

_ADDED = ("records", "tombstones", "with_headers", "high", "low")


def read_archive_of(engine: Engine, place: ArchivePlace) -> Archive | None:
    body = place.read(engine)
    return None if body is None else archive_of_json(body, place.path)


def open_archive(engine: Engine, path: str) -> tuple[ArchivePlace, Archive]:
    """Return an existing archive.

    :raises NotFound: when there is none
    """
    place = place_of(path)
    found = read_archive_of(engine, place)
    if found is None:
        raise NotFound(f"{path} is not an archive: it has no manifest", hint="name what `kops replay archive TOPIC --to DIR` made")
    return place, found


def runs_of(archive: Archive) -> list[str]:
    return [run.name for run in archive.runs if run.contents]


def paths_of(place: ArchivePlace, archive: Archive) -> tuple[str, ...]:
    return tuple(place.records(run) for run in runs_of(archive))


def rows_compared(engine: Engine, place: ArchivePlace, archive: Archive) -> DataFrame | None:
    """Read an archive once, and return its rows; None when it has none.

    :raises Refused: when its contents differ from its manifest
    """
    session = engine.session  # must have started before anything else imports pyspark
    from kops.spark.driver.failures import explained
    from kops.spark.reading.archive import contents_of, read_archive

    paths = paths_of(place, archive)
    if not paths:
        return None
    engine.services.progress.step(f"reading the archive of {archive.topic}")
    with explained(f"read the archive {place.path}"):
        rows = read_archive(session, paths)
        found = held_json(contents_of(rows))
    for number in archive.held_partitions:
        said = [run.contents[number] for run in archive.runs if number in run.contents]
        wanted = {name: sum(each[name] for each in said) for name in _ADDED}
        there = {name: found.get(number, {}).get(name, 0) for name in _ADDED}
        if wanted != there:
            raise Refused(
                f"the files of {archive.topic}:{number} do not hold what the manifest says: {there['records']:,} records, not"
                f" {wanted['records']:,}" + ("" if there["records"] != wanted["records"] else " with the same content"),
                hint=f"the archive {place.path} is damaged, or was changed; nothing was done",
            )
    return rows

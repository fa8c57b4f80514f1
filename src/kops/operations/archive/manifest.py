"""The manifest of an archive, as JSON: the topic, the runs with the offsets that each archived, and the offsets of groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from kops.core.errors import ConfigError
from kops.core.models import CommittedOffset, NewTopic
from kops.operations.offsets.items import committed_json

VERSION = 1
_FIELDS = ("topic", "topic_id", "cluster_id", "partitions", "replication_factor", "settings", "by", "taken", "kops")


@dataclass(frozen=True)
class Run:
    """What one call of `kops replay archive` added.

    :param name: of its folder
    :param ranges: partition -> offsets from, and to (exclusive); offsets without a record were aborted, a marker, or compacted away
    :param contents: partition -> what its files hold (``spark.reading.snapshot.Content``)
    """

    name: str
    taken: str
    ranges: Mapping[int, tuple[int, int]]
    contents: Mapping[int, Mapping[str, int]]

    @property
    def records(self) -> int:
        return sum(held["records"] for held in self.contents.values())


@dataclass(frozen=True)
class Archive:
    """An archive.

    :param settings: of the topic itself
    :param by: ``day`` or ``hour``
    :param groups: group -> partition -> committed offset, when the last run began
    """

    topic: str
    topic_id: str | None
    cluster_id: str
    partitions: int
    replication_factor: int | None
    settings: Mapping[str, str]
    by: str
    taken: str
    kops: str
    runs: tuple[Run, ...] = ()
    groups: Mapping[str, Mapping[int, CommittedOffset]] = field(default_factory=dict)

    def span(self, partition: int) -> tuple[int, int] | None:
        """Return the archived range of offsets of a partition; None before the first run that included it."""
        found = [run.ranges[partition] for run in self.runs if partition in run.ranges]
        return (found[0][0], found[-1][1]) if found else None

    def gaps(self, partition: int) -> list[tuple[int, int]]:
        """Return the offsets between runs that had been deleted from the topic before they were archived."""
        found = [run.ranges[partition] for run in self.runs if partition in run.ranges]
        return [(one[1], other[0]) for one, other in pairwise(found) if other[0] > one[1]]

    def records(self, partition: int) -> int:
        return sum(run.contents[partition]["records"] for run in self.runs if partition in run.contents)

    @property
    def held_partitions(self) -> list[int]:
        return sorted({number for run in self.runs for number in run.contents})

    def new_topic(self, name: str) -> NewTopic:
        return NewTopic(name, self.partitions, self.replication_factor, dict(self.settings))


def archive_json(archive: Archive) -> dict[str, Any]:
    return {
        "version": VERSION,
        **{name: getattr(archive, name) for name in _FIELDS},
        "runs": [
            {
                "name": run.name,
                "taken": run.taken,
                "ranges": {str(number): list(some) for number, some in sorted(run.ranges.items())},
                "contents": {str(number): dict(held) for number, held in sorted(run.contents.items())},
            }
            for run in archive.runs
        ],
        "groups": {
            group: {str(number): committed_json(found) for number, found in sorted(offsets.items())}
            for group, offsets in sorted(archive.groups.items())
        },
    }


def held_json(contents: Mapping[int, Any]) -> dict[int, dict[str, int]]:
    return {number: asdict(held) for number, held in sorted(contents.items())}


def archive_of_json(body: Mapping[str, Any], path: str) -> Archive:
    """Read what ``archive_json`` returned.

    :raises ConfigError: when it is something else
    """
    if body.get("version") != VERSION:
        raise ConfigError(f"{path} is not an archive of version {VERSION}", hint="use the version of kops that wrote it")
    try:
        runs = tuple(
            Run(
                run["name"],
                run["taken"],
                {int(number): (int(some[0]), int(some[1])) for number, some in run["ranges"].items()},
                {int(number): held for number, held in run["contents"].items()},
            )
            for run in body["runs"]
        )
        groups = {
            group: {int(number): CommittedOffset(found["offset"], found.get("metadata", "")) for number, found in offsets.items()}
            for group, offsets in body["groups"].items()
        }
        return Archive(**{name: body[name] for name in _FIELDS}, runs=runs, groups=groups)
    except (KeyError, TypeError, ValueError, AttributeError) as broken:
        raise ConfigError(f"the manifest of {path} is damaged: {broken!r}", hint="is it an archive that kops wrote?") from broken

"""The data in plans of replays, restores and redrives, in addition to their items."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kops.core.intervals import Intervals
from kops.core.models import NewTopic, TopicPartition
from kops.core.plan import Arguments, Json
from kops.core.times import ANY_TIME, Times
from kops.core.topics.changes import new_topic_json
from kops.operations.offsets.items import partition_of
from kops.operations.replay.request import Changes, changes_of_json
from kops.operations.replay.targets import Targets
from kops.operations.services import Services

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class ReplayArguments(Arguments):
    """A planned replay.

    :param replay: its name: prefix of its groups and transactional ids
    :param source_context: where the source is, when it is on another cluster
    :param target: topic; None when there are several
    :param ranges: partition of the source -> first offset, and the one after the last
    :param partition_by: ``keep``, ``key`` or an expression
    :param new_times: the target may set its own timestamps
    :param targets: number of partitions of each target
    :param anchor: the target under whose partition 0 progress is committed
    :param largest: bytes of the largest batch that all targets accept
    :param inflated: a target compresses by itself: see ``formats.batches.copy.fingerprint``
    :param own: the targets had no records before
    :param no_undo: why it cannot be undone; empty when it can
    :param ends: of the targets' partitions, before
    :param progress_topic: where transactions record the progress too; None for nowhere
    :param times: only records with these timestamps are sent, if there are others between them
    :param of_times: partition -> the number of records of a range of time, as counted for the plan; empty for other ranges
    :param resumed: only what is left is sent
    :param preview: what a dry run found
    """

    replay: str
    source: str
    master: str
    source_context: str | None = None
    target: str | None = None
    ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    changes: Changes = field(default_factory=Changes)
    partition_by: str | None = None
    rate: float | None = None
    limit: int | None = None
    guarantee: str = ""
    compression: str = "none"
    new_times: bool = False
    targets: Mapping[str, int] = field(default_factory=dict)
    anchor: str = ""
    largest: int = 0
    inflated: bool = False
    own: bool = False
    no_undo: str = ""
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    progress_topic: str | None = None
    times: Times = ANY_TIME
    of_times: Mapping[int, int] = field(default_factory=dict)
    resumed: bool = False
    preview: Json = None

    def sent_to(self, targets: Targets) -> Self:
        return replace(
            self,
            targets=dict(targets.counts),
            largest=targets.largest,
            inflated=any(targets.setting(topic, "compression.type") not in ("", "producer") for topic in targets.counts),
            own=not targets.no_undo,
            no_undo=targets.no_undo,
            ends=dict(targets.ends),
        )

    def as_json(self) -> dict[str, Json]:
        body = {each.name: getattr(self, each.name) for each in fields(self)}
        body |= {
            "ranges": {str(number): list(bounds) for number, bounds in self.ranges.items()},
            "changes": self.changes.as_json(),
            "targets": dict(self.targets),
            "ends": {str(place): end for place, end in sorted(self.ends.items())},
            "times": None if self.times == ANY_TIME else [self.times.first, self.times.end],
            "of_times": {str(number): count for number, count in self.of_times.items()},
        }
        return {name: value for name, value in body.items() if value or name not in ("times", "of_times", "resumed", "preview")}

    @classmethod
    def of_json(cls, body: Json) -> Self:
        known = {each.name for each in fields(cls)}
        return cls(**{name: value for name, value in body.items() if name in known} | cls._parsed(body))

    @classmethod
    def _parsed(cls, body: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "ranges": {int(number): (start, end) for number, (start, end) in body["ranges"].items()},
            "changes": changes_of_json(body["changes"]),
            "ends": {partition_of(place): end for place, end in body["ends"].items()},
            "times": Times(*body.get("times", ())),
            "of_times": {int(number): count for number, count in body.get("of_times", {}).items()},
        }


Given = TypeVar("Given", bound=ReplayArguments)


def new_name(services: Services, kind: str) -> str:
    return f"kops-{kind}-{services.now():%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"


class ArchivedOffset(NamedTuple):
    """A group's offset in an archive.

    :param before: number of archived records before it
    :param records: number of archived records of the partition
    """

    offset: int
    before: int
    records: int


@dataclass(frozen=True)
class RestoreArguments(ReplayArguments):
    """A planned restore.

    :param path: of the archive; ``runs``: those of its runs that have records
    :param create: the topic to be created; None when it exists
    :param groups: group -> partition -> its offset in the archive
    """

    path: str = ""
    runs: tuple[str, ...] = ()
    create: NewTopic | None = None
    groups: Mapping[str, Mapping[int, ArchivedOffset]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Json]:
        return super().as_json() | {
            "rows": "archive",
            "runs": list(self.runs),
            "create": None if self.create is None else new_topic_json(self.create),
            "groups": {group: {str(number): list(one) for number, one in some.items()} for group, some in self.groups.items()},
        }

    @classmethod
    def _parsed(cls, body: Mapping[str, Any]) -> dict[str, Any]:
        return super()._parsed(body) | {
            "runs": tuple(body["runs"]),
            "create": None if body["create"] is None else NewTopic(**body["create"]),
            "groups": {
                group: {int(number): ArchivedOffset(*one) for number, one in some.items()} for group, some in body["groups"].items()
            },
        }


@dataclass(frozen=True)
class RedriveArguments(ReplayArguments):
    """A planned redrive.

    :param source_id: topic id of the dead-letter topic
    :param causes: texts; only dead letters whose cause matches one of them are sent
    :param route: target for those that do not name their origin; ``parked``: target for those that were sent back ``max_attempts`` times
    :param take_over: count a redrive that was never finished as it is
    :param claims: partition -> the offsets to send
    :param without_records: partition -> offsets between the dead letters when all are sent: markers, and what was aborted or compacted away
    :param histogram: the dead letters by cause
    """

    source_id: str | None = None
    causes: tuple[str, ...] = ()
    route: str | None = None
    parked: str | None = None
    max_attempts: int = 3
    take_over: bool = False
    claims: Mapping[int, Intervals] = field(default_factory=dict)
    without_records: Mapping[int, Intervals] = field(default_factory=dict)
    histogram: Json = None

    def as_json(self) -> dict[str, Json]:
        body = super().as_json() | {
            "rows": "dead letters",
            "causes": list(self.causes),
            "claims": _intervals_json(self.claims),
            "without_records": _intervals_json(self.without_records),
        }
        del body["no_undo"]
        return body

    @classmethod
    def _parsed(cls, body: Mapping[str, Any]) -> dict[str, Any]:
        return super()._parsed(body) | {
            "causes": tuple(body["causes"]),
            "claims": _intervals(body["claims"]),
            "without_records": _intervals(body["without_records"]),
        }


def _intervals_json(by_partition: Mapping[int, Intervals]) -> dict[str, list[list[int]]]:
    return {str(number): [list(each) for each in some] for number, some in by_partition.items()}


def _intervals(body: Mapping[str, Any]) -> dict[int, Intervals]:
    return {int(number): tuple((start, end) for start, end in some) for number, some in body.items()}

"""Archives of input topics: records that Kafka no longer holds count as if the topics still had them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kops.core.errors import UsageProblem
from kops.core.findings import Finding
from kops.core.models import Bounds, Topic, TopicPartition
from kops.core.statefile import StateFile, Store
from kops.core.streams.verdict import doubt
from kops.operations.archive.read import open_archive
from kops.operations.engine.spark import Engine
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.operations.archive.manifest import Archive
    from kops.operations.archive.place import ArchivePlace


@dataclass(frozen=True)
class ArchivedInput:
    """An archive of an input topic.

    :param spans: partition -> ranges of offsets that the archive has, for partitions where it counts
    :param logs: partition -> what the topic itself has
    :param notes: what the operator should know, one sentence each
    """

    place: ArchivePlace
    archive: Archive
    spans: Mapping[int, tuple[int, int]]
    logs: Mapping[int, Bounds]
    notes: tuple[str, ...] = ()

    @property
    def without_record(self) -> int:
        ranges = [run.ranges[number] for run in self.archive.runs for number in self.spans if number in run.ranges]
        return sum(end - start for start, end in ranges) - sum(self.archive.records(number) for number in self.spans)


def open_archives(engine: Engine, state_file: StateFile, paths: Sequence[str]) -> dict[str, ArchivedInput]:
    """Return archives by topic, after checking that they belong to the input as it is now.

    :raises NotFound: when there is no archive at a path
    :raises UsageProblem: when an archive is of something else
    """
    found: dict[str, ArchivedInput] = {}
    for path in paths:
        place, archive = open_archive(engine, path)
        if archive.topic in found:
            other = found[archive.topic].place.path
            raise UsageProblem(f"{place.path} and {other} are both archives of {archive.topic}", hint="name one for each topic")
        _refuse_unused(state_file, place, archive)
        topic = engine.services.kafka.topics.existing([archive.topic]).get(archive.topic)
        if topic is not None:  # a topic that does not exist is reported elsewhere
            found[archive.topic] = _archived(engine.services, place, archive, topic)
    return found


def _refuse_unused(state_file: StateFile, place: ArchivePlace, archive: Archive) -> None:
    topics = {source.topic for store in state_file.stores for source in store.inputs}
    if archive.topic not in topics:
        raise UsageProblem(
            f"{place.path} is an archive of {archive.topic}, of which no store is made",
            hint=f"the stores are made of {', '.join(sorted(topics))}",
        )
    for store in state_file.stores:
        if store.reuses_source and store.source.topic == archive.topic:
            raise UsageProblem(
                f"store {store.name}: {archive.topic} itself is its changelog, which the application restores: an archive cannot count",
                hint=f"`kops replay restore {place.path} --to TOPIC` brings records back into a topic; --store names other stores",
            )


def _archived(services: Services, place: ArchivePlace, archive: Archive, topic: Topic) -> ArchivedInput:
    """Compare an archive with the topic as it is now.

    :raises UsageProblem: when its offsets are not those of the topic
    """
    name, cluster_id = topic.name, services.kafka.cluster().cluster_id
    others = f"{place.path} is of {name}"
    hint = f"its offsets no longer match; `kops replay restore {place.path} --to TOPIC` makes a topic of it"
    if archive.cluster_id != cluster_id:
        raise UsageProblem(f"{others} of cluster {archive.cluster_id}, and this is {cluster_id}", hint=hint)
    if None not in (archive.topic_id, topic.topic_id) and archive.topic_id != topic.topic_id:
        raise UsageProblem(f"{others} as it was before it was deleted and recreated", hint=hint)
    logs = services.kafka.offsets.bounds(topic.places)
    if archive.partitions > len(logs):
        raise UsageProblem(f"{others} with {archive.partitions} partitions, and it has {len(logs)}", hint=hint)
    spans, notes = {}, []
    for place_, log in sorted(logs.items()):
        span = archive.span(place_.partition)
        if span is None:
            notes.append(f"{place_} is not in the archive {place.path}: it is read from the topic alone")
        elif span[1] > log.log_end_offset:
            raise UsageProblem(f"{others}, with {place_} up to offset {span[1]}, and it ends at {log.log_end_offset}", hint=hint)
        elif span[0] > log.log_start_offset:
            notes.append(f"{place_} itself has more than the archive, which begins at offset {span[0]}: it is read from the topic alone")
        else:
            spans[place_.partition] = span
    return ArchivedInput(place, archive, spans, {place_.partition: log for place_, log in logs.items()}, tuple(notes))


def with_archives(bounds: Mapping[TopicPartition, Bounds], archived: Mapping[str, ArchivedInput]) -> dict[TopicPartition, Bounds]:
    """Return the bounds of partitions, extended by the records that archives have before them."""
    return {
        place: replace(bound, log_start_offset=min(bound.log_start_offset, archived[place.topic].spans[place.partition][0]))
        if place.topic in archived and place.partition in archived[place.topic].spans
        else bound
        for place, bound in bounds.items()
    }


def cleanup_policy(now: str, archived: ArchivedInput | None) -> str:
    """Return how records of a topic may have been deleted, since it was archived or before."""
    before = archived.archive.settings.get("cleanup.policy", "") if archived else ""
    return f"{now},{before}" if "compact" in before.split(",") and "compact" not in now.split(",") else now


def archived_findings(state_file: StateFile, store: Store, archived: Mapping[str, ArchivedInput]) -> Iterator[Finding]:
    """Judge by what archives leave out: they have committed records only; an at-least-once application reads the others too."""
    for source in () if state_file.reads_committed else store.inputs:
        if source.topic in archived and (missing := archived[source.topic].without_record):
            what = f"{missing:,} offsets of {source.topic} have no record in the archive"
            why = "markers of transactions, or records of aborted ones, which an application reads that has no read_committed"
            yield doubt("archived_aborts", f"{what}: {why}", topic=source.topic)

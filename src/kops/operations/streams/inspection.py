"""One application: its sub-topologies, topics, stores, and the instances that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kops.config.files import read_bytes
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.offsets.arithmetic import is_streams_metadata
from kops.core.streams.models import STREAMS, Application
from kops.core.streams.subtopologies import StoreLook, internal_name, merged, stores_of
from kops.core.streams.topics import CHANGELOG, Doubt, doubts, is_internal_name, is_named_of, owner_of
from kops.core.streams.topology import Topology, parse_topology
from kops.operations.services import Services
from kops.operations.streams.find import find_application


@dataclass(frozen=True)
class Inspection:
    """An application as it was found.

    :param topology: the given description; None without one
    :param partitions: number of partitions of every topic of the cluster
    :param internal: its internal topics that exist
    :param by_name: those of them that are attributed to it by their name only
    :param doubts: those attributed by name that appear to be another application's
    :param others: topics named like its internal ones that its topology does not have
    :param input_topics: external topics that it reads
    :param output_topics: None when they are unknown
    :param notes: what to know, one sentence each
    """

    application: Application
    topology: Topology | None
    partitions: Mapping[str, int]
    internal: tuple[str, ...]
    by_name: tuple[str, ...]
    doubts: tuple[Doubt, ...]
    others: tuple[str, ...]
    input_topics: tuple[str, ...]
    output_topics: tuple[str, ...] | None
    stores: tuple[StoreLook, ...]
    committed: Mapping[TopicPartition, CommittedOffset]
    notes: tuple[str, ...] = ()


def read_topology(path: str) -> Topology:
    """Read a file with the output of ``Topology.describe()``.

    :raises ConfigError: when it cannot be read, or holds no topology
    """
    return parse_topology(read_bytes(Path(path), hint="print topology.describe() into a file").decode(errors="replace"), path)


def inspect_application(services: Services, name: str, topology: Topology | None = None) -> Inspection:
    """Inspect one application. Nothing joins its group.

    :raises Refused: when the group is not of Kafka Streams
    """
    seen = find_application(services, name)
    partitions = {topic.name: len(topic.partitions) for topic in services.kafka.topics.describe().values()}
    application, differing = merged(seen, topology, partitions)
    named = [topic for topic in partitions if is_named_of(topic, name)]
    known = {name, *services.kafka.groups.ids()}
    own = [topic for topic in named if owner_of(topic, known) == name]
    committed = services.kafka.groups.committed([name])[name]
    internal, by_name = _internal(application, topology, own, committed, partitions)
    changelogs = [topic for topic in internal if topic.endswith(CHANGELOG)]
    outputs = None if topology is None else topology.output_topics
    missing = [topic for topic in topology.input_topics if topic not in partitions] if topology else []
    absent = [f"the description reads {', '.join(missing)}, which does not exist"] if missing else []
    unlike = _unlike_streams(application, internal, committed)
    return Inspection(
        application,
        topology,
        partitions,
        tuple(internal),
        tuple(by_name),
        tuple(doubt for doubt in doubts(name, own) if doubt.topic in by_name),
        tuple(sorted(set(own) - set(internal))),
        _inputs(application, topology, committed),
        outputs,
        tuple(stores_of(application, topology, changelogs, partitions)),
        committed,
        (*unlike, *application.unknown, *absent, *(f"the description is not of what runs: {text}" for text in differing)),
    )


def _unlike_streams(application: Application, internal: Sequence[str], committed: Mapping[TopicPartition, CommittedOffset]) -> list[str]:
    """Return a note if nothing shows that this is a Kafka Streams application."""
    if application.members or application.parts or internal or application.protocol == STREAMS:
        return []
    if any(is_streams_metadata(one.metadata) for one in committed.values()):
        return []
    return [f"nothing shows that {application.application} is a Kafka Streams application: a group of plain consumers looks the same"]


def _internal(
    application: Application,
    topology: Topology | None,
    own: Sequence[str],
    committed: Mapping[TopicPartition, CommittedOffset],
    partitions: Mapping[str, int],
) -> tuple[list[str], list[str]]:
    """Return the internal topics, and those known by their name only."""
    if application.complete:
        name = application.application
        exact = {topic for part in application.parts for topic in (*part.changelog_topics, *part.repartition_topics)}
        if topology is not None:
            exact |= {internal_name(name, topic, partitions) for topic in topology.internal_topics}
        return sorted(topic for topic in exact if topic in partitions), []
    sure = {partition.topic for partition in committed} | {topic for part in application.parts for topic in part.repartition_topics}
    return sorted(own), sorted(topic for topic in own if topic not in sure)


def _inputs(application: Application, topology: Topology | None, committed: Mapping[TopicPartition, CommittedOffset]) -> tuple[str, ...]:
    """Return the external topics: those that sub-topologies read, and committed ones, which cover patterns and stopped members."""
    read = {topic for part in application.parts for topic in part.source_topics}
    stored = {partition.topic for partition in committed}
    if topology is not None and not any(part.patterns for part in application.parts):
        stored = set()
    return tuple(
        sorted(read | {topic for topic in stored if not (is_internal_name(topic) and is_named_of(topic, application.application))})
    )

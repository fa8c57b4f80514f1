"""Replicas of partitions, and settings that put records at risk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kops.core.cluster.health import cluster_findings, partition_findings
from kops.core.cluster.observed import partition_trouble
from kops.core.findings import Finding
from kops.core.models import Topic
from kops.operations.diagnose.check import TOPIC, Check
from kops.operations.diagnose.incident import Incident

_SETTINGS = ("unclean_leader_election", "min_isr_1", "min_isr_equals_replicas", "single_replica")


def _look(incident: Incident) -> Mapping[str, Topic]:
    return {topic.name: topic for topic in incident.cluster.topics}


def _find(_seen: Mapping[str, Topic], incident: Incident) -> Iterable[Finding]:
    """Yield what is wrong with partitions; settings only where nothing is named."""
    cluster = incident.cluster
    yield from partition_findings(cluster, partition_trouble(cluster))
    if incident.scope.whole:
        yield from (finding for finding in cluster_findings(cluster) if finding.check in _SETTINGS)


CHECK = Check(
    "replicas",
    TOPIC,
    ("offline_partitions", "under_min_isr", "min_isr_above_replicas", "at_min_isr", "under_replicated", *_SETTINGS),
    "DESCRIBE on the topics",
    _look,
    _find,
)

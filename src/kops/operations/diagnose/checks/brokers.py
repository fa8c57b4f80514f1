"""Brokers, controllers and disks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kops.core.cluster.health import cluster_findings, partition_findings
from kops.core.cluster.observed import ObservedCluster, partition_trouble
from kops.core.findings import Finding, Severity
from kops.operations.diagnose.check import CLUSTER, Check
from kops.operations.diagnose.incident import Incident

_OF_TOPICS = (
    *("offline_partitions", "under_min_isr", "min_isr_above_replicas", "at_min_isr", "under_replicated"),
    *("unclean_leader_election", "min_isr_1", "min_isr_equals_replicas", "single_replica"),
)


def _look(incident: Incident) -> Mapping[str, ObservedCluster]:
    return {"cluster": incident.cluster}


def _find(seen: Mapping[str, ObservedCluster], incident: Incident) -> Iterable[Finding]:
    """Yield what is wrong with the cluster itself; where something is named, only what is worse than a note."""
    for cluster in seen.values():
        of_partitions = {finding.check for finding in partition_findings(cluster, partition_trouble(cluster))}
        for finding in cluster_findings(cluster):
            if finding.check not in {*_OF_TOPICS, *of_partitions} and (incident.scope.whole or finding.severity < Severity.NOTE):
                yield finding


CHECK = Check(
    "brokers, controllers, disks",
    CLUSTER,
    (
        *("broker_missing", "broker_silent", "no_controller", "controller_silent", "log_dir_offline", "disk_nearly_full"),
        *("leader_skew", "mixed_versions"),
    ),
    "DESCRIBE on the cluster; Kafka 3.3 for controllers",
    _look,
    _find,
)

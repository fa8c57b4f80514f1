"""`kops cluster health`: what is wrong with a cluster, and whether that is bad enough for a probe to fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.cluster.health import cluster_findings
from kops.core.cluster.observed import ObservedCluster, PartitionTrouble, partition_trouble
from kops.core.diagnosis.causes import in_order
from kops.core.errors import KopsError
from kops.core.findings import Finding, Severity, any_at_least, counted, for_connection
from kops.operations.cluster.observe import Gaps, observe
from kops.operations.services import Services


@dataclass(frozen=True)
class Health:
    """A cluster's health.

    :param findings: the most severe first
    :param gaps: what could not be examined, and why
    """

    observed: ObservedCluster
    trouble: PartitionTrouble
    findings: tuple[Finding, ...]
    gaps: Mapping[str, KopsError]

    def healthy(self, least: Severity) -> bool:
        return not any_at_least(self.findings, least)


def examine(services: Services, named: Sequence[str]) -> Health:
    """Examine the whole cluster without changing anything.

    :param named: how command lines name the cluster, for the commands of the findings
    :raises Unreachable: when no broker answers
    """
    gaps = Gaps()
    observed = observe(services, gaps)
    findings = for_connection(in_order(cluster_findings(observed)), named)
    return Health(observed, partition_trouble(observed), tuple(findings), gaps.errors)


def as_json(health: Health, least: Severity) -> dict[str, Any]:
    """Return health according to the JSON contract.

    :param least: the lowest severity that makes the cluster unhealthy
    """
    trouble = health.trouble
    return {
        "cluster_id": health.observed.cluster_id,
        "healthy": health.healthy(least),
        "brokers": len(health.observed.live),
        "topics": len(health.observed.topics),
        "partitions": sum(len(topic.partitions) for topic in health.observed.topics),
        "offline": len(trouble.offline),
        "under_replicated": len(trouble.under_replicated),
        "under_min_isr": len(trouble.under_min_isr),
        "at_min_isr": len(trouble.at_min_isr),
        "leader_not_preferred": len(trouble.not_preferred),
        "findings": [finding.as_json() for finding in health.findings],
        "not_checked": gap_rows(health.gaps),
    }


def gap_rows(gaps: Mapping[str, KopsError]) -> list[dict[str, Any]]:
    return [{"check": what, "error": error.as_json()} for what, error in gaps.items()]


def headline(health: Health, least: Severity) -> str:
    body = as_json(health, least)
    counts = ", ".join(counted(body[f"{noun}s"], noun) for noun in ("broker", "topic", "partition"))
    state = "healthy" if body["healthy"] else "unhealthy"
    if body["healthy"] and health.gaps:
        state = "healthy as far as could be seen"
    return f"cluster {health.observed.cluster_id} is {state}: {counts}"

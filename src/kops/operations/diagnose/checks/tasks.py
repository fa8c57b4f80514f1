"""Connectors and their tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kops.core.connect.models import Connector, connector_findings
from kops.core.findings import Finding
from kops.operations.diagnose.check import CONNECTOR, Check
from kops.operations.diagnose.incident import Incident


def _look(incident: Incident) -> Mapping[str, Connector]:
    incident.require_connect()
    return incident.connectors


def _find(seen: Mapping[str, Connector], _incident: Incident) -> Iterable[Finding]:
    return (finding for connector in seen.values() for finding in connector_findings(connector))


CHECK = Check("tasks", CONNECTOR, ("connector_failed", "tasks_failed", "connector_unassigned"), "an address of Connect", _look, _find)

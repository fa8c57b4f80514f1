"""Unread records that retention deletes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kops.core.diagnosis.groups import expiring_findings
from kops.core.findings import Finding
from kops.core.groups.look import GroupLook
from kops.operations.diagnose.check import GROUP, Check
from kops.operations.diagnose.incident import Incident


def _look(incident: Incident) -> Mapping[str, GroupLook]:
    return incident.groups


def _find(seen: Mapping[str, GroupLook], incident: Incident) -> Iterable[Finding]:
    return (finding for look in seen.values() for finding in expiring_findings(look, incident.now))


CHECK = Check("retention", GROUP, ("expiring_unread",), "DESCRIBE_CONFIGS on the topics; DESCRIBE on the cluster for sizes", _look, _find)

"""Committed offsets against the log: what lies past its end, and topics that are gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kops.core.diagnosis.groups import gone_findings
from kops.core.diagnosis.losses import loss_findings
from kops.core.findings import Finding
from kops.core.groups.look import GroupLook
from kops.operations.diagnose.check import GROUP, Check
from kops.operations.diagnose.incident import Incident


def _look(incident: Incident) -> Mapping[str, GroupLook]:
    return incident.groups


def _find(seen: Mapping[str, GroupLook], incident: Incident) -> Iterable[Finding]:
    for look in seen.values():
        yield from loss_findings(look, incident.cluster.settings)
        yield from gone_findings(look)


CHECK = Check("positions", GROUP, ("data_lost", "past_the_end", "topic_gone"), "DESCRIBE on the groups and their topics", _look, _find)

"""Members of groups, and what they get done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kops.core.diagnosis.groups import member_findings
from kops.core.findings import Finding
from kops.core.groups.look import GroupLook
from kops.operations.diagnose.check import GROUP, Check
from kops.operations.diagnose.incident import Incident


def _look(incident: Incident) -> Mapping[str, GroupLook]:
    return incident.groups


def _find(seen: Mapping[str, GroupLook], incident: Incident) -> Iterable[Finding]:
    found = [finding for look in seen.values() for finding in member_findings(look, incident.now)]
    return sorted(found, key=lambda finding: (finding.check, -finding.facts.get("lag", 0)))


CHECK = Check(
    "lag and members",
    GROUP,
    (
        *(
            "crash_loop",
            "stuck_partitions",
            "not_progressing",
            "waits_for_transaction",
            "rebalancing",
            "no_members",
            "unassigned_partitions",
        ),
        *("behind", "falling_behind", "catching_up", "abandoned", "deleted_unread"),
    ),
    "DESCRIBE on the groups, READ on their topics; READ on __consumer_offsets for crash loops and rare commits",
    _look,
    _find,
)

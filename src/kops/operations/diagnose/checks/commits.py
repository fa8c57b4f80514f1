"""Past commits: jumps and deletions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kops.core.diagnosis.history import history_findings
from kops.core.findings import Finding
from kops.core.groups.look import GroupLook
from kops.operations.diagnose.check import GROUP, Check, NotAsked
from kops.operations.diagnose.incident import Incident


def _look(incident: Incident) -> Mapping[str, GroupLook]:
    if not incident.options.history:
        raise NotAsked("--history 0s")
    return {name: look for name, look in incident.groups.items() if look.known_since is not None}


def _find(seen: Mapping[str, GroupLook], _incident: Incident) -> Iterable[Finding]:
    return (finding for look in seen.values() for finding in history_findings(look))


CHECK = Check("past commits", GROUP, ("commits_jumped", "commits_deleted"), "READ on __consumer_offsets", _look, _find)

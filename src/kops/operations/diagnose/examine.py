"""Runs the checks of ``kops diagnose``, and joins what they find: reasons first, what follows from them after."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kops.core.diagnosis.causes import in_order
from kops.core.durations import duration_text
from kops.core.errors import KopsError, OperationFailed
from kops.core.findings import Finding, Severity, counted, for_connection, names_text, partitions_text
from kops.core.times import time_text
from kops.operations.cluster.health import gap_rows
from kops.operations.cluster.observe import Gaps
from kops.operations.diagnose.check import CLUSTER, CONNECTOR, GROUP, TOPIC, Check
from kops.operations.diagnose.checks import every_check
from kops.operations.diagnose.incident import Incident, NotAsked, Options
from kops.operations.diagnose.looks import COMMIT_HISTORY
from kops.operations.diagnose.scope import scope_of
from kops.operations.services import Services
from kops.operations.streams.capture import load_capture

_SUBJECTS = (GROUP, TOPIC, CONNECTOR, CLUSTER)
_NEVER = "logs and metrics of brokers and clients, ACLs and denied requests, the schema registry"
"""What may be the reason of an incident, and no check looks at."""


@dataclass(frozen=True)
class Diagnosis:
    """The result of ``kops diagnose``.

    :param findings: reasons first, see ``kops.core.diagnosis.causes``
    :param looked: the names of what each check examined, by check, in the order of the checks
    :param gaps: what could not be examined, and why
    :param left_out: what was not examined because it was not requested, or cannot be known, and why
    :param history: milliseconds for which all past commits were read; 0 if they were not
    """

    cluster_id: str
    incident: Incident
    at: int
    findings: tuple[Finding, ...]
    looked: Mapping[Check, Collection[str]] = field(default_factory=dict)
    gaps: Mapping[str, KopsError] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    history: int = 0

    def examined(self, subject: str) -> frozenset[str]:
        """Return the names of the subjects of a kind that any check examined."""
        return frozenset(name for check, names in self.looked.items() if check.subject == subject for name in names)


def diagnose(
    services: Services,
    names: Sequence[str],
    options: Options,
    *,
    regex: bool = False,
    named: Sequence[str],
) -> Diagnosis:
    """Examine some groups and topics, or the whole cluster, without changing anything or joining a group.

    :param names: of groups, topics and connectors; none examines everything
    :param named: how command lines name the cluster, for the commands of the findings
    :raises NotFound: for a plain name that is not a group, topic or connector
    :raises Unreachable: when no broker answers
    """
    cluster_id = services.kafka.cluster().cluster_id
    gaps = Gaps()
    every = gaps.ask("connect", services.connect.connectors) if services.connection.connect_urls else None
    incident = Incident(
        services,
        scope_of(services, names, regex=regex, connectors=every or ()),
        options,
        gaps,
        every,
        load_capture(options.capture) if options.capture else None,
    )
    looked: dict[Check, Collection[str]] = {}
    left_out: dict[str, str] = {}
    findings: list[Finding] = []
    for check in every_check():
        try:
            seen = check.look(incident)
            findings += check.find(seen, incident)
            looked[check] = tuple(seen)
        except NotAsked as reason:
            left_out[_title(check)] = reason.message
        except KopsError as problem:
            gaps.note("connect" if problem is gaps.errors.get("connect") else _title(check), problem)
    _note_unexamined(incident, looked)
    return Diagnosis(
        cluster_id,
        incident,
        incident.now,
        tuple(for_connection(in_order(findings), named)),
        looked,
        gaps.errors,
        {**left_out, **_left_out(incident)},
        0 if COMMIT_HISTORY in {*gaps.errors, *gaps.lacking} else options.history,
    )


def as_json(diagnosis: Diagnosis) -> dict[str, Any]:
    scope = diagnosis.incident.scope
    return {
        "cluster_id": diagnosis.cluster_id,
        "at": time_text(diagnosis.at),
        "whole_cluster": scope.whole,
        "groups": sorted({*scope.groups, *scope.share_groups}),
        "topics": list(scope.topics),
        "looked_at": {
            "groups": len(diagnosis.examined(GROUP)),
            "topics": len(diagnosis.examined(TOPIC)),
            "connectors": None if diagnosis.incident.every_connector is None else len(diagnosis.examined(CONNECTOR)),
            "commits_since": time_text(diagnosis.at - diagnosis.history) if diagnosis.history else None,
            "checks": [{"subject": check.subject, "check": check.name, "count": len(names)} for check, names in diagnosis.looked.items()],
        },
        "findings": [finding.as_json() for finding in diagnosis.findings],
        "not_checked": gap_rows(diagnosis.gaps),
        "left_out": [{"check": what, "reason": reason} for what, reason in diagnosis.left_out.items()],
    }


def check_rows() -> list[dict[str, Any]]:
    """Return a row per check."""
    return [{"subject": check.subject, "check": check.name, "finds": list(check.finds), "needs": check.needs} for check in every_check()]


def headline(diagnosis: Diagnosis) -> str:
    """Return one sentence: what was found, by severity."""
    worse = {severity: sum(finding.severity is severity for finding in diagnosis.findings) for severity in Severity}
    counts = [
        f"{count:,} critical" if severity is Severity.CRITICAL else counted(count, severity.word)
        for severity, count in worse.items()
        if count
    ]
    return f"cluster {diagnosis.cluster_id}: {', '.join(counts) or 'nothing found in what was looked at'}"


def coverage(diagnosis: Diagnosis) -> list[str]:
    """Return what was examined, by subject and check, and a line per reason why something was not."""
    parts = [part for subject in _SUBJECTS for part in _looked_text(diagnosis, subject)]
    past = f", commits of the last {duration_text(diagnosis.history)}" if diagnosis.history and diagnosis.examined(GROUP) else ""
    reasons: dict[str, list[str]] = {}
    for what, reason in (*((what, error.message) for what, error in diagnosis.gaps.items()), *diagnosis.left_out.items()):
        reasons.setdefault(reason, []).append(what)
    return [
        f"looked at: {', '.join(parts) or 'nothing'}{past}",
        *(f"not looked at: {names_text(some)}: {reason}" for reason, some in reasons.items()),
        f"kops cannot look at: {_NEVER}",
    ]


def _looked_text(diagnosis: Diagnosis, subject: str) -> Iterator[str]:
    """Yield ``12 groups (lag and members, retention)``: checks that examined equally many subjects stand together."""
    by_number: dict[int, list[str]] = {}
    for check, names in diagnosis.looked.items():
        if check.subject == subject and names:
            by_number.setdefault(len(names), []).append(check.name)
    for number, checks in sorted(by_number.items(), reverse=True):
        yield f"{subject if subject == CLUSTER else counted(number, subject)} ({', '.join(checks)})"


def _title(check: Check) -> str:
    return check.name if check.subject == CLUSTER else f"{check.name} of {check.subject}s"


def _note_unexamined(incident: Incident, looked: Mapping[Check, Collection[str]]) -> None:
    """Note each group and connector that was named and that no check examined."""
    scope, gaps = incident.scope, incident.gaps
    seen = {(check.subject, name) for check, names in looked.items() for name in names}
    if scope.unseen:
        gaps.note("groups that read the topics", OperationFailed(scope.unseen))
    for name, kind in scope.others.items():
        gaps.note(f"group {name}", OperationFailed(f"no check looks at groups of type {kind}"))
    if scope.whole:
        return
    for name, reason in _uncommitted(incident).items():
        if scope.groups.get(name, ()) is None:
            gaps.note(f"lag of group {name}", OperationFailed(reason))
    for name in (*scope.groups, *scope.share_groups):
        if (GROUP, name) not in seen and f"group {name}" not in gaps.errors:
            gaps.note(f"group {name}", OperationFailed("no check could look at it"))
    for topic in scope.topics:
        if (TOPIC, topic) not in seen:
            gaps.note(f"topic {topic}", OperationFailed("no check could look at it"))
    for name in scope.connectors:
        if (CONNECTOR, name) not in seen:
            gaps.note(f"connector {name}", OperationFailed("no check could look at it"))


def _uncommitted(incident: Incident) -> dict[str, str]:
    """Return, by group, why its lag is not known: it reads partitions with records and has never committed there."""
    looks = incident.groups if "groups" in incident.__dict__ else {}
    found = {}
    for name, look in looks.items():
        some = [one.partition for one in look.partitions if one.unknown]
        if some:
            found[name] = f"no commit yet for {partitions_text(some)}"
        elif not look.partitions:
            found[name] = "no commit and no member shows what it reads"
    return found


def _left_out(incident: Incident) -> dict[str, str]:
    """Return what was not examined although nothing failed, and why."""
    looks = incident.groups.values() if "groups" in incident.__dict__ else ()
    found = {what: f"this cluster has no such request: {error.message}" for what, error in incident.gaps.lacking.items()}
    if looks and not incident.options.history:
        found["crash loops"] = "--history 0s"
    if incident.options.sample_seconds <= 0 and any(look.may_change for look in looks):
        found["what moves"] = "--sample 0s looks once"
    found |= {
        title: reason for name, reason in _uncommitted(incident).items() if (title := f"lag of group {name}") not in incident.gaps.errors
    }
    silent = [look.group.group_id for look in looks if look.streams and look.group.type != "streams"]
    if silent:
        reason = "groups of the classic protocol do not register their stores; `kops streams describe` shows what is there"
        found[f"which changelogs {names_text(silent)} should have"] = reason
    return found

"""Joins everything that is known about an incident into findings, the most severe first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.cluster.health import cluster_findings, partition_findings
from kops.core.cluster.observed import ObservedCluster, partition_trouble
from kops.core.connect.models import Connector, concerns, connector_findings
from kops.core.diagnosis.groups import group_findings
from kops.core.diagnosis.programs import program_findings
from kops.core.diagnosis.transactions import transaction_findings
from kops.core.durations import duration_text
from kops.core.errors import KopsError
from kops.core.findings import Finding, Severity, by_severity, counted, for_connection, names_text
from kops.core.groups.look import GroupLook
from kops.core.models import INTERNAL_TOPICS
from kops.core.streams.capture import Capture
from kops.core.streams.missing import MISSING_CHECK, MissingTopic, missing_finding, missing_topics
from kops.core.streams.topics import CHANGELOG, is_named_of, looks_like_streams, owner_of
from kops.core.times import time_text, to_milliseconds
from kops.operations.cluster.health import gap_rows
from kops.operations.cluster.observe import Gaps, observe
from kops.operations.diagnose.looks import COMMIT_HISTORY, look_at_groups, with_transactions
from kops.operations.diagnose.scope import Scope, scope_of
from kops.operations.groups.open_transactions import OpenTransactions, find_open_transactions, stable_offsets
from kops.operations.services import Services
from kops.operations.streams.capture import load_capture, program_differences
from kops.operations.streams.inspection import inspect_application

_PREFIXES = ("state.", "topics.", "streams.")
_DELETION = "topics.delete"


@dataclass(frozen=True)
class Diagnosis:
    """The result of ``kops diagnose``.

    :param topics: number of topics that were examined, including Kafka's internal ones
    :param connectors: number of connectors; None if the context has no Connect
    :param findings: the most severe first
    :param history: milliseconds for which all past commits were read; 0 if they were not
    :param gaps: what could not be examined, and why
    :param left_out: what was not examined because it was not requested, or cannot be known, and why
    """

    cluster_id: str
    scope: Scope
    topics: int
    connectors: int | None
    at: int
    findings: tuple[Finding, ...]
    gaps: Mapping[str, KopsError]
    history: int
    left_out: Mapping[str, str]


def diagnose(
    services: Services,
    names: Sequence[str],
    *,
    regex: bool = False,
    within: int,
    sample_seconds: float,
    history: int = 0,
    named: Sequence[str] = (),
    capture: str | None = None,
) -> Diagnosis:
    """Examine some groups and topics, or the whole cluster, without changing anything or joining a group.

    :param names: of groups, topics and connectors; none examines everything
    :param within: milliseconds; unread data that expires within them is reported
    :param sample_seconds: time between two looks at groups that are behind; 0 looks once
    :param history: milliseconds for which past commits are read; 0 reads none
    :param named: how the command line named the cluster, for the commands of the findings
    :param capture: file with the program of an application, which is compared with its internal topics
    :raises NotFound: for a plain name that is not a group, topic or connector
    :raises Unreachable: when no broker answers
    """
    program = load_capture(capture) if capture else None
    gaps = Gaps()
    every = _connectors(services, gaps)
    scope = scope_of(services, names, regex=regex, connectors=every or ())
    seen = observe(services, gaps, None if scope.whole else _topics_of(services, scope))
    since = to_milliseconds(services.now()) - history if history else None
    looks = look_at_groups(services, scope, gaps, seen.settings, within=within, sample_seconds=sample_seconds, since=since)
    held = _held_back(services, seen, gaps)
    looks = with_transactions(services, looks, held, gaps)
    now = to_milliseconds(services.now())
    connectors = None if every is None else [one for one in every if scope.whole or _concerned(one, scope)]
    of_streams = streams_findings(services, looks, gaps)
    findings = [
        *(cluster_findings(seen) if scope.whole else _of_scope(seen)),
        *of_streams,
        *(_of_program(services, program, capture or "", of_streams, gaps) if program else ()),
        *_most_behind_first(finding for look in looks for finding in group_findings(look, now)),
        *transaction_findings(held.open, now),
        *(finding for one in connectors or () for finding in connector_findings(one)),
    ]
    return Diagnosis(
        services.kafka.cluster().cluster_id,
        scope,
        len(seen.topics),
        None if connectors is None else len(connectors),
        now,
        tuple(for_connection(by_severity(findings), named)),
        gaps.errors,
        0 if COMMIT_HISTORY in {*gaps.errors, *gaps.lacking} else history,
        _left_out(services, looks, gaps, history=history, sample_seconds=sample_seconds),
    )


def as_json(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "cluster_id": diagnosis.cluster_id,
        "at": time_text(diagnosis.at),
        "whole_cluster": diagnosis.scope.whole,
        "groups": sorted(diagnosis.scope.groups),
        "topics": list(diagnosis.scope.topics),
        "looked_at": {
            "groups": len(diagnosis.scope.groups),
            "topics": diagnosis.topics,
            "connectors": diagnosis.connectors,
            "commits_since": time_text(diagnosis.at - diagnosis.history) if diagnosis.history else None,
        },
        "findings": [finding.as_json() for finding in diagnosis.findings],
        "not_checked": gap_rows(diagnosis.gaps),
        "left_out": [{"check": what, "reason": reason} for what, reason in diagnosis.left_out.items()],
    }


def headline(diagnosis: Diagnosis) -> str:
    """Return one sentence: what was examined, and the number of findings by severity."""
    worse = {severity: sum(finding.severity is severity for finding in diagnosis.findings) for severity in Severity}
    counts = [
        f"{count:,} critical" if severity is Severity.CRITICAL else counted(count, severity.word)
        for severity, count in worse.items()
        if count
    ]
    found = ", ".join(counts) or "nothing wrong found"
    connectors = "" if diagnosis.connectors is None else f", {counted(diagnosis.connectors, 'connector')}"
    looked = f"{counted(len(diagnosis.scope.groups), 'group')}, {counted(diagnosis.topics, 'topic')}{connectors}"
    past = f", commits of the last {duration_text(diagnosis.history)}" if diagnosis.history and diagnosis.scope.groups else ""
    return f"cluster {diagnosis.cluster_id}: {found}; looked at {looked}{past}"


def not_looked_at(diagnosis: Diagnosis) -> list[str]:
    """Return a line per reason why something was not examined, naming all that it applies to."""
    reasons: dict[str, list[str]] = {}
    for what, reason in (*((what, error.message) for what, error in diagnosis.gaps.items()), *diagnosis.left_out.items()):
        reasons.setdefault(reason, []).append(what)
    return [f"not looked at: {names_text(some)}: {reason}" for reason, some in reasons.items()]


def _left_out(services: Services, looks: Sequence[GroupLook], gaps: Gaps, *, history: int, sample_seconds: float) -> dict[str, str]:
    """Return what was not examined although nothing failed, and why."""
    found = {what: f"this cluster has no such request: {error.message}" for what, error in gaps.lacking.items()}
    if not services.connection.connect_urls:
        found["connectors"] = "no address of Connect is known; connect_urls of the context or KOPS_CONNECT_URLS names it"
    if looks and not history:
        found["jumps, deletions and crash loops"] = "--history 0s"
    if sample_seconds <= 0 and any(look.may_change for look in looks):
        found["what moves"] = "--sample 0s looks once"
    silent = [look.group.group_id for look in looks if look.streams and look.group.type != "streams"]
    if silent:
        reason = "groups of the classic protocol do not register their stores; `kops streams describe` shows what is there"
        found[f"which changelogs {names_text(silent)} should have"] = reason
    return found


def _topics_of(services: Services, scope: Scope) -> list[str]:
    """Return the topics to examine for a scope.

    These are the topics that it names, those that its groups have commits for, and Kafka's internal ones, without which neither groups nor
    transactions work.
    """
    committed = services.kafka.groups.committed_or_errors(scope.groups)
    used = {
        partition.topic
        for group_id, found in committed.items()
        if not isinstance(found, KopsError)
        for partition in found
        if scope.includes(group_id, partition)
    }
    return sorted({*used, *scope.topics, *INTERNAL_TOPICS})


def _of_scope(seen: ObservedCluster) -> list[Finding]:
    """Return the findings about the partitions that were examined, and those about brokers and controllers that are worse than a note."""
    everything = cluster_findings(seen)
    of_partitions = {finding.check for finding in partition_findings(seen, partition_trouble(seen))}
    return [finding for finding in everything if finding.check in of_partitions or finding.severity < Severity.NOTE]


def _most_behind_first(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings about groups by check, and by lag within a check, the largest first."""
    return sorted(findings, key=lambda finding: (finding.check, -finding.facts.get("lag", 0)))


def _held_back(services: Services, seen: ObservedCluster, gaps: Gaps) -> OpenTransactions:
    """Return the open transactions that hold back a last stable offset, of partitions where it is below the high watermark."""
    places = [place for place, partition in seen.partitions() if partition.leader is not None and place.topic not in INTERNAL_TOPICS]
    stable = stable_offsets(services, places)
    held, problem = find_open_transactions(services, stable, services.kafka.offsets.bounds_or_errors(places))
    if problem is not None:
        gaps.note("transactions", problem)
    else:
        for place, reason in held.unknown.items():
            gaps.note(f"transactions of {place}", reason)
    return held


def _connectors(services: Services, gaps: Gaps) -> list[Connector] | None:
    """Return all connectors; None if they cannot be read, or the context has no Connect."""
    if not services.connection.connect_urls:
        return None
    return gaps.ask("connect", lambda: list(services.connect.connectors()))


def _concerned(connector: Connector, scope: Scope) -> bool:
    return connector.name in scope.connectors or concerns(connector, scope.groups, scope.topics)


def streams_findings(services: Services, looks: Sequence[GroupLook], gaps: Gaps) -> list[Finding]:
    existing = (gaps.ask("topics", lambda: frozenset(services.kafka.topics.names())) if looks else None) or frozenset()
    if not existing:
        return []
    groups = {look.group.group_id for look in looks}
    owners = {owner for topic in existing if (owner := owner_of(topic, groups)) is not None}
    found = []
    for look in looks:
        name = look.group.group_id
        if name not in owners and not _is_streams(look):
            continue
        deleted = {partition.topic for partition, events in look.history.commits.items() if events and events[-1].committed is None}
        missing = missing_topics(look.group, existing, deleted, _noted(services, name, existing))
        if missing:
            found.append(missing_finding(name, missing))
    return found


def _of_program(services: Services, capture: Capture, path: str, others: Sequence[Finding], gaps: Gaps) -> list[Finding]:
    """Return the findings from a program; of one that has not run on this cluster, none of its topics is missed."""
    look = gaps.ask(f"the program of {capture.application}", lambda: inspect_application(services, capture.application))
    known = [topic for finding in others for topic in finding.facts.get("topics", ()) if finding.check == MISSING_CHECK]
    return list(program_findings(capture, program_differences(services, capture, look) if look else (), path, known))


def _is_streams(look: GroupLook) -> bool:
    topics = {one.partition.topic for one in look.partitions} | {partition.topic for partition in look.history.commits}
    texts = (one.committed.metadata for one in look.partitions if one.committed is not None)
    return look.streams or looks_like_streams(look.group.group_id, look.group, topics, texts)


def _noted(services: Services, application: str, existing: Collection[str]) -> Iterator[MissingTopic]:
    """Yield the missing internal topics that the journal mentions, each by its newest entry.

    Only a changelog that was deleted on its own can be missed: what a change of state or a reset deleted, the application creates again.
    """
    from kops.operations.protocol.journal import Journal

    seen: set[str] = set()
    cluster_id = services.kafka.cluster().cluster_id
    journal = Journal(services.directories.state / "journal")
    for entry in journal.entries(lambda _damaged: None, mentioning=f"{application}-"):
        operation = entry.plan.operation
        if entry.plan.cluster_id != cluster_id or not operation.startswith(_PREFIXES):
            continue
        for item in entry.plan.items:
            topic = item.target.partition(":")[0]
            if topic in seen or topic in existing or not is_named_of(topic, application):
                continue
            seen.add(topic)
            if item.action != "delete":
                yield MissingTopic(topic, f"kops' journal has it ({entry.id})")
            elif operation == _DELETION and topic.endswith(CHANGELOG):
                yield MissingTopic(topic, f"kops deleted it: `kops undo {entry.id}` shows what can be restored", sure=False)

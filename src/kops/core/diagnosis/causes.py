"""Which findings may be the reason for which others, and their order: reasons first, what follows from them after. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from kops.core.findings import Finding

_BROKERS = ("broker_missing", "broker_silent", "log_dir_offline", "disk_nearly_full")
_PARTITIONS = ("offline_partitions", "under_min_isr", "min_isr_above_replicas", "at_min_isr", "under_replicated")
_READING = ("crash_loop", "stuck_partitions", "not_progressing", "falling_behind", "behind", "catching_up", "rebalancing", "no_members")
_STOPPED = ("log_dir_offline", *_BROKERS[:2])
CAUSES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_PARTITIONS, _BROKERS),
    **dict.fromkeys(
        _READING, ("data_lost", "offline_partitions", "missing_internal_topics", "program_topics_missing", "program_partitions")
    ),
    **dict.fromkeys(("falling_behind", "behind", "catching_up"), ("throttled", "offline_partitions", "data_lost")),
    "no_members": (
        "connector_failed",
        "tasks_failed",
        "source_topic_missing",
        "data_lost",
        "missing_internal_topics",
        "program_partitions",
    ),
    "waits_for_transaction": ("hanging_transaction", "open_transaction"),
    "tasks_failed": ("dead_letter_topic_missing", "connector_topic_missing", "offline_partitions", "under_min_isr"),
    "connector_failed": ("connector_topic_missing",),
    "dead_letters": ("tasks_failed",),
    "unclean_leader_election": ("data_lost",),
    "controller_silent": _STOPPED,
    "no_controller": _STOPPED,
}
"""By the name of a finding, those of its possible reasons. One is the reason only if both are about the same thing, see :func:`_about`."""


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings: the worst first, and a reason before what may follow from it, as severe as the worst of that.

    Findings that are alike in both keep their order.
    """
    found = list(findings)
    about = [set(_about(one)) for one in found]
    reasons: list[list[int]] = [
        [other for other, cause in enumerate(found) if cause.check in CAUSES.get(one.check, ()) and about[other] & about[at]]
        for at, one in enumerate(found)
    ]
    severity, depth = [one.severity for one in found], [0] * len(found)
    for _ in CAUSES:  # no chain is longer, and each turn is one step along all of them
        for at, some in enumerate(reasons):
            for reason in some:
                severity[reason] = min(severity[reason], severity[at])
                depth[at] = max(depth[at], depth[reason] + 1) if depth[reason] < len(CAUSES) else depth[at]
    marked = [
        replace(one, severity=severity[at], follows=tuple(dict.fromkeys(found[reason].subject for reason in reasons[at])))
        for at, one in enumerate(found)
    ]
    return [marked[at] for at in sorted(range(len(found)), key=lambda at: (severity[at], depth[at]))]


def _about(finding: Finding) -> Iterator[str]:
    """Yield what a finding is about: its subject, and the brokers, topics and groups among its facts."""
    yield finding.subject
    facts = finding.facts
    for broker in (*facts.get("brokers", ()), *([facts["broker"]] if "broker" in facts else ()), *facts.get("controllers", ())):
        yield f"broker {broker}"
    for place in (*facts.get("partitions", ()), *facts.get("topics", ())):
        yield f"topic {place.rpartition(':')[0] or place}"
    for key in ("group", "connector"):
        if facts.get(key):
            yield f"{key} {facts[key]}"

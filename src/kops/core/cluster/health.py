"""What is unhealthy about a cluster's partitions, brokers and controllers. Pure: from what was observed to findings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from kops.core.cluster.models import LogDir, Quorum, Release
from kops.core.cluster.observed import ObservedCluster, PartitionTrouble, partition_trouble
from kops.core.findings import Finding, Severity, command, counted, names_text, partitions_text
from kops.core.models import Partition, Setting, Topic, TopicPartition
from kops.core.topics.settings import MIN_IN_SYNC, UNCLEAN

SILENT_MS = 10_000
"""A controller that did not fetch for this long is down or cut off: it fetches every half second, and
``controller.quorum.fetch.timeout.ms`` is 2 s."""
FULL_BELOW = 0.1
"""A volume with less than this share left counts as nearly full."""
SKEWED_ABOVE = 0.1
"""Kafka itself moves the leaders back once others lead more than this share of a broker's preferred partitions
(``leader.imbalance.per.broker.percentage``)."""


def cluster_findings(observed: ObservedCluster) -> list[Finding]:
    """Return everything that is unhealthy or unsafe, in the order of the checks."""
    return [
        *partition_findings(observed, partition_trouble(observed)),
        *_missing_brokers(observed),
        *_quorum(observed.quorum),
        *_disks(observed.log_dirs),
        *_skew(observed),
        *_versions(observed.versions),
        *_unsafe_settings(observed.topics, observed.settings, len(observed.brokers)),
    ]


def partition_findings(observed: ObservedCluster, trouble: PartitionTrouble) -> Iterator[Finding]:
    """Yield what is wrong with partitions: one finding per kind, with all partitions of that kind."""
    offline, thin = set(trouble.offline), set(trouble.under_replicated)
    refusing = [place for place in trouble.under_min_isr if place not in offline]
    never = {place for place, partition in observed.partitions() if (observed.minimum(place.topic) or 0) > len(partition.replicas)}
    at_edge = [place for place in trouble.at_min_isr if place in thin and place not in offline]
    if offline:
        yield _about(
            Severity.CRITICAL,
            "offline_partitions",
            trouble.offline,
            f"{_are(len(offline), 'without a leader')}: nothing can be read or written{_who_could_lead(observed, trouble.offline)}",
            brokers=_absent(observed, offline),
            eligible_leaders={str(place): list(observed.eligible[place]) for place in trouble.offline if place in observed.eligible},
        )
    if short := [place for place in refusing if place not in never]:
        yield _under_min_isr(observed, short)
    if barred := [place for place in refusing if place in never]:
        text = f"{_are(len(barred), 'of topics whose min.insync.replicas is above the replication factor')}: acks=all can never succeed"
        yield replace(
            _about(Severity.CRITICAL, "min_isr_above_replicas", barred, text), commands=(_lower_minimum(observed, barred[0].topic),)
        )
    if at_edge:
        text = (
            f"{_are(len(at_edge), 'at min.insync.replicas')} with replicas out of sync: one more, and producers with acks=all are refused"
        )
        yield _about(Severity.WARNING, "at_min_isr", at_edge, text, brokers=_out_of_sync_in(observed, at_edge))
    if thin:
        out_of_sync = _out_of_sync_in(observed, thin)
        where = f" on broker{'s' if len(out_of_sync) > 1 else ''} {names_text(out_of_sync)}" if out_of_sync else ""
        text = f"{_are(len(thin), 'under-replicated')}: replicas{where} are not in sync"
        yield _about(Severity.WARNING, "under_replicated", trouble.under_replicated, text, brokers=out_of_sync)


def _about(severity: Severity, check: str, places: Iterable[TopicPartition], summary: str, **facts: Any) -> Finding:
    some = sorted(places)
    topics = list(dict.fromkeys(place.topic for place in some))
    commands = (command("topics", "describe", *topics[:3]),)
    return Finding(severity, check, partitions_text(some), summary, commands, {"partitions": list(map(str, some)), **facts})


def _under_min_isr(observed: ObservedCluster, short: list[TopicPartition]) -> Finding:
    """Report partitions that refuse writes; the last command lets them accept writes again with the replicas that are in sync."""
    brokers = _out_of_sync_in(observed, short)
    text = f"{_are(len(short), 'below min.insync.replicas')}: producers with acks=all are refused"
    text += f" until the replicas on broker{'s' if len(brokers) > 1 else ''} {names_text(brokers)} are in sync again" if brokers else ""
    found = _about(Severity.CRITICAL, "under_min_isr", short, text, brokers=brokers)
    in_sync: dict[str, int] = {}
    for place, partition in observed.partitions():
        if place in set(short):
            in_sync[place.topic] = min(in_sync.get(place.topic, len(partition.in_sync_replicas)), len(partition.in_sync_replicas))
    lowered = [
        command("topics", "alter", topic, "--config", f"{MIN_IN_SYNC}={count}") for topic, count in list(in_sync.items())[:3] if count
    ]
    if lowered:
        summary = f"{found.summary}; if they cannot be brought back, a lower {MIN_IN_SYNC} accepts writes with fewer copies meanwhile"
        found = replace(found, summary=summary, commands=(*found.commands, *lowered))
    return found


def _absent(observed: ObservedCluster, places: Collection[TopicPartition]) -> list[int]:
    """Return the brokers that have replicas of partitions and are not in service."""
    replicas = {broker for place, partition in observed.partitions() if place in places for broker in partition.replicas}
    return sorted(replicas - (observed.live - observed.unanswering))


def _out_of_sync_in(observed: ObservedCluster, places: Collection[TopicPartition]) -> list[int]:
    some = set(places)
    return sorted({broker for place, partition in observed.partitions() if place in some for broker in _out_of_sync(partition)})


def _lower_minimum(observed: ObservedCluster, topic: str) -> str:
    copies = next(found.replication_factor for found in observed.topics if found.name == topic)
    return command("topics", "alter", topic, "--config", f"{MIN_IN_SYNC}={max(1, copies - 1)}")


def _are(number: int, what: str) -> str:
    return f"{counted(number, 'partition')} {'is' if number == 1 else 'are'} {what}"


def _out_of_sync(partition: Partition) -> set[int]:
    return set(partition.replicas) - set(partition.in_sync_replicas)


def _who_could_lead(observed: ObservedCluster, offline: Iterable[TopicPartition]) -> str:
    brokers = {broker for place in offline for broker in observed.eligible.get(place, ())}
    brokers |= {broker for place, partition in observed.partitions() if place in set(offline) for broker in partition.in_sync_replicas}
    waiting = sorted(brokers - observed.live)
    if not waiting:
        return ""
    which = f"broker {waiting[0]}" if len(waiting) == 1 else f"brokers {names_text(waiting)}"
    return f"; {which} can lead without loss, once started"


def _missing_brokers(observed: ObservedCluster) -> Iterator[Finding]:
    known = {broker.id: broker for broker in observed.registered}
    fenced = {broker.id for broker in observed.registered if broker.fenced}
    replicas: dict[int, int] = {}
    for _, partition in observed.partitions():
        for broker in partition.replicas:
            replicas[broker] = replicas.get(broker, 0) + 1
    for broker in sorted((fenced | replicas.keys()) - (observed.live - fenced)):
        at = f" at {known[broker].host}:{known[broker].port}" if broker in known else ""
        count = replicas.get(broker, 0)
        severity = Severity.WARNING if count else Severity.NOTE
        text = f"not in service{at}; it has {counted(count, 'replica')}"
        yield Finding(severity, "broker_missing", f"broker {broker}", text, ("kops brokers list",), {"broker": broker, "replicas": count})

    for broker in sorted(observed.unanswering & observed.live):
        text = "does not answer, although controllers take it to be in service: it just died, or cannot be reached from here"
        yield Finding(Severity.WARNING, "broker_silent", f"broker {broker}", text, (command("brokers", "list"),), {"broker": broker})


def _quorum(quorum: Quorum | None) -> Iterator[Finding]:
    if quorum is None:
        return
    details = (command("cluster", "describe"),)
    if quorum.leader is None:
        text = "none of them is active: topics, leaders and settings cannot change"
        yield Finding(Severity.CRITICAL, "no_controller", "controllers", text, details)
        return
    silent = [voter.id for voter in quorum.voters if (quorum.silence(voter) or 0) > SILENT_MS]
    silent += [voter.id for voter in quorum.voters if voter.id != quorum.leader and voter.last_fetch is None]
    if silent:
        spare = len(quorum.voters) - len(silent) - (len(quorum.voters) // 2 + 1)
        rest = "one more, and there is no controller" if spare <= 0 else f"{spare} more may go"
        names = names_text(sorted(silent))
        text = f"{len(silent)} of {len(quorum.voters)} {'is' if len(silent) == 1 else 'are'} silent: {rest}"
        yield Finding(Severity.WARNING, "controller_silent", f"controllers {names}", text, details, {"controllers": sorted(silent)})


def _disks(log_dirs: Iterable[LogDir]) -> Iterator[Finding]:
    for found in log_dirs:
        facts = {"broker": found.broker, "path": found.path}
        subject = f"broker {found.broker}"
        if found.problem:
            text = f"the log directory {found.path} is offline: {found.problem}"
            yield Finding(Severity.CRITICAL, "log_dir_offline", subject, text, ("kops brokers list",), facts)
        elif found.total_bytes and found.usable_bytes is not None and found.usable_bytes < FULL_BELOW * found.total_bytes:
            share = found.usable_bytes / found.total_bytes
            text = f"the volume of {found.path} has {share:.1%} left: a broker that cannot write takes the directory offline"
            facts |= {"total_bytes": found.total_bytes, "usable_bytes": found.usable_bytes}
            yield Finding(Severity.WARNING, "disk_nearly_full", subject, text, ("kops brokers list",), facts)


def _skew(observed: ObservedCluster) -> Iterator[Finding]:
    preferred: dict[int, int] = {}
    elsewhere: dict[int, int] = {}
    for _, partition in observed.partitions():
        if partition.leader is not None and partition.replicas and partition.replicas[0] in observed.live:
            first = partition.replicas[0]
            preferred[first] = preferred.get(first, 0) + 1
            elsewhere[first] = elsewhere.get(first, 0) + (partition.leader != first)
    for broker, count in sorted(elsewhere.items()):
        if count > SKEWED_ABOVE * preferred[broker]:
            of = counted(preferred[broker], "partition")
            text = f"leads {preferred[broker] - count} of the {of} that it is preferred for"
            yield Finding(
                Severity.NOTE,
                "leader_skew",
                f"broker {broker}",
                f"{text}; brokers move leaders back by themselves unless auto.leader.rebalance.enable is off",
                ("kops brokers list",),
                {"broker": broker, "preferred": preferred[broker], "led_elsewhere": count},
            )


def _versions(versions: Mapping[int, Release]) -> Iterator[Finding]:
    brokers: dict[str, list[int]] = {}
    for broker, release in sorted(versions.items()):
        brokers.setdefault(release.text, []).append(broker)
    if len(brokers) > 1:
        parts = "; ".join(f"{version}: {names_text(some)}" for version, some in sorted(brokers.items()))
        text = f"of different releases ({parts}): an upgrade that is under way, or was left half done"
        yield Finding(Severity.NOTE, "mixed_versions", "brokers", text, ("kops cluster describe",), {"brokers": brokers})


def _unsafe_settings(topics: Iterable[Topic], settings: Mapping[str, Mapping[str, Setting]], broker_count: int) -> Iterator[Finding]:
    """Yield a note for each unsafe setting, with all topics that have it.

    :param settings: by topic and name; topics without settings are skipped
    :param broker_count: a single broker cannot keep copies, so it gets no finding
    """
    some = [topic for topic in topics if topic.partitions]
    values = {topic.name: {name: found.value for name, found in settings.get(topic.name, {}).items()} for topic in some}
    unclean = [topic.name for topic in some if values[topic.name].get(UNCLEAN) == "true"]
    yield from _note(
        "unclean_leader_election",
        unclean,
        f"{UNCLEAN}=true on",
        "a replica that is behind may become the leader, and acknowledged records are lost",
        f"{UNCLEAN}=false",
    )
    copied = [topic for topic in some if topic.replication_factor > 1]
    alone = [topic for topic in copied if values[topic.name].get(MIN_IN_SYNC) == "1"]
    yield from _note(
        "min_isr_1",
        [topic.name for topic in alone],
        f"{MIN_IN_SYNC}=1 on",
        "acks=all is acknowledged by one replica alone, and lost with it",
        f"{MIN_IN_SYNC}=2" if all(topic.replication_factor > 2 for topic in alone) else "",  # noqa: PLR2004 - of two copies, 2 is all
    )
    yield from _note(
        "min_isr_equals_replicas",
        [topic.name for topic in copied if values[topic.name].get(MIN_IN_SYNC) == str(topic.replication_factor)],
        f"{MIN_IN_SYNC} equals the replication factor on",
        "producers with acks=all are refused as soon as one broker is down",
    )
    if broker_count > 1:
        single = [topic.name for topic in some if topic.replication_factor == 1]
        yield from _note("single_replica", single, "replication factor 1 on", "offline as soon as its broker is, lost with its disk")


def _note(check: str, topics: list[str], what: str, why: str, better: str = "") -> Iterator[Finding]:
    if topics:
        some = topics[:3]
        details = command("topics", "alter", *some, "--config", better) if better else command("topics", "describe", *some)
        yield Finding(
            Severity.NOTE, check, names_text(topics), f"{what} {counted(len(topics), 'topic')}: {why}", (details,), {"topics": topics}
        )

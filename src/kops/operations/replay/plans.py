"""Plans a replay: which records, where to, how, and how exact."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kops.core.errors import Refused, UsageProblem
from kops.core.findings import counted
from kops.core.plan import Item, Plan
from kops.core.selection import parse_selection
from kops.core.times import to_milliseconds
from kops.operations.engine.spark import chosen_master
from kops.operations.replay.jobs import Work, parts_of
from kops.operations.replay.memory import Memory, memory_of, remembered
from kops.operations.replay.preview import preview, topics_by_reading
from kops.operations.replay.source import Range, Source, range_of, settings_of, source_of
from kops.operations.replay.targets import Targets, guard_of, placement, targets_of, warnings_of
from kops.operations.replay.wanted import EXACTLY_ONCE, KEEP, Wanted, parse_form
from kops.operations.services import Services

OPERATION = "replay.run"


def plan_replay(services: Services, wanted: Wanted, *, look: bool = False) -> Plan:
    """Decide what is sent where.

    :param look: read, count and take samples, as a dry run does
    :raises Refused: with the reason, before anything is sent
    """
    _refuse_contradictions(wanted)
    source = source_of(services, wanted.source_context)
    found = range_of(services, source, wanted)
    for connection, what in ((source.connection, "source"), (services.connection, "target")):
        settings_of(connection, what)
    arguments = _arguments(services, wanted, found, chosen_master(services, wanted.master))
    work, reads = Work(services, arguments), bool(found.offsets or look)
    if reads:
        work.begin()
    topics: Sequence[str] = wanted.declared or ((wanted.target,) if wanted.target else ())
    if not topics and reads:
        topics = topics_by_reading(work, parts_of(_bare(services, arguments), {}))
    if not topics:
        raise Refused("no record says where it goes: the range is empty", hint="--declare names the topics")
    targets = targets_of(services, topics, wanted)
    where, said = placement(wanted, found.partitions, targets, changed=bool(wanted.changes.some and _moves(wanted)))
    memory = memory_of(services) if wanted.guarantee == EXACTLY_ONCE else Memory(problem="only transactions note it in a topic too")
    arguments |= {
        "progress_topic": memory.topic,
        "anchor": next(iter(targets.counts)),
        "targets": dict(targets.counts),
        "partition_by": where,
        "largest": targets.largest,
        "inflated": any(targets.setting(topic, "compression.type") not in ("", "producer") for topic in targets.counts),
        "own": not targets.no_undo,
        "no_undo": targets.no_undo,
        "ends": {str(place): end for place, end in sorted(targets.ends.items())},
    }
    plan = Plan(
        operation=OPERATION,
        summary=_summary(wanted, found, targets),
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(_items(found, wanted, where)),
        guard=guard_of(targets),
        arguments=arguments,
        warnings=tuple(_warnings(services, source, found, wanted, targets)),
        notes=(said, _exactness(wanted), *remembered(services, memory), *found.notes, *_undo(targets)),
    )
    if reads and wanted.changes.some:
        work.rows(parts_of(plan, {}))  # Spark judges the expressions before anybody approves
    if look and plan.has_changes:
        counts, notes = preview(work, source, parts_of(plan, {}))
        plan = replace(plan, notes=(*plan.notes, *notes), arguments=arguments | {"preview": counts})
    return plan


def _refuse_contradictions(wanted: Wanted) -> None:
    changes = wanted.changes
    if (wanted.target is None) == (changes.topic is None):
        raise UsageProblem("say where to: either --to TOPIC or --to-expression SQL", hint="kops replay run orders --to orders-again")
    if wanted.declared and changes.topic is None:
        raise UsageProblem("--declare belongs to --to-expression", hint="it names the topics that the expression may give")
    if wanted.target is not None and parse_selection(wanted.target).partitions is not None:
        raise UsageProblem(f"{wanted.target} names partitions", hint="--to takes a topic; --partition-by says the partition")
    for form in (changes.key, changes.value):
        parse_form(form)


def _moves(wanted: Wanted) -> bool:
    """Tell whether records may belong to another partition than before: their key is another."""
    return any(name == "key" for name, _ in wanted.changes.assignments) or wanted.changes.function is not None


def _arguments(services: Services, wanted: Wanted, found: Range, master: str) -> dict[str, Any]:
    return {
        "replay": f"kops-replay-{services.now():%Y%m%dT%H%M%S}-{secrets.token_hex(3)}",
        "source": found.topic,
        "source_context": wanted.source_context,
        "target": wanted.target,
        "ranges": {str(number): [some.start, some.end] for number, some in sorted(found.ranges.items()) if not some.empty},
        "changes": wanted.changes.as_json(),
        "partition_by": wanted.partition_by,
        "rate": wanted.rate,
        "limit": wanted.limit,
        "guarantee": wanted.guarantee,
        "compression": wanted.compression,
        "new_times": wanted.accept_new_times,
        "master": master,
        "targets": {},
        "anchor": wanted.target or "",
        "largest": 0,
        "inflated": False,
    }


def _bare(services: Services, arguments: dict[str, Any]) -> Plan:
    return Plan(OPERATION, "", services.kafka.cluster().cluster_id, services.connection.label, (), arguments=arguments)


def _items(found: Range, wanted: Wanted, where: str) -> list[Item]:
    items = []
    for number, some in sorted(found.ranges.items()):
        target = f"{found.topic}:{number}"
        to = f"{wanted.target}:{number}" if wanted.target and where == KEEP else wanted.target or "by expression"
        if some.empty:
            items.append(Item(target, "none", some.start, some.end, "no records"))
        else:
            items.append(Item(target, "send", some.start, some.end, f"to {to}"))
    return items


def _summary(wanted: Wanted, found: Range, targets: Targets) -> str:
    to = wanted.target or f"{len(targets.counts)} topics by expression"
    what = f"up to {counted(found.offsets, 'record')} of {found.topic}" if found.offsets else f"no records of {found.topic}"
    cluster = f" in context {wanted.source_context}" if wanted.source_context else ""
    how = "changed on the way" if wanted.changes.some else "as they are"
    return f"send {what}{cluster} to {to}, {how}"


def _exactness(wanted: Wanted) -> str:
    if wanted.guarantee == EXACTLY_ONCE:
        return (
            "exactly once: each transaction holds records and progress; after a crash or failure, `kops replay resume` continues there, and"
            " who reads uncommitted data may see what was aborted"
        )
    return (
        "at least once: killed or failed, what was sent since the last commit (about 32 MiB or 5 s of each source partition) is sent"
        " again by `kops replay resume`"
    )


def _undo(targets: Targets) -> list[str]:
    if not targets.no_undo:
        return [f"{', '.join(targets.counts)} is empty now: `kops undo` deletes what was sent, unless others have written there"]
    return [f"no undo: {targets.no_undo}"]


def _warnings(services: Services, source: Source, found: Range, wanted: Wanted, targets: Targets) -> list[str]:
    now = to_milliseconds(services.now())
    warnings = warnings_of(targets, lambda kept: not wanted.accept_new_times and bool(older_partitions(source, found, now - kept)))
    if found.topic in targets.counts and wanted.source_context is None:
        warnings.append(f"{found.topic} is source and target: what is sent comes after the range, and every reader gets it again")
    return [*warnings, *(_other_partitions(found, topic, count) for topic, count in targets.counts.items() if count != found.partitions)]


def _other_partitions(found: Range, topic: str, count: int) -> str:
    """Return what it means for readers that a target has more or fewer partitions than the source."""
    return (
        f"{topic} has {counted(count, 'partition')} and {found.topic} {found.partitions}: keys change partitions. A Kafka Streams"
        f" application joins topics only if they have equally many, and one that is to read {topic} instead of {found.topic} needs its"
        f" state moved first: kops state repartition FILE --partitions {count} --input {found.topic}={topic}"
    )


def older_partitions(source: Source, found: Range, milliseconds: int) -> list[int]:
    """Return the partitions with records before a time."""
    from kops.operations.replay.source import older_than

    return older_than(source, found, max(0, milliseconds)) if found.offsets else []

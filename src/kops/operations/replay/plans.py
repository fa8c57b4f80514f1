"""Plans a replay: which records, where to, how, and how exact; and previews what it would send."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kops.core.errors import Refused, UsageProblem
from kops.core.findings import counted
from kops.core.models import TopicPartition
from kops.core.plan import Item, Plan
from kops.core.records.models import OffsetRange
from kops.core.selection import parse_selection
from kops.core.times import ANY_TIME, to_milliseconds
from kops.formats.base import as_text_or_base64
from kops.operations.archive.source import Range, RecordSource, has_older, range_of, settings_of, source_of, where_times_are
from kops.operations.engine.spark import chosen_master
from kops.operations.replay.arguments import ReplayArguments, new_name
from kops.operations.replay.progress import ProgressTopic, find_progress_topic, progress_notes
from kops.operations.replay.request import EXACTLY_ONCE, KEEP, ReplayRequest, parse_form
from kops.operations.replay.targets import Targets, guard_of, placement, targets_of, warnings_of
from kops.operations.replay.work import Work, ranges_left
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.spark.replay.jobs import PartitionRange


OPERATION = "replay.run"


def plan_replay(services: Services, request: ReplayRequest, *, look: bool = False) -> Plan[ReplayArguments]:
    """Decide what is sent where.

    :param look: read, count and take samples, as a dry run does
    :raises Refused: with the reason, before anything is sent
    """
    _refuse_contradictions(request)
    source = source_of(services, request.source_context)
    found = range_of(services, source, request.source, request.span, from_group=request.from_group, until_group=request.until_group)
    for connection, what in ((source.connection, "source"), (services.connection, "target")):
        settings_of(connection, what, chosen_master(services, request.master))
    arguments = _arguments(services, request, found, chosen_master(services, request.master))
    work, reads = Work(services, arguments), bool(found.offsets or look)
    if reads:
        work.begin()
    if found.offsets and found.times != ANY_TIME:
        found, arguments = _narrowed_to_times(work, found)
        work.arguments = arguments
    topics: Sequence[str] = request.declared or ((request.target,) if request.target else ())
    if not topics and reads:
        topics = topics_by_reading(work, ranges_left(arguments, {}))
    if not topics:
        raise Refused("no record says where it goes: the range is empty", hint="--declare names the topics")
    targets = targets_of(services, topics, request)
    where, said = placement(request, found.partitions, targets, changed=_moves(request))
    progress_topic = (
        find_progress_topic(services)
        if request.guarantee == EXACTLY_ONCE
        else ProgressTopic(problem="only transactions note it in a topic too")
    )
    arguments = replace(
        arguments,
        progress_topic=progress_topic.topic,
        anchor=next(iter(targets.counts)),
        partition_by=where,
    ).sent_to(targets)
    work.arguments = arguments
    plan = Plan(
        operation=OPERATION,
        summary=_summary(request, found, targets, arguments),
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(_items(found, request, where, arguments)),
        guard=guard_of(targets),
        arguments=arguments,
        warnings=tuple(_warnings(services, source, found, request, targets)),
        notes=(said, _exactness(request), *progress_notes(services, progress_topic), *found.notes, *_undo(targets)),
    )
    if reads and request.changes.some:
        work.rows(ranges_left(arguments, {}))  # let Spark check the expressions before anyone approves
    if look and plan.has_changes:
        counts, notes = preview(work, source, ranges_left(arguments, {}))
        plan = replace(plan, notes=(*plan.notes, *notes), arguments=replace(arguments, preview=counts))
    return plan


def _refuse_contradictions(request: ReplayRequest) -> None:
    changes = request.changes
    if (request.target is None) == (changes.topic is None):
        raise UsageProblem("say where to: either --to TOPIC or --to-expression SQL", hint="kops replay run orders --to orders-again")
    if request.declared and changes.topic is None:
        raise UsageProblem("--declare belongs to --to-expression", hint="it names the topics that the expression may give")
    if request.target is not None and parse_selection(request.target).partitions is not None:
        raise UsageProblem(f"{request.target} names partitions", hint="--to takes a topic; --partition-by says the partition")
    for form in (changes.key, changes.value):
        parse_form(form)


def _moves(request: ReplayRequest) -> bool:
    """Whether records may belong to another partition than before, because their keys change."""
    return any(name == "key" for name, _ in request.changes.assignments) or request.changes.function is not None


def _arguments(services: Services, request: ReplayRequest, found: Range, master: str) -> ReplayArguments:
    return ReplayArguments(
        replay=new_name(services, "replay"),
        source=found.topic,
        master=master,
        source_context=request.source_context,
        target=request.target,
        ranges=_sent_ranges(found),
        changes=request.changes,
        partition_by=request.partition_by,
        rate=request.rate,
        limit=request.limit,
        guarantee=request.guarantee,
        compression=request.compression,
        new_times=request.accept_new_times,
        anchor=request.target or "",
    )


def _narrowed_to_times(work: Work[ReplayArguments], found: Range) -> tuple[Range, ReplayArguments]:
    """Return where the records of a range of time are, and the arguments that send no others."""
    found, windows = where_times_are(work.engine, work.source_settings(), found)
    return found, replace(
        work.arguments,
        ranges=_sent_ranges(found),
        times=found.times if any(window.others for window in windows.values()) else ANY_TIME,
        of_times={number: window.inside for number, window in windows.items() if window.inside},
    )


def _sent_ranges(found: Range) -> dict[int, tuple[int, int]]:
    return {number: (some.start, some.end) for number, some in sorted(found.ranges.items()) if not some.empty}


def _items(found: Range, request: ReplayRequest, where: str, arguments: ReplayArguments) -> list[Item]:
    items = []
    for number, some in sorted(found.ranges.items()):
        target = f"{found.topic}:{number}"
        to = f"{request.target}:{number}" if request.target and where == KEEP else request.target or "by expression"
        if some.empty:
            items.append(Item(target, "none", some.start, some.end, "no records"))
        else:
            count = f"{counted(arguments.of_times[number], 'record')} " if number in arguments.of_times else ""
            items.append(Item(target, "send", some.start, some.end, f"{count}to {to}"))
    return items


def _summary(request: ReplayRequest, found: Range, targets: Targets, arguments: ReplayArguments) -> str:
    to = request.target or f"{len(targets.counts)} topics by expression"
    known = sum(arguments.of_times.values())
    records = counted(known, "record") if known and request.limit is None else f"up to {counted(known or found.offsets, 'record')}"
    what = f"{records} of {found.topic}" if found.offsets else f"no records of {found.topic}"
    cluster = f" in context {request.source_context}" if request.source_context else ""
    how = "changed on the way" if request.changes.some else "as they are"
    return f"send {what}{cluster} to {to}, {how}"


def _exactness(request: ReplayRequest) -> str:
    if request.guarantee == EXACTLY_ONCE:
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
        were = f"{', '.join(targets.counts)} was empty when this was planned"
        return [f"{were}: `kops undo` deletes what was sent, unless others have written there"]
    return [f"no undo: {targets.no_undo}"]


def _warnings(services: Services, source: RecordSource, found: Range, request: ReplayRequest, targets: Targets) -> list[str]:
    now = to_milliseconds(services.now())
    warnings = warnings_of(targets, lambda kept: not request.accept_new_times and has_older(source, found, max(0, now - kept)))
    if found.topic in targets.counts and request.source_context is None:
        warnings.append(f"{found.topic} is source and target: what is sent comes after the range, and every reader gets it again")
    return [*warnings, *(_other_partitions(found, topic, count) for topic, count in targets.counts.items() if count != found.partitions)]


def _other_partitions(found: Range, topic: str, count: int) -> str:
    """Return warnings for readers if a target has more or fewer partitions than the source."""
    return (
        f"{topic} has {counted(count, 'partition')} and {found.topic} {found.partitions}: keys change partitions. A Kafka Streams"
        f" application joins topics only if they have equally many, and one that is to read {topic} instead of {found.topic} needs its"
        f" state moved first: kops state repartition FILE --partitions {count} --input {found.topic}={topic}"
    )


SAMPLES = 5
SAMPLE_WIDTH = 60


def topics_by_reading(work: Work[ReplayArguments], parts: Sequence[PartitionRange]) -> list[str]:
    """Return the topics that the records of a range go to.

    :raises Refused: when a record has no target
    """
    from kops.spark.driver.failures import explained

    if not parts:
        return []
    work.services.progress.step(f"reading {work.arguments.source} to see where its records go")
    rows = work.rows(parts)
    with explained(f"find the topics of {work.arguments.source}"):
        found = [row.topic for row in rows.select("topic").distinct().collect()]
    if None in found:
        raise Refused(
            f"--to-expression {work.changes.topic} is null for some records, so they go nowhere",
            hint="leave them out with --where, or give them a topic with coalesce(...)",
        )
    return sorted(found)


def preview(work: Work[ReplayArguments], source: RecordSource, parts: Sequence[PartitionRange]) -> tuple[dict[str, Any], list[str]]:
    work.services.progress.step(f"reading {work.arguments.source}")
    counts, samples = _count_rows(work, parts) if work.changes.some else _count_batches(work, source, parts)
    total = sum(counts.values())
    places = "; ".join(f"{place} {count:,}" for place, count in list(counts.items())[:SAMPLES])
    read, sent = sum(part.end - part.start for part in parts), min(total, work.arguments.limit or total)
    notes = [
        f"read: {counted(read, 'offset')}; to be sent: {counted(sent, 'record')} ({places})",
        *(f"sample: {record['topic']}: {sample_text(record['key'])} = {sample_text(record['value'])}" for record in samples),
    ]
    return {"records": sent, "counts": counts, "samples": samples}, notes


def _count_rows(work: Work[ReplayArguments], parts: Sequence[PartitionRange]) -> tuple[dict[str, int], list[dict[str, Any]]]:
    from kops.spark.driver.failures import explained

    rows = work.rows(parts)
    with explained(f"read {work.arguments.source}"):
        counts = {row.topic: row["count"] for row in rows.groupBy("topic").count().orderBy("topic").collect()}
        samples = rows.limit(SAMPLES).collect()
    return counts, [_sample(row.topic, row.key, row.value, row.timestamp_ms) for row in samples]


def _count_batches(
    work: Work[ReplayArguments], source: RecordSource, parts: Sequence[PartitionRange]
) -> tuple[dict[str, int], list[dict[str, Any]]]:
    from kops.spark.replay.tasks import counted

    topic, target = work.arguments.source, work.arguments.anchor
    count = counted(work.engine.tasks, work.job(len(parts)), parts)
    ranges = {TopicPartition(topic, part.partition): OffsetRange(part.start, part.end) for part in parts[:1]}
    some = ([record for record in batch if work.arguments.times.include(record.timestamp)] for batch in source.kafka.records.read(ranges))
    records = next((batch for batch in some if batch), [])[:SAMPLES]
    return {target: count}, [_sample(target, record.key, record.value, record.timestamp) for record in records]


def _sample(topic: str, key: bytes | None, value: bytes | None, timestamp: int | None) -> dict[str, Any]:
    return {"topic": topic, "key": sample_json(key), "value": sample_json(value), "timestamp_ms": timestamp}


def sample_json(data: bytes | None) -> Any:
    return None if data is None else as_text_or_base64(bytes(data))


def sample_text(shown: Any) -> str:
    text = "null" if shown is None else " ".join(str(shown["data"]).split())
    return text if len(text) <= SAMPLE_WIDTH else f"{text[: SAMPLE_WIDTH - 1]}…"

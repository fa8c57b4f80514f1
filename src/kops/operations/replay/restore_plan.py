"""Plans a restore: an archive's records into a topic, and the offsets of groups after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kops.core.errors import Refused, UsageProblem
from kops.core.findings import counted
from kops.core.models import NewTopic, Setting, TopicPartition
from kops.core.plan import Item, Plan
from kops.core.selection import parse_selection
from kops.core.times import to_milliseconds
from kops.core.topics.changes import new_topic_json
from kops.operations.archive.manifest import Archive
from kops.operations.archive.read import open_archive, rows_compared, runs_of
from kops.operations.archive.source import settings_of
from kops.operations.engine.spark import chosen_master, start_engine
from kops.operations.replay.arguments import RestoreArguments, new_name
from kops.operations.replay.progress import find_progress_topic, offsets_retention_text, progress_notes
from kops.operations.replay.request import EXACTLY_ONCE, KEEP, ReplayRequest
from kops.operations.replay.restore import group_items, groups_wanted, refuse_active_groups, translated
from kops.operations.replay.targets import Targets, guard_of, placement, targets_of, warnings_of
from kops.operations.services import Services
from kops.operations.topics.plan import on_this_cluster, prepare_creation

OPERATION = "replay.restore"


def plan_restore(
    services: Services,
    path: str,
    *,
    target: str,
    groups: Sequence[str] = (),
    accept_new_times: bool = False,
    rate: float | None = None,
    master: str | None = None,
) -> Plan[RestoreArguments]:
    """Decide what is sent where, once the archive was read and found to hold what its manifest says.

    :param groups: patterns of groups whose offsets are committed
    :raises Refused: with the reason, before anything is sent
    """
    if parse_selection(target).partitions is not None:
        raise UsageProblem(f"{target} names partitions", hint="--to takes a topic")
    settings_of(services.connection, "target", chosen_master(services, master))
    engine = start_engine(services, master)
    place, archive = open_archive(engine, path)
    request = ReplayRequest(source=archive.topic, target=target, partition_by=KEEP, accept_new_times=accept_new_times, rate=rate)
    created = _creation(services, archive, target)
    targets = _new_targets(created, request) if created else targets_of(services, [target], request)
    _, said = placement(request, archive.partitions, targets, changed=False)
    chosen = groups_wanted(archive, groups)
    refuse_active_groups(services, chosen)
    places = translated(archive, rows_compared(engine, place, archive), chosen)
    ranges = {number: archive.span(number) or (0, 0) for number in archive.held_partitions}
    progress_topic = find_progress_topic(services)
    items = [
        *([Item(target, "create", None, new_topic_json(created), "as it was archived")] if created else ()),
        *(
            Item(f"{archive.topic}:{number}", "send", start, end, f"{counted(archive.records(number), 'record')} to {target}:{number}")
            for number, (start, end) in ranges.items()
        ),
        *group_items(archive, target, places),
    ]
    records = sum(archive.records(number) for number in ranges)
    return Plan(
        operation=OPERATION,
        summary=f"restore {counted(records, 'record')} of {archive.topic} from {path} to {target}",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(items),
        guard=guard_of(targets) if not created else {"topics": {}, "partitions": {}, "empty_ends": {}},
        arguments=RestoreArguments(
            replay=new_name(services, "replay"),
            source=archive.topic,
            master=engine.master,
            target=target,
            ranges=ranges,
            partition_by=KEEP,
            rate=rate,
            guarantee=EXACTLY_ONCE,
            new_times=accept_new_times,
            anchor=target,
            progress_topic=progress_topic.topic,
            path=place.path,
            runs=tuple(runs_of(archive)),
            create=created,
            groups=places,
        ).sent_to(targets),
        warnings=tuple(_warnings(services, archive, targets, accept_new_times=accept_new_times)),
        notes=(said, *progress_notes(services, progress_topic), *_notes(services, targets, archive, chosen)),
    )


def _creation(services: Services, archive: Archive, target: str) -> NewTopic | None:
    if services.kafka.topics.existing([target]):
        return None
    return prepare_creation(services, on_this_cluster(services, archive.cluster_id, [archive.new_topic(target)])).topics[0]


def _new_targets(created: NewTopic, request: ReplayRequest) -> Targets:
    settings = {name: Setting(name, value, "topic") for name, value in created.settings.items()}
    settings.setdefault("cleanup.policy", Setting("cleanup.policy", "delete", "default"))
    ends = {TopicPartition(created.name, number): 0 for number in range(created.partitions or 0)}
    targets = Targets({created.name: created.partitions or 0}, {created.name: None}, ends, {created.name: settings}, own=True)
    if targets.appends_times and not request.accept_new_times:
        raise Refused(
            f"{created.name} would be made as it was archived, with LogAppendTime: every record would get a new time",
            hint=f"make it first with CreateTime (kops topics create {created.name}), or --accept-new-timestamps",
        )
    return targets


def _warnings(services: Services, archive: Archive, targets: Targets, *, accept_new_times: bool) -> list[str]:
    earliest = min((held["earliest"] for run in archive.runs for held in run.contents.values()), default=-1)
    now = to_milliseconds(services.now())
    return warnings_of(targets, lambda kept: not accept_new_times and 0 <= earliest < now - kept)


def _notes(services: Services, targets: Targets, archive: Archive, groups: Mapping[str, Any]) -> list[str]:
    name = next(iter(targets.counts))
    notes = [
        f"the archive was read: it holds what its manifest of {archive.taken} says",
        "exactly once: each transaction holds records and progress; after a crash or failure, `kops replay resume` continues there",
    ]
    if groups:
        notes.append("offsets of groups are those of the same records, found by reading back: markers of transactions take offsets too")
        notes.append(f"brokers delete the offsets of a group without members after {offsets_retention_text(services)}")
    elif archive.groups:
        notes.append(f"no offsets are committed; the archive has those of {', '.join(sorted(archive.groups))}: --groups GLOB")
    if targets.no_undo:
        notes.append(f"no undo: {targets.no_undo}")
    else:
        notes.append(f"{name} is empty: `kops undo` deletes what was sent, unless others have written there; offsets of groups stay")
    return notes

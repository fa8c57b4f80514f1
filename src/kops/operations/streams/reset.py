"""``kops streams reset``: the plan that returns an application to where it has processed nothing.

Like Apache's ``kafka-streams-application-reset`` (``StreamsResetter``), it moves offsets of input topics and deletes internal topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kops.core.durations import parse_duration
from kops.core.errors import KopsError, Refused, UsageProblem
from kops.core.findings import counted
from kops.core.models import Bounds, Group, TopicPartition
from kops.core.offsets.arithmetic import ShiftBy, Stay
from kops.core.offsets.moves import TopicMoves
from kops.core.plan import Arguments, Item, Json, Plan, Severity
from kops.core.rights import Right
from kops.core.selection import Selection, parse_selection
from kops.core.streams.local_state import delete_local_state
from kops.core.streams.topics import CHANGELOG, store_of
from kops.core.streams.topology import Topology
from kops.core.topics.changes import Changes
from kops.core.topics.names import topics_not_found
from kops.operations.groups.matching import refuse_active, wait_until_empty
from kops.operations.offsets.arguments import Moves
from kops.operations.offsets.checks import group_or_none
from kops.operations.offsets.files import file_offsets
from kops.operations.offsets.items import partition_of, places
from kops.operations.offsets.plan import by_partition, plan_group, selected
from kops.operations.offsets.strategies import Choice, strategy_of
from kops.operations.services import Services
from kops.operations.streams.find import find_application
from kops.operations.streams.inspection import Inspection, inspect_application
from kops.operations.topics.impact import Readers, group_names, readers_of
from kops.operations.topics.requests import plan_deletion

NAME = "streams.reset"


@dataclass(frozen=True)
class ResetArguments(Arguments):
    """What a reset does.

    :param offsets: of its group
    :param topics: internal topics to be deleted
    """

    application: str
    offsets: Moves
    topics: tuple[str, ...]

    def as_json(self) -> Json:
        return {"application": self.application, "offsets": self.offsets.as_json(), "topics": list(self.topics)}

    @classmethod
    def of_json(cls, body: Json) -> ResetArguments:
        return cls(body["application"], Moves.of_json(body["offsets"]), tuple(body["topics"]))


@dataclass(frozen=True)
class ResetOptions:
    """What a reset may change.

    :param input_topics: whose offsets move, ``orders`` or ``orders:0,3-5``; all that the application reads when empty
    :param internal_topics: to be deleted; all of its own when empty
    :param output_topics: that it writes, where no description names them
    :param wait_empty: how long to wait for the instances to stop
    """

    input_topics: tuple[str, ...] = ()
    internal_topics: tuple[str, ...] = ()
    output_topics: tuple[str, ...] = ()
    wait_empty: str | None = None


def plan_reset(
    services: Services, name: str, choice: Choice, wanted: ResetOptions, topology: Topology | None = None
) -> Plan[ResetArguments]:
    """Return the plan that resets an application.

    :param choice: where its input topics are moved to
    :param topology: as printed by ``Topology.describe()``
    :raises GroupActive: while an instance runs
    :raises Refused: when a topic does not exist, and when one that is its own by name may be another application's
    :raises NotFound: when there is no such application
    """
    milliseconds = None if wanted.wait_empty is None else parse_duration(wanted.wait_empty)
    if choice.from_file is None:
        strategy_of(choice, services.now())  # reports what is wrong with it before anything is asked
    hosts, group = once_stopped(services, name, milliseconds)
    look = inspect_application(services, name, topology)
    offsets = _plan_offsets(services, look, group, choice, wanted.input_topics)
    names = to_delete(look, wanted.internal_topics)
    topics = plan_internal(services, names)
    kept = left_alone(look, names)
    plan = compose(name, offsets, topics, items=kept)
    return replace(plan, **reset_impact(services, look, plan, wanted.output_topics, hosts))


def plan_internal(services: Services, names: Sequence[str]) -> Plan[Changes]:
    """Plan to delete internal topics, of which each may be deleted: what comes before would be done already.

    :raises AuthorizationFailed: when one may not
    """
    for name, operations in services.kafka.topics.rights(names, of_cluster=True).items():
        if operations is not None and "DELETE" not in operations:
            raise Right("DELETE", f"topic {name}").lacking(f"{name} could not be deleted")
    return plan_deletion(services, services.kafka.topics.describe(names) if names else {})


def once_stopped(services: Services, name: str, milliseconds: int | None) -> tuple[tuple[str, ...], Group | None]:
    """Return where the instances of an application ran, and its group, once all of them have stopped.

    :param milliseconds: how long to wait for that; None: not at all
    :raises GroupActive: while an instance runs
    :raises NotFound: when there is no such application
    """
    ran = find_application(services, name).instances
    if milliseconds is not None:
        wait_until_empty(services, name, milliseconds)
    group = group_or_none(services, name)
    if group is not None:
        refuse_active(group)
    return tuple(instance.label for instance in ran), group


def compose(
    name: str, offsets: Plan[Moves], topics: Plan[Changes], *, items: Sequence[Item] = (), verb: str = "reset"
) -> Plan[ResetArguments]:
    """Combine a plan that moves offsets and one that deletes topics.

    The offsets come first: if a member has joined the group, the broker refuses them, and nothing is deleted.
    """
    deleted = len(topics.changes)
    done = [f"move {places(partition_of(item.target) for item in offsets.changes)}"] if offsets.has_changes else []
    done += [f"delete {counted(deleted, 'internal topic')}"] if deleted else []
    return Plan(
        operation=NAME,
        summary=f"{verb} the application {name}: {' and '.join(done) or 'nothing is left of it to reset'}",
        cluster_id=offsets.cluster_id,
        context=offsets.context,
        items=(*offsets.items, *topics.items, *items),
        severity=Severity.SEVERE if topics.has_changes else Severity.MODERATE,
        confirm=name,
        guard={"offsets": offsets.guard, "topics": {name: state["topic_id"] for name, state in topics.guard["topics"].items()}},
        arguments=ResetArguments(name, offsets.arguments, tuple(item.target for item in topics.changes)),
        warnings=(*offsets.warnings, *topics.warnings),
    )


def _plan_offsets(services: Services, look: Inspection, group: Group | None, choice: Choice, topics: Sequence[str]) -> Plan[Moves]:
    name = look.application.application
    selections = [parse_selection(topic) for topic in topics]
    if choice.from_file is not None:
        strategies = by_partition(services, file_offsets(choice.from_file, name, selections, services.now()))
        _refuse_foreign(look, [Selection(topic) for topic in sorted({partition.topic for partition in strategies})])
    else:
        strategy = strategy_of(choice, services.now())
        chosen = selections or [Selection(topic) for topic in input_topics(look) if topic in look.partitions]
        _refuse_foreign(look, chosen)
        strategies = {partition: strategy for some in selected(services, chosen) for partition in some}
    staying = Stay("no commit yet, so nothing to shift")
    moving = {
        partition: staying if isinstance(strategy, ShiftBy) and partition not in look.committed else strategy
        for partition, strategy in strategies.items()
    }
    plan = plan_group(services, name, group, moving, look.committed, summary=f"reset {name}")
    return _without_stream_time(replace(plan, warnings=()))


def input_topics(look: Inspection) -> tuple[str, ...]:
    """Return the topics whose offsets the application commits; it commits none for a global store's topic."""
    global_ones = {topic for part in look.application.parts if part.is_global for topic in part.source_topics}
    others = {topic for part in look.application.parts if not part.is_global for topic in part.source_topics}
    return tuple(topic for topic in look.input_topics if topic not in global_ones - others)


def _refuse_foreign(look: Inspection, chosen: Iterable[Selection]) -> None:
    """Refuse topics that the application is known not to read; if its topology is not fully known, it may read any topic."""
    foreign = [one.topic for one in chosen if look.application.complete and one.topic not in look.input_topics]
    has_patterns = any(part.patterns for part in look.application.parts)
    if foreign and not has_patterns:
        what = f"{look.application.application} does not read {', '.join(foreign)}"
        raise Refused(what, hint=f"it reads {', '.join(input_topics(look)) or 'nothing'}", topics=foreign)


def _without_stream_time(plan: Plan[Moves]) -> Plan[Moves]:
    """Return a plan of offsets without the metadata that Kafka Streams stored with them: with the stores, stream time starts over."""
    (group,) = plan.arguments.groups
    moves = replace(plan.arguments, groups=(replace(group, topics=tuple(map(_forgetting, group.topics))),))
    return replace(plan, items=moves.items(), arguments=moves)


def _forgetting(topic: TopicMoves) -> TopicMoves:
    """Return moves that write no metadata, also where the offset stays the same."""
    before, after = topic.before.offsets, topic.after.offsets
    rewritten = topic.before.metadata.keys() & topic.partitions
    reasons = tuple(
        "its stream time is forgotten" if before[at] == after[at] and partition in rewritten else topic.reason(at)
        for at, partition in enumerate(topic.partitions)
    )
    return replace(topic, after=replace(topic.after, metadata={}), reasons=reasons, rewritten=frozenset(rewritten))


def to_delete(look: Inspection, chosen: Sequence[str]) -> list[str]:
    """Return the internal topics to delete.

    :raises Refused: when one that is not named explicitly may be another application's
    """
    name = look.application.application
    own = {*look.internal, *look.others}
    if foreign := [topic for topic in chosen if topic not in own]:
        hint = f"those of {name}: {', '.join(sorted(own)) or 'none'}"
        if missing := [topic for topic in foreign if topic not in look.partitions]:
            raise topics_not_found(missing, hint=hint)
        raise Refused(f"{', '.join(foreign)} is not an internal topic of {name}", hint=hint, topics=foreign)
    if chosen:
        return sorted(set(chosen))
    if look.doubts:
        doubt, more = look.doubts[0], len(look.doubts) - 1
        others = f" (and {more} more topics like it)" if more else ""
        raise Refused(
            f"{doubt.topic} may be of another application, {doubt.other}, whose group is gone: it {doubt.reason}{others}",
            hint="--topology FILE, with what Topology.describe() prints, shows whose it is; or name what to delete with --internal-topic",
            topics=[one.topic for one in look.doubts],
        )
    return list(look.internal)


def left_alone(look: Inspection, deleted: Sequence[str]) -> tuple[Item, ...]:
    left = [(topic, "not named with --internal-topic") for topic in look.internal if topic not in deleted]
    left += [(topic, "not in the application's topology") for topic in look.others if topic not in deleted]
    return tuple(Item(topic, "none", reason=reason) for topic, reason in sorted(left))


def split_topics(values: Iterable[str]) -> tuple[str, ...]:
    """Split topics as Apache's tool does, several in one value: both ``orders,payments`` and ``orders:0,1``."""
    found: list[str] = []
    for value in values:
        for word in value.split(","):
            numbers = word.replace("-", "")
            if found and ":" in found[-1] and numbers.isdigit():
                found[-1] += f",{word}"  # `orders:0,1`: another partition of the topic before it
            elif not word.strip():
                raise UsageProblem(f"{value!r} names an empty topic", hint="write them like orders,payments or orders:0,3-5")
            else:
                found.append(word.strip())
    return tuple(found)


def reset_impact(
    services: Services, look: Inspection, plan: Plan[ResetArguments], outputs: Sequence[str], hosts: Sequence[str]
) -> dict[str, Any]:
    """Return the warnings and notes of a reset, to be put into its plan.

    :param hosts: the instances that ran when kops first checked
    """
    if not plan.has_changes:
        return {"notes": tuple(look.notes)}
    name = look.application.application
    deleted = [item for item in plan.changes if item.action == "delete" and ":" not in item.target]
    written = tuple(dict.fromkeys((*(look.output_topics or ()), *outputs)))
    readers = readers_of(services, (*written, *(item.target for item in deleted)))
    emitted = _emitted(look, written, readers) if any(_goes_back(item) for item in plan.changes) else []
    warnings = [*_trimmed(services, plan), *emitted, *deletion_warnings(services, look, deleted, readers)]
    notes = [*look.notes, delete_local_state(name, hosts)] if deleted else list(look.notes)
    return {"warnings": tuple(warnings), "notes": tuple(notes)}


def deletion_warnings(services: Services, look: Inspection, deleted: Sequence[Item], readers: Readers) -> list[str]:
    """Return what is lost with internal topics, and what makes it doubtful that they are the application's alone."""
    name = look.application.application
    warnings = [*_lost(name, deleted), *_unprocessed(services, look, deleted)]
    for item in deleted:
        others = sorted({*readers.committed.get(item.target, ()), *readers.active.get(item.target, ())} - {name})
        if others:
            warnings.append(f"{item.target} is read by {group_names(others)} too, which will lose it")
    if by_name := [item.target for item in deleted if item.target in look.by_name]:
        warnings.append(f"only their names suggest that these belong to it: {', '.join(by_name)}; --topology FILE decides")
    if readers.unseen:
        warnings.append(f"not every group could be asked whether it reads these topics: {readers.unseen}")
    return warnings


def _goes_back(item: Item) -> bool:
    """Whether records may be processed again; a partition without a commit may have had one that expired."""
    return isinstance(item.after, int) and (item.before is None or item.after < item.before)


def _lost(name: str, deleted: Sequence[Any]) -> list[str]:
    stores = [(store, item.before["records"]) for item in deleted if (store := store_of(item.target, name))]
    if not stores:
        return []
    shown = ", ".join(store if count is None else f"{store} ({count:,} records)" for store, count in stores)
    return [f"the state of {shown} is lost; undo does not bring it back, `kops state snapshot` can keep it"]


def _unprocessed(services: Services, look: Inspection, deleted: Sequence[Any]) -> list[str]:
    """Return how many records of repartition topics were not processed, one sentence per topic."""
    topics = {item.target for item in deleted if not item.target.endswith(CHANGELOG)}
    partitions = [TopicPartition(topic, number) for topic in sorted(topics) for number in range(look.partitions[topic])]
    counts: dict[str, int] = {}
    for partition, bounds in services.kafka.offsets.bounds_or_errors(partitions).items():
        if isinstance(bounds, Bounds):
            committed = look.committed.get(partition)
            start = max(bounds.log_start_offset, committed.offset if committed else 0)
            counts[partition.topic] = counts.get(partition.topic, 0) + max(0, bounds.log_end_offset - start)
    return [
        f"{count:,} records of {topic} were not processed: they are deleted, and written again only if their input is reprocessed"
        for topic, count in counts.items()
        if count
    ]


def _trimmed(services: Services, plan: Plan[ResetArguments]) -> list[str]:
    """Return the input topics that cannot go back to their beginning, one sentence each."""
    moved = {partition_of(item.target): item.after for item in plan.changes if ":" in item.target and isinstance(item.after, int)}
    gone: dict[str, int] = {}
    try:
        found = services.kafka.offsets.bounds_or_errors(moved)
    except KopsError:
        return []
    for partition, bounds in found.items():
        if isinstance(bounds, Bounds) and bounds.log_start_offset > 0 and moved[partition] == bounds.log_start_offset:
            gone[partition.topic] = gone.get(partition.topic, 0) + bounds.log_start_offset
    return [f"{topic} has lost its first {count:,} offsets: what came of them does not come again" for topic, count in gone.items()]


def _emitted(look: Inspection, written: Sequence[str], readers: Readers) -> list[str]:
    if not written:
        if look.topology is not None and not look.topology.chooses_topics:
            return []
        return ["it sends its results again, and which topics it writes is not known: --topology FILE or --output-topic name them"]
    texts = []
    for topic in written:
        groups = sorted({*readers.committed.get(topic, ()), *readers.active.get(topic, ())})
        whom = f"read by {group_names(groups)}" if groups else "which no group reads that has committed anything"
        texts.append(f"results are sent again to {topic}, {whom}" + ("" if topic in look.partitions else ", and which does not exist"))
    return texts

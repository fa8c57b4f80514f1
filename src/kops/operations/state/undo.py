"""The plan that undoes a change of state: topics, records and offsets as they were before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kops.core.errors import Refused
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.plan import Item, ItemResult, Plan, Severity
from kops.core.streams.local_state import delete_local_state
from kops.operations.engine.spark import Engine, start_engine
from kops.operations.offsets.items import offset_of
from kops.operations.services import Services
from kops.operations.state.arguments import StateArguments, StoreWrite, log_starts
from kops.operations.state.changelog_writes import contents_backwards, refuse_without_stages
from kops.operations.state.guard import guarded, log_ends, records_of
from kops.operations.state.internal_topics import TopicChange, refuse_unless_recreatable, topic_ids


def plan_undo(services: Services, plan: Plan[StateArguments], results: Sequence[ItemResult]) -> Plan[StateArguments]:
    """Return the plan that undoes a change of state.

    :raises Refused: when a topic was recreated since, or inputs got partitions, which Kafka cannot undo
    """
    arguments = plan.arguments
    _refuse_after_loss(plan)
    if arguments.grow:
        _refuse_grown(services, arguments)
    topics = _topics_back(services, arguments, results)
    arguments = _written(services, plan)
    refuse_without_stages(arguments)
    engine = start_engine(services, arguments.master) if any(store.contents for store in arguments.stores.values()) else None
    now = services.kafka.groups.committed([arguments.application], stable=True)[arguments.application]
    undo = replace(
        arguments,
        topics=topics,
        stores={name: _store_back(engine, store, arguments.topics, topics) for name, store in arguments.stores.items()},
        commit=_commits_back(arguments, topics, now),
        prior=arguments.commit,
        grow={},
        is_undo=not arguments.is_undo,
    )
    refuse_unless_recreatable(services, topics)
    replaces = any(change.before for change in topics)
    warnings = []
    if arguments.committed_before:
        warnings.append(
            f"what {arguments.application} has processed since is removed from its state; from the earlier offsets it is processed, and its"
            " results are sent, again"
        )
    if topics:
        warnings.append(delete_local_state(arguments.application))
    back = replace(
        plan,
        summary=f"undo: {plan.summary}",
        items=(*_topic_items(services, topics), *_store_items(services, undo), *_commit_items(undo, now)),
        arguments=undo,
        severity=Severity.SEVERE if replaces else plan.severity,
        confirm=arguments.application if replaces else plan.confirm,
        warnings=tuple(warnings),
        notes=(),
    )
    return guarded(services, back)


def _written(services: Services, plan: Plan[StateArguments]) -> StateArguments:
    """Return the arguments of a plan without the contents of stores to whose changelog nothing was appended: it ends where it ended before.

    Changelogs that are recreated keep theirs.
    """
    arguments, before = plan.arguments, plan.guard["changelog_ends"]
    appended = {store.changelog for store in arguments.stores.values() if store.contents} - {change.name for change in arguments.topics}
    ends = log_ends(services, appended & services.kafka.topics.existing(appended).keys())
    moved = {at.topic for at, end in ends.items() if before.get(str(at)) != end}
    stores = {
        name: replace(store, contents={}) if store.changelog in appended - moved else store for name, store in arguments.stores.items()
    }
    return replace(arguments, stores=stores)


def _refuse_after_loss(plan: Plan[StateArguments]) -> None:
    """Refuse to undo a change that lost something: the earlier state no longer fits the current offsets."""
    if plan.losses:
        raise Refused(
            f"this undid a change although the application had moved on: {'; '.join(plan.losses)}",
            hint="`kops state verify` compares its state with its input, and `kops state rebuild` computes it again",
        )


def _refuse_grown(services: Services, arguments: StateArguments) -> None:
    sizes = {name: len(topic.partitions) for name, topic in services.kafka.topics.existing(arguments.grow).items()}
    grown = [name for name, total in arguments.grow.items() if sizes.get(name) == total]
    if grown:
        raise Refused(
            f"{', '.join(grown)} has grown, and Kafka cannot remove partitions: the application cannot go back to fewer",
            hint="its state from before is kept: see `kops journal show`",
        )


def _topics_back(services: Services, arguments: StateArguments, results: Sequence[ItemResult]) -> tuple[TopicChange, ...]:
    """Return the changes that undo the changes of topics, as far as they were made."""
    now = topic_ids(services, arguments.topics) if arguments.topics else {}
    made = {result.target: (result.value or {}).get("topic_id") for result in results if result.target in now}
    back = []
    for change in arguments.topics:
        here = now[change.name]
        if here is not None and here not in (made.get(change.name) or here, change.topic_id):
            raise Refused(f"{change.name} was deleted and created again since", hint="see `kops journal`; there may be a later entry")
        if here is None:
            if change.before:
                back.append(TopicChange(None, change.before))
        elif here != change.topic_id or change.done:
            back.append(change.backwards(here))
    return tuple(back)


def _store_back(engine: Engine | None, store: StoreWrite, before: Sequence[TopicChange], topics: Sequence[TopicChange]) -> StoreWrite:
    """Return a store of the undo: its other stage, nothing where the topic goes or is still as it was, or the same stage backwards.

    :param before: the changes of topics that are undone; ``topics``: the changes that undo them
    """
    if any(change.name == store.changelog for change in before):
        changes = any(change.name == store.changelog for change in topics)
        return replace(
            store,
            stage=store.prior_stage,
            contents=store.prior_contents if changes else {},
            prior_stage=store.stage,
            prior_contents=store.contents,
        )
    if not store.contents or engine is None:
        return store
    return replace(store, backwards=not store.backwards, contents=contents_backwards(engine, store))


def _commits_back(
    arguments: StateArguments, topics: Sequence[TopicChange], now: Mapping[TopicPartition, CommittedOffset]
) -> dict[TopicPartition, CommittedOffset | None]:
    """Return the previous commits; those of a topic that is deleted go with it, and a recreated repartition topic begins at 0."""
    if not arguments.committed_before:
        gone = {change.name for change in topics if change.after is None}
        moved = {at: found for at, found in arguments.prior.items() if offset_of(now.get(at)) != offset_of(found)}
        return {at: found for at, found in moved.items() if at.topic not in gone}
    made = {change.name: change.after for change in topics if change.after}
    back: dict[TopicPartition, CommittedOffset | None] = {}
    for at, found in arguments.committed_before.items():
        if at.topic not in made and (at not in now or now[at].offset != found.offset):
            back[at] = found
    for at in arguments.commit:
        if at not in arguments.committed_before and at.topic not in made:
            back[at] = None
    for name, topic in made.items():
        for number in range(topic.partitions or 0) if name in arguments.repartitions else ():
            known = arguments.committed_before.get(TopicPartition(name, number))
            back[TopicPartition(name, number)] = CommittedOffset(0, (known.metadata if known else "") or "")
    return back


def _topic_items(services: Services, topics: Sequence[TopicChange]) -> list[Item]:
    held = records_of(services, [change.name for change in topics])
    return [change.item(f"as it was before; {held[change.name]}" if change.name in held else "as it was before") for change in topics]


def _store_items(services: Services, undo: StateArguments) -> list[Item]:
    changed = {change.name for change in undo.topics}
    kept = undo.changelogs - changed
    starts = log_starts(undo, {str(at): end for at, end in log_ends(services, kept).items()})
    items = []
    for store in undo.stores.values():
        for number, content in sorted(store.contents.items()):
            at = TopicPartition(store.changelog, number)
            items.append(Item(str(at), "append", starts[at], starts[at] + content["records"], "what it held before"))
    return items


def _commit_items(undo: StateArguments, now: Mapping[TopicPartition, CommittedOffset]) -> list[Item]:
    return [
        Item(str(at), "delete" if found is None else "move", offset_of(now.get(at)), offset_of(found), "where it was before")
        for at, found in undo.commit.items()
    ]

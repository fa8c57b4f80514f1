"""Deleting topics."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from kops.core.errors import KopsError, NotFound, Refused, StateMoved, VerificationFailed
from kops.core.models import Bounds, NewTopic, Setting, Topic, TopicPartition
from kops.core.plan import Item, ItemResult, Plan, Severity, Status
from kops.core.topics.names import is_kafkas_own
from kops.core.topics.settings import own_settings
from kops.operations.protocol.engine import Mutation, failed
from kops.operations.services import Services
from kops.operations.topics.listing import select
from kops.operations.topics.readers import reader_warnings, readers_of
from kops.operations.topics.settle import settled


def plan_delete(services: Services, patterns: Sequence[str], *, regex: bool = False, if_exists: bool = False) -> Plan:
    """Decide what deleting topics would do.

    :param patterns: names, globs, or regular expressions with ``regex``; patterns never match internal topics
    :param if_exists: leave out plain names that do not exist
    :raises NotFound: when a plain name does not exist
    :raises Refused: for the brokers' own topics
    """
    own = [pattern for pattern in patterns if is_kafkas_own(pattern)]
    if own:
        raise Refused(f"{own[0]} belongs to the brokers, which would lose what they know", hint="kops never deletes it")
    wanted = _those_that_exist(services, patterns) if if_exists and not regex else list(patterns)
    found = select(services, wanted, regex=regex) if wanted else {}
    if not found:
        return _plan(services, found, f"no topic matches {', '.join(patterns)}", items=())
    return plan_delete_of(services, found)


def plan_delete_of(services: Services, found: Mapping[str, Topic]) -> Plan:
    """Return the plan that deletes these very topics: others that have their names meanwhile are refused."""
    if not found:
        return _plan(services, found, "the topics are gone already", items=())
    items = delete_items(services, found)
    counts = [item.before["records"] for item in items]
    unknown = any(count is None for count in counts)
    known = sum(count for count in counts if count is not None)
    what = f" with {'at least ' if unknown else ''}{known:,} records" if known or unknown else ", empty"
    summary = f"delete the topic {next(iter(found))}{what}" if len(found) == 1 else f"delete {len(found)} topics{what}"
    return _plan(services, found, summary, items)


def delete_items(services: Services, found: Mapping[str, Topic]) -> tuple[Item, ...]:
    """Return what deleting topics takes away."""
    settings = services.kafka.topics.settings(found)
    records = record_counts(services, found.values())
    return tuple(_delete_item(topic, settings[name], records[name]) for name, topic in found.items())


def _delete_item(topic: Topic, settings: Mapping[str, Setting], records: int | None) -> Item:
    before = {
        "partitions": len(topic.partitions),
        "replication_factor": topic.replication_factor,
        "records": records,
        "settings": own_settings(settings),
    }
    return Item(topic.name, "delete", before=before)


def record_counts(services: Services, topics: Collection[Topic]) -> dict[str, int | None]:
    """Return how many offsets each topic holds, from log start to log end; None where a partition cannot be asked.

    Gaps that compaction left and transaction markers count too, so there may be fewer records.
    """
    partitions = {topic.name: [TopicPartition(topic.name, part.partition) for part in topic.partitions] for topic in topics}
    bounds = services.kafka.offsets.bounds_or_errors([partition for many in partitions.values() for partition in many])
    return {name: _sum([bounds[partition] for partition in many]) for name, many in partitions.items()}


class DeleteTopics(Mutation):
    """Deletes topics, by name, after comparing their ids."""

    name = "topics.delete"

    def check(self, services: Services, plan: Plan) -> None:
        """Refuse when a topic was deleted, or deleted and created again."""
        found = services.kafka.topics.existing(plan.guard)
        moved = [name for name, topic_id in plan.guard.items() if name not in found or found[name].topic_id != topic_id]
        if moved:
            raise StateMoved(
                f"deleted or recreated since the plan was made: {', '.join(moved)}",
                hint="run the command again to plan from what is there now",
            )

    def apply(self, services: Services, plan: Plan) -> Iterator[ItemResult]:
        """Delete them in one request."""
        errors = services.kafka.topics.delete([item.target for item in plan.changes])
        for item in plan.changes:
            error = errors[item.target]
            yield ItemResult(item.target, Status.DONE) if error is None else failed(item, error)

    def verify(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """See that they are gone; one with a new id was created by somebody else meanwhile."""

        def look() -> tuple[ItemResult, ...]:
            found = services.kafka.topics.existing(result.target for result in results)
            return tuple(verified_deletion(result, plan.guard.get(result.target), found.get(result.target)) for result in results)

        return settled(look)

    def resume(self, services: Services, plan: Plan) -> Plan:
        """Return the plan that deletes those that are still there; one that was recreated is left alone."""
        found = services.kafka.topics.existing(plan.guard)
        return plan_delete_of(services, {name: topic for name, topic in found.items() if topic.topic_id == plan.guard[name]})

    def invert(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> Plan:
        """Return the plan that creates them again, empty: their records are gone."""
        from kops.operations.topics.create import plan_create_topics

        not_done = {result.target for result in results if result.status in (Status.FAILED, Status.SKIPPED)}
        items = [item for item in plan.changes if item.target not in not_done]
        still = services.kafka.topics.existing(item.target for item in items)
        gone = [item for item in items if item.target not in still]
        if not gone:
            raise Refused("the topics exist, so there is nothing to undo", topics=list(still))
        return plan_create_topics(services, [topic_again(item) for item in gone], warnings=what_stays_lost(gone))

    def messages(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002 - the contract
        """Say what undo cannot do."""
        if not any(item.before["records"] for item in plan.changes):
            return ()
        return ("undo makes the topics again with the same settings; their records do not come back",)


DELETE = DeleteTopics()


def topic_again(item: Item) -> NewTopic:
    """Return a deleted topic as it was, to be created again."""
    return NewTopic(item.target, item.before["partitions"], item.before["replication_factor"], item.before["settings"])


def _plan(services: Services, found: Mapping[str, Topic], summary: str, items: tuple[Item, ...]) -> Plan:
    names = list(found)
    warnings = reader_warnings(readers_of(services, names), names) if names else []
    return Plan(
        operation=DELETE.name,
        summary=summary,
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=items,
        severity=Severity.SEVERE,
        confirm=names[0] if len(names) == 1 else f"{len(names)} topics",
        guard={name: topic.topic_id for name, topic in found.items()},
        warnings=tuple(warnings),
    )


def _those_that_exist(services: Services, patterns: Sequence[str]) -> list[str]:
    existing = set(services.kafka.topics.names())
    return [pattern for pattern in patterns if pattern in existing or set(pattern) & set("*?[")]


def what_stays_lost(items: Sequence[Item]) -> list[str]:
    """Return a warning about the records of topics that are made again."""
    lost = [f"{item.target} ({item.before['records']:,})" for item in items if item.before["records"]]
    return [f"the records that were deleted do not come back: {', '.join(lost)}"] if lost else []


def verified_deletion(result: ItemResult, planned_id: str | None, found: Topic | None) -> ItemResult:
    """Return the result of deleting a topic after looking for it."""
    if result.status not in (Status.DONE, Status.UNKNOWN):
        if (result.error or {}).get("code") == NotFound.slug and found is None:
            return ItemResult(result.target, Status.DONE)  # somebody else was faster; it is gone
        return result
    if found is None or found.topic_id != planned_id:
        return ItemResult(result.target, Status.DONE)
    if result.status is Status.UNKNOWN:
        return result
    error = VerificationFailed(f"topic {result.target} is still there", hint="`kops topics describe` shows it")
    return ItemResult(result.target, Status.FAILED, error=error.as_json())


def _sum(bounds: Sequence[Bounds | KopsError]) -> int | None:
    known = [bound.log_end_offset - bound.log_start_offset for bound in bounds if isinstance(bound, Bounds)]
    return sum(known) if len(known) == len(bounds) else None

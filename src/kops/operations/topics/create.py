"""Creating topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from kops.core.errors import AlreadyExists, AuthorizationFailed, Refused, StateMoved
from kops.core.models import NewTopic, Topic
from kops.core.plan import Item, ItemResult, Plan, Status
from kops.core.topics.names import colliding, require_names
from kops.core.topics.request import Wish, wished_settings
from kops.core.topics.settings import broker_defaults, canonical_settings, own_settings
from kops.core.topics.warnings import Effective, warnings_for
from kops.operations.protocol.aftermath import Traces
from kops.operations.protocol.engine import Mutation, failed
from kops.operations.services import Services
from kops.operations.topics.created import differences_of, raise_refusals, verified_creation
from kops.operations.topics.delete import plan_delete_of
from kops.operations.topics.settle import settled


def plan_create(services: Services, names: Sequence[str], wish: Wish, *, if_not_exists: bool = False) -> Plan:
    """Decide what creating topics would do; the brokers have checked it too.

    :raises UsageProblem: for a name or setting that Kafka does not take
    :raises AlreadyExists: when a topic is there, unless ``if_not_exists``
    :raises NotFound: when the topic to be made like does not exist
    """
    wanted = list(dict.fromkeys(names))
    require_names(wanted)
    wish = replace(wish, settings=canonical_settings(wish.settings, also_known=lambda: names_the_brokers_know(services)))
    settings = wished_settings(wish)
    if wish.like is not None:
        model = services.kafka.topics.describe([wish.like])[wish.like]
        inherited = own_settings(services.kafka.topics.settings([wish.like])[wish.like])
        settings = wished_settings(wish, {name: value for name, value in inherited.items() if "throttled" not in name})
        partitions = wish.partitions or len(model.partitions)
        wish = replace(wish, partitions=partitions, replication_factor=wish.replication_factor or model.replication_factor)
    topics = [NewTopic(name, wish.partitions, wish.replication_factor, settings) for name in wanted]
    return plan_create_topics(services, topics, if_not_exists=if_not_exists)


def plan_create_topics(
    services: Services, topics: Sequence[NewTopic], *, if_not_exists: bool = False, warnings: Sequence[str] = ()
) -> Plan:
    """Return the plan for topics that differ from each other; see :func:`plan_create`."""
    existing = services.kafka.topics.names()
    present = services.kafka.topics.existing(topic.name for topic in topics if topic.name in set(existing))
    if present and not if_not_exists:
        plural = "topics exist" if len(present) > 1 else "topic exists"
        raise AlreadyExists(
            f"the {plural} already: {', '.join(present)}",
            hint="--if-not-exists leaves those that exist as they are, and says where they differ",
            topics=list(present),
        )
    creation = prepare_creation(services, [topic for topic in topics if topic.name not in present], existing)
    kept, differing = _existing_items(services, [topic for topic in topics if topic.name in present], present)
    return Plan(
        operation=CREATE.name,
        summary=_summary(creation.topics, list(present)),
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=(*creation.items, *kept),
        guard={"absent": [topic.name for topic in creation.topics]},
        arguments={"topics": [new_topic_json(topic) for topic in creation.topics]},
        warnings=(*warnings, *differing, *creation.warnings),
    )


@dataclass(frozen=True)
class Creation:
    """Topics to be created, as the brokers would take them.

    :param topics: with the brokers' defaults in place of what was not given
    """

    topics: tuple[NewTopic, ...] = ()
    items: tuple[Item, ...] = ()
    warnings: tuple[str, ...] = ()


def prepare_creation(services: Services, absent: Sequence[NewTopic], existing: Sequence[str]) -> Creation:
    """Return what creating topics would do; the brokers have checked it.

    :param absent: topics that do not exist
    :param existing: the names of all that do
    :raises Refused: when a name would collide with an existing one
    """
    if not absent:
        return Creation()
    for topic in absent:
        other = colliding(topic.name, existing)
        if other:
            raise Refused(
                f"the topic {topic.name} would collide with {other}: Kafka's metric names turn '.' into '_'", hint="choose another name"
            )
    defaults = _defaults(services)
    resolved = tuple(_resolve(topic, defaults) for topic in absent)
    raise_refusals(services.kafka.topics.create(resolved, validate_only=True))
    brokers = len(services.kafka.cluster().brokers)
    unsafe = warnings_for([_effective(topic, defaults) for topic in resolved], brokers)
    return Creation(resolved, tuple(_create_item(topic, defaults) for topic in resolved), tuple(unsafe))


def new_topic_json(topic: NewTopic) -> dict[str, Any]:
    """Return a topic to be created as JSON; ``NewTopic(**body)`` reads it back."""
    return {**asdict(topic), "settings": dict(topic.settings)}


class CreateTopics(Mutation):
    """Creates topics that do not exist."""

    name = "topics.create"

    def check(self, services: Services, plan: Plan) -> None:
        """Refuse when one of the topics was created meanwhile."""
        there = services.kafka.topics.existing(plan.guard["absent"])
        if there:
            raise StateMoved(
                f"created by somebody else since the plan was made: {', '.join(there)}", hint="run the command again with --if-not-exists"
            )

    def apply(self, services: Services, plan: Plan) -> Iterator[ItemResult]:
        """Create them in one request."""
        errors = services.kafka.topics.create([NewTopic(**topic) for topic in plan.arguments["topics"]])
        for item in plan.changes:
            error = errors[item.target]
            yield ItemResult(item.target, Status.DONE) if error is None else failed(item, error)

    def verify(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Compare partitions, replication factor and settings with what was asked for."""
        wanted = {topic["name"]: NewTopic(**topic) for topic in plan.arguments["topics"]}
        unsure = [result.target for result in results if result.status in (Status.DONE, Status.UNKNOWN)]

        def look() -> tuple[ItemResult, ...]:
            found = services.kafka.topics.existing(unsure)
            settings = services.kafka.topics.settings(found, missing_ok=True)
            return tuple(
                verified_creation(one, wanted[one.target], found.get(one.target), settings.get(one.target, {}))
                if one.target in unsure
                else one
                for one in results
            )

        return settled(look)

    def resume(self, services: Services, plan: Plan) -> Plan:
        """Return the plan that creates those that do not exist yet."""
        return plan_create_topics(services, [NewTopic(**topic) for topic in plan.arguments["topics"]], if_not_exists=True)

    def traces(self, plan: Plan, results: Sequence[ItemResult]) -> Traces:  # noqa: ARG002 - the contract
        """Look at what was created: records may come."""
        return Traces(logs=tuple(result.target for result in results if result.status is Status.DONE))

    def invert(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> Plan:
        """Return the plan that deletes them again, records and all; only the very topics that were created."""
        not_done = {result.target for result in results if result.status in (Status.FAILED, Status.SKIPPED)}
        ids = {result.target: (result.value or {}).get("topic_id") for result in results}
        names = [item.target for item in plan.changes if item.target not in not_done]
        found = services.kafka.topics.existing(names)
        if not found:
            raise Refused("the topics are gone already, so there is nothing to undo", topics=names)
        other = [name for name, topic in found.items() if ids.get(name) not in (None, topic.topic_id)]
        if other:
            raise Refused(f"deleted and created again since: {', '.join(other)}", hint="`kops topics delete` deletes what is there now")
        return plan_delete_of(services, found)


CREATE = CreateTopics()


def _resolve(topic: NewTopic, defaults: Mapping[str, str]) -> NewTopic:
    """Put the brokers' defaults in, so that what is approved is what is asked for."""
    partitions = topic.partitions or _number(defaults.get("num.partitions"))
    return replace(
        topic, partitions=partitions, replication_factor=topic.replication_factor or _number(defaults.get("default.replication.factor"))
    )


def _create_item(topic: NewTopic, defaults: Mapping[str, str]) -> Item:
    after: dict[str, Any] = {
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        "settings": dict(topic.settings),
    }
    after["broker_defaults"] = {name: value for name, value in broker_defaults(defaults).items() if name not in topic.settings}
    return Item(topic.name, "create", after=after)


def _effective(topic: NewTopic, defaults: Mapping[str, str]) -> Effective:
    return Effective(topic.name, topic.replication_factor, {**broker_defaults(defaults), **topic.settings}, topic.settings)


def _existing_items(services: Services, topics: Sequence[NewTopic], present: Mapping[str, Topic]) -> tuple[list[Item], list[str]]:
    settings = services.kafka.topics.settings(present) if present else {}
    items, warnings = [], []
    for topic in topics:
        differences = differences_of(topic, present[topic.name], settings[topic.name])
        items.append(Item(topic.name, "none", reason="; ".join(["exists already", *differences])))
        if differences:
            warnings.append(f"{topic.name} exists and is left unchanged, but differs: {'; '.join(differences)}")
    return items, warnings


def _defaults(services: Services) -> dict[str, str]:
    """Return a broker's settings, where the defaults of topics come from; none when we may not see them."""
    cluster = services.kafka.cluster()
    ids = [broker.id for broker in cluster.brokers]
    broker_id = cluster.controller if cluster.controller in ids else ids[0]
    try:
        settings = services.kafka.topics.broker_settings(broker_id)
    except AuthorizationFailed:
        return {}
    return {name: setting.value for name, setting in settings.items() if setting.value is not None}


def names_the_brokers_know(services: Services) -> set[str]:
    """Return the settings of topics that the brokers know: they may be newer than kops."""
    some = services.kafka.topics.names()[:10]  # one is enough; others may be deleting the rest
    return {name for settings in services.kafka.topics.settings(some, missing_ok=True).values() for name in settings}


def _summary(created: Sequence[NewTopic], present: Sequence[str]) -> str:
    if not created:
        return f"every topic exists already: {', '.join(present)}" if len(present) > 1 else f"the topic {present[0]} exists already"
    return f"create the topic {created[0].name}" if len(created) == 1 else f"create {len(created)} topics"


def _number(text: str | None) -> int | None:
    return int(text) if text else None

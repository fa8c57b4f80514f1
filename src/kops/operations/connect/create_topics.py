"""The topics that connectors lack, as the part of a change of connectors that ``ChangeTopics`` carries out.

Topics are created before connectors are, and deleted after connectors are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kops.core.connect.files import CLASS, DeclaredConnector
from kops.core.connect.topics import DEFAULT_REPLICAS, Brokers, Use, UsedTopic, UsedTopics, replicas_setting, used_topics
from kops.core.errors import NotFound, StateMoved, UsageProblem
from kops.core.findings import counted, names_text
from kops.core.models import NewTopic
from kops.core.plan import ItemResult, Json, Plan, Severity, Status
from kops.core.topics.changes import Changes
from kops.operations.connect.plugins import plugin_type
from kops.operations.connect.topics import TopicLook
from kops.operations.services import Services
from kops.operations.topics.change import CHANGE_TOPICS, written_to
from kops.operations.topics.plan import CREATE, DELETE
from kops.operations.topics.requests import plan_creation

_PREFIX = "topic "
"""Of the targets of topics: a connector may have the name of a topic."""


@dataclass(frozen=True, slots=True)
class TopicPart:
    """The topics that a plan creates, or deletes; the guard is that of a plan of ``topics.create`` or ``topics.delete``."""

    changes: Changes
    guard: Json

    def as_json(self) -> Json:
        return {"changes": self.changes.as_json(), "guard": self.guard}

    @classmethod
    def of_json(cls, body: Json) -> TopicPart:
        return cls(Changes.of_json(body["changes"]), body["guard"])

    @property
    def targets(self) -> frozenset[str]:
        return frozenset(f"{_PREFIX}{name}" for name in self.changes.names)


def with_topics(plan: Plan[Any], topics: Plan[Changes]) -> Plan[Any]:
    """Return the plan of a change of connectors, with topics to create or delete.

    :raises UsageProblem: for a connector whose name is that of an item about a topic
    """
    items = tuple(replace(item, target=f"{_PREFIX}{item.target}") for item in topics.changes)
    both = {item.target for item in items} & {item.target for item in plan.items}
    if both:
        raise UsageProblem(f"a connector is called {min(both)!r}", hint="create the topic by itself, with `kops topics create`")
    deletes = bool(topics.arguments.delete)
    parts = [topics.summary, *([plan.summary] if plan.has_changes else [])]
    return replace(
        plan,
        summary=", ".join(reversed(parts) if deletes else parts),
        items=(*plan.items, *items) if deletes else (*items, *plan.items),
        severity=Severity.SEVERE if Severity.SEVERE in (plan.severity, topics.severity) else Severity.MODERATE,
        confirm=plan.confirm or topics.confirm,
        arguments=replace(plan.arguments, topics=TopicPart(topics.arguments, topics.guard)),
        warnings=(*topics.warnings, *plan.warnings),
        notes=(*topics.notes, *plan.notes),
        losses=tuple(dict.fromkeys((*plan.losses, *topics.losses))),
    )


def topics_of(services: Services, plan: Plan[Any]) -> Plan[Changes] | None:
    """Return the part of a plan that is about topics, as a plan of its own; None if it has none.

    :raises StateMoved: when the brokers are not those that the plan was made for
    """
    part = plan.arguments.topics
    if part is None:
        return None
    if services.kafka.cluster().cluster_id != plan.cluster_id:
        raise StateMoved(
            f"the plan has topics of cluster {plan.cluster_id}, and the brokers of this context belong to another one",
            hint="choose the right context with -c",
        )
    items = tuple(replace(item, target=item.target.removeprefix(_PREFIX)) for item in plan.items if item.target in part.targets)
    return replace(plan, operation=DELETE if part.changes.delete else CREATE, items=items, guard=part.guard, arguments=part.changes)


def results_of(part: TopicPart | None, results: Iterable[ItemResult]) -> tuple[list[ItemResult], list[ItemResult]]:
    """Return the results of topics, by the topics' own names, and those of connectors."""
    targets = part.targets if part else frozenset()
    found = list(results)
    own = [result._replace(target=result.target.removeprefix(_PREFIX)) for result in found if result.target in targets]
    return own, [result for result in found if result.target not in targets]


def named(results: Iterable[ItemResult]) -> Iterator[ItemResult]:
    """Yield results of topics by the targets that they have in a change of connectors."""
    for result in results:
        yield result._replace(target=f"{_PREFIX}{result.target}")


def skipped(targets: Iterable[str], why: str) -> Iterator[ItemResult]:
    for target in targets:
        yield ItemResult(target, Status.SKIPPED, error={"code": "skipped", "message": f"left alone, as not every {why}"})


def undo_topics(services: Services, plan: Plan[Any], results: Sequence[ItemResult]) -> Plan[Changes] | None:
    """Plan to undo what a plan did to topics; None if there is nothing to undo.

    :raises Refused: for a topic that was recreated since, or that others created
    """
    topics = topics_of(services, plan)
    if topics is None:
        return None
    undo = CHANGE_TOPICS.inverse(services, topics, results_of(plan.arguments.topics, results)[0])
    if undo is None:
        return None
    there = services.kafka.topics.existing(undo.arguments.delete)
    return replace(undo, losses=tuple(dict.fromkeys((*undo.losses, *written_to(services, list(there.values()))))))


@dataclass(frozen=True)
class _Wanted:
    """A topic to create, with the connector that uses it."""

    connector: str
    topic: UsedTopic
    replicas: int | None
    why: str


def plan_needed(services: Services, declared: Sequence[DeclaredConnector], look: TopicLook) -> tuple[Plan[Changes] | None, tuple[str, ...]]:
    """Plan to create the topics that connectors use and that do not exist, except those that Connect or the brokers create for a source.

    :returns: the plan, None if no topic is missing; and what should be known about it
    :raises KopsError: when it cannot be seen which topics exist
    :raises UsageProblem: for more replicas than there are brokers
    """
    used: dict[str, UsedTopics] = {}
    for each in declared:
        try:
            used[each.name] = used_topics(plugin_type(services, each.config[CLASS]), each.config)
        except NotFound as unknown:  # which validation reports
            look.gaps[each.name] = unknown.message
    missing = {name: look.missing(name, topics) for name, topics in used.items()}
    if look.problem is not None:
        raise look.problem
    if not any(missing.values()):
        return None, ()
    brokers, configs = look.brokers(), {each.name: each.config for each in declared}
    left = {one.name for some in missing.values() for one in some if one.use is Use.WRITES and _is_created(one, brokers)}
    wanted: dict[str, list[_Wanted]] = {}
    for name, some in missing.items():
        for one in some:
            if one.name not in left:
                wanted.setdefault(one.name, []).append(_Wanted(name, one, *_replicas(name, one, configs[name], brokers)))
    notes = [f"{names_text(sorted(left))}: created when a source writes there, by Connect or the brokers"] if left else []
    if not wanted:
        return None, tuple(notes)
    numbers = {name: max((one.replicas for one in some if one.replicas), default=None) for name, some in wanted.items()}
    plan = plan_creation(services, [NewTopic(name, None, number, {}) for name, number in numbers.items()], {})
    items = tuple(replace(item, reason=_reason(wanted[item.target], numbers[item.target])) for item in plan.items)
    return replace(plan, items=items), tuple(notes)


def _is_created(one: UsedTopic, brokers: Brokers) -> bool:
    """Whether the topic of a source is created when the source writes to it."""
    return bool(brokers.create) if one.replicas is None else one.replicas <= brokers.number


def _replicas(connector: str, one: UsedTopic, config: Any, brokers: Brokers) -> tuple[int | None, str]:
    """Return the replication factor of a topic, None for the brokers' default, and what decides it."""
    setting = replicas_setting(one.use)
    if one.replicas is None or one.replicas < 0:
        return None, "the brokers' default"
    if setting in config:
        if one.replicas > brokers.number:
            text = f"{connector}: {setting}: {one.name} cannot be created with {counted(one.replicas, 'replica')}"
            raise UsageProblem(f"{text} on {counted(brokers.number, 'broker')}", hint=f"set {setting}={brokers.number}")
        return one.replicas, setting
    few = f", of which {counted(brokers.number, 'broker')} can hold {brokers.number}" if brokers.number < DEFAULT_REPLICAS else ""
    return min(one.replicas, brokers.number), f"Connect's default of {DEFAULT_REPLICAS}{few}"


def _reason(wanted: Sequence[_Wanted], replicas: int | None) -> str:
    users = names_text([f"{one.topic.setting} of {one.connector}" for one in wanted])
    why = next(one.why for one in wanted if one.replicas == replicas)
    if replicas is None:
        return f"{users}; partitions and replication factor: {why}"
    return f"{users}; partitions: the brokers' default; replication factor: {why}"

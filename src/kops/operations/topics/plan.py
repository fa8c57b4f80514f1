"""The only planner of changes to topics, which creates, alters, grows and deletes them together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kops.core.errors import AuthorizationFailed, KopsError, Refused
from kops.core.findings import counted
from kops.core.models import Bounds, NewTopic, Setting, Topic
from kops.core.plan import CANNOT, Item, Plan, Severity
from kops.core.settings import Settings, alteration, own_settings, still_to_alter, value_after
from kops.core.topics.changes import Changes
from kops.core.topics.names import colliding
from kops.core.topics.settings import broker_defaults
from kops.core.topics.warnings import EffectiveSettings, change_warnings, warnings_for
from kops.operations.services import Services
from kops.operations.topics.impact import expiry_warnings, reader_warnings, readers_of

CHANGE, CREATE, DELETE = "topics.change", "topics.create", "topics.delete"
"""The operations of the one mutation: changes of every kind, and the commands that only create or only delete."""
UP_TO_DATE = "already set"

SettingsByTopic = Mapping[str, Mapping[str, Setting]]


def plan_changes(
    services: Services,
    changes: Changes,
    *,
    operation: str = CHANGE,
    found: Mapping[str, Topic] | None = None,
    unchanged: Mapping[str, str] | None = None,
    cannot: Mapping[str, str] | None = None,
    nothing: str = "",
    warnings: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Plan[Changes]:
    """Plan changes to topics, after the brokers have validated them.

    :param found: topics to alter, grow or delete, as read by the caller; if they are recreated meanwhile, the plan is refused
    :param unchanged: topics to show as unchanged, with the reason
    :param cannot: topics to show as not as requested, with the reason why they stay
    :param nothing: the summary if there is nothing to change; empty: derived from the topics
    :raises NotFound: when a topic to be altered, grown or deleted does not exist
    :raises Refused: when the name of a new topic would collide with an existing one
    :raises UsageProblem: for what the brokers refuse
    """
    kafka = services.kafka.topics
    topics = {**kafka.describe(name for name in (*changes.altered, *changes.delete) if name not in (found or {})), **(found or {})}
    settings = kafka.settings((*changes.altered, *changes.delete))
    same = dict.fromkeys(changes.altered, UP_TO_DATE)
    changes = _still_to_change(changes, topics, settings)
    same = {name: reason for name, reason in same.items() if name not in changes.altered} | dict(unchanged or {})
    raise_refusals(kafka.alter(changes.alter, validate_only=True))
    raise_refusals(kafka.add_partitions(changes.grow, validate_only=True))
    creation = prepare_creation(services, changes.create)
    changes = replace(changes, create=creation.topics)
    deletions = _deletions(services, [topics[name] for name in changes.delete], settings)
    readers = reader_warnings(readers_of(services, changes.delete), changes.delete) if changes.delete else []
    return Plan(
        operation=operation,
        summary=_summary(changes, deletions, nothing, same, cannot or {}),
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=(
            *creation.items,
            *(_alteration(changes, topics[name], settings[name]) for name in changes.altered),
            *deletions,
            *(Item(name, "none", reason=reason) for name, reason in same.items()),
            *(Item(name, CANNOT, reason=reason) for name, reason in (cannot or {}).items()),
        ),
        severity=Severity.SEVERE if changes.delete else Severity.MODERATE,
        confirm="" if not changes.delete else changes.delete[0] if len(changes.delete) == 1 else f"{len(changes.delete)} topics",
        guard=guard_of(changes, topics, settings),
        arguments=changes,
        warnings=(*warnings, *creation.warnings, *_unsafe(services, changes, topics, settings), *readers),
        notes=(*notes, *(["Kafka cannot remove partitions: undo leaves them"] if changes.grow else [])),
    )


def guard_of(changes: Changes, found: Mapping[str, Topic], settings: SettingsByTopic) -> dict[str, Any]:
    """Return the state that the changes are computed from: what they touch, and nothing else.

    :param found: the topics that exist
    """
    topics = {}
    for name in (*changes.altered, *changes.delete):
        if name in found:
            own = own_settings(settings[name]) if name in changes.alter else {}
            topics[name] = {
                "topic_id": found[name].topic_id,
                "partitions": len(found[name].partitions),
                "settings": {setting: own.get(setting) for setting in changes.alter.get(name, ())},
            }
    return {"absent": list(changes.created), "topics": topics}


@dataclass(frozen=True)
class Creation:
    """Topics to be created, as the brokers will create them.

    :param topics: with the brokers' defaults for what was not given
    """

    topics: tuple[NewTopic, ...] = ()
    items: tuple[Item, ...] = ()
    warnings: tuple[str, ...] = ()


def prepare_creation(services: Services, absent: Sequence[NewTopic]) -> Creation:
    """Prepare the creation of topics, after the brokers have validated it.

    :param absent: topics that do not exist
    :raises Refused: when a name would collide with an existing one
    """
    if not absent:
        return Creation()
    existing = services.kafka.topics.names()
    for topic in absent:
        other = colliding(topic.name, existing)
        if other:
            raise Refused(
                f"the topic {topic.name} would collide with {other}: Kafka's metric names turn '.' into '_'", hint="choose another name"
            )
    defaults = _defaults(services)
    resolved = tuple(_resolved(topic, defaults) for topic in absent)
    raise_refusals(services.kafka.topics.create(resolved, validate_only=True))
    brokers = len(services.kafka.cluster().brokers)
    effective = [
        EffectiveSettings(topic.name, topic.replication_factor, {**broker_defaults(defaults), **topic.settings}, topic.settings)
        for topic in resolved
    ]
    return Creation(resolved, tuple(_creation(topic, defaults) for topic in resolved), tuple(warnings_for(effective, brokers)))


def on_this_cluster(services: Services, origin: str, topics: Sequence[NewTopic]) -> list[NewTopic]:
    """Return topics to be created; of another cluster with at most as many replicas as this one has brokers.

    :param origin: id of the cluster that they come from
    """
    cluster = services.kafka.cluster()
    if cluster.cluster_id == origin:
        return list(topics)
    return [replace(topic, replication_factor=min(topic.replication_factor or 1, len(cluster.brokers))) for topic in topics]


def recreated(found: Mapping[str, Topic], ids: Mapping[str, str | None]) -> list[str]:
    """Return the topics that no longer exist, or have another id."""
    return [name for name, topic_id in ids.items() if name not in found or found[name].topic_id != topic_id]


def raise_refusals(answers: Mapping[str, KopsError | None]) -> None:
    """Raise the first of the brokers' refusals, with the others in its details."""
    errors = {name: error for name, error in answers.items() if error is not None}
    if not errors:
        return
    first = next(iter(errors.values()))
    if len(errors) > 1:
        first.message += f" (and {len(errors) - 1} more of the topics were refused)"
        first.details["refused"] = {name: error.message for name, error in errors.items()}
    raise first


def _still_to_change(changes: Changes, found: Mapping[str, Topic], settings: SettingsByTopic) -> Changes:
    altered = {name: left for name, target in changes.alter.items() if (left := still_to_alter(settings[name], target))}
    return replace(changes, alter=altered, grow={name: n for name, n in changes.grow.items() if n != len(found[name].partitions)})


def _defaults(services: Services) -> dict[str, str]:
    """Return the settings of a broker, which has the defaults for topics; empty if they may not be described."""
    cluster = services.kafka.cluster()
    ids = [broker.id for broker in cluster.brokers]
    broker_id = cluster.controller if cluster.controller in ids else ids[0]
    try:
        settings = services.kafka.topics.broker_settings(broker_id)
    except AuthorizationFailed:
        return {}
    return {name: setting.value for name, setting in settings.items() if setting.value is not None}


def _resolved(topic: NewTopic, defaults: Mapping[str, str]) -> NewTopic:
    """Fill in the brokers' defaults, so that what is approved is exactly what is requested."""
    partitions = topic.partitions or _number(defaults.get("num.partitions"))
    replicas = topic.replication_factor or _number(defaults.get("default.replication.factor"))
    return replace(topic, partitions=partitions, replication_factor=replicas)


def _number(text: str | None) -> int | None:
    return int(text) if text else None


def _creation(topic: NewTopic, defaults: Mapping[str, str]) -> Item:
    after = {
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        "settings": dict(topic.settings),
        "broker_defaults": {name: value for name, value in broker_defaults(defaults).items() if name not in topic.settings},
    }
    return Item(topic.name, "create", after=after)


def _alteration(changes: Changes, topic: Topic, settings: Mapping[str, Setting]) -> Item:
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    if topic.name in changes.grow:
        before["partitions"], after["partitions"] = len(topic.partitions), changes.grow[topic.name]
    target = changes.alter.get(topic.name, {})
    if target:
        old, new = alteration(settings, target)
        before, after = before | old, after | new
    return Item(topic.name, "alter" if target else "add partitions", before, after)


def _deletions(services: Services, doomed: Sequence[Topic], settings: SettingsByTopic) -> tuple[Item, ...]:
    """Return an item per topic to delete, with what is lost.

    ``records`` counts from log start to log end, including gaps that compaction left and transaction markers; None unless every partition
    could be read.
    """
    if not doomed:
        return ()
    bounds = services.kafka.offsets.bounds_or_errors([place for topic in doomed for place in topic.places])
    items = []
    for topic in doomed:
        known = [bound for place in topic.places if isinstance(bound := bounds[place], Bounds)]
        records = sum(bound.offsets for bound in known)
        before = {
            "partitions": len(topic.partitions),
            "replication_factor": topic.replication_factor,
            "records": records if len(known) == len(topic.partitions) else None,
            "settings": own_settings(settings[topic.name]),
        }
        items.append(Item(topic.name, "delete", before=before))
    return tuple(items)


def _unsafe(services: Services, changes: Changes, found: Mapping[str, Topic], settings: SettingsByTopic) -> Iterable[str]:
    if not changes.alter:
        return []
    pairs = [
        (_effective(found[name], settings[name], {}), _effective(found[name], settings[name], target))
        for name, target in changes.alter.items()
    ]
    topics = [found[name] for name in changes.alter]
    return [*change_warnings(pairs, len(services.kafka.cluster().brokers)), *expiry_warnings(services, topics, pairs)]


def _effective(topic: Topic, settings: Mapping[str, Setting], target: Settings) -> EffectiveSettings:
    values = {name: setting.value for name, setting in settings.items()} | {
        name: value_after(settings, name, value) for name, value in target.items()
    }
    given = {name: value for name, value in {**own_settings(settings), **target}.items() if value is not None}
    return EffectiveSettings(
        topic.name, topic.replication_factor, {name: value for name, value in values.items() if value is not None}, given
    )


def _summary(changes: Changes, deletions: Sequence[Item], nothing: str, same: Mapping[str, str], cannot: Mapping[str, str]) -> str:
    parts = [
        f"{verb} {_topics(names)}"
        for verb, names in (("create", changes.created), ("alter", tuple(changes.alter)), ("add partitions to", tuple(changes.grow)))
        if names
    ]
    if deletions:
        parts.append(f"delete {_topics(changes.delete)}{_with_records(deletions)}")
    return ", ".join(parts) or nothing or _as_it_is(same, cannot)


def _with_records(deletions: Sequence[Item]) -> str:
    counts = [item.before["records"] for item in deletions]
    known = sum(count for count in counts if count is not None)
    unknown = None in counts
    return f" with {'at least ' if unknown else ''}{counted(known, 'record')}, which cannot be restored" if known or unknown else ", empty"


def _as_it_is(same: Mapping[str, str], cannot: Mapping[str, str]) -> str:
    other = [*cannot, *(name for name, reason in same.items() if reason != UP_TO_DATE)]
    if other:
        return f"{_topics(other)} {'is' if len(other) == 1 else 'are'} different, which cannot be changed here"
    return f"{_topics(list(same))} {'is' if len(same) == 1 else 'are'} already as declared" if same else "there is nothing to change"


def _topics(names: Sequence[str]) -> str:
    return f"the topic {names[0]}" if len(names) == 1 else f"{len(names)} topics"

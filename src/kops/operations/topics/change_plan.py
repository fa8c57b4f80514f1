"""Plans that create, alter, grow and delete topics together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kops.core.models import Setting, Topic
from kops.core.plan import Item, Plan, Severity
from kops.core.topics.change import Changes, Settings, source_after, still_to_alter, value_after
from kops.core.topics.settings import own_settings
from kops.core.topics.warnings import Effective, change_warnings
from kops.operations.services import Services
from kops.operations.topics.create import prepare_creation
from kops.operations.topics.created import raise_refusals
from kops.operations.topics.delete import delete_items
from kops.operations.topics.losses import expiry_warnings
from kops.operations.topics.readers import reader_warnings, readers_of

NAME = "topics.change"
AS_WANTED = "already set"


def plan_changes(
    services: Services,
    changes: Changes,
    *,
    summary: str = "",
    unchanged: Mapping[str, str] | None = None,
    warnings: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Plan:
    """Return the plan for changes; the brokers have checked them.

    :param summary: of what was asked for; told from the changes when empty
    :param unchanged: topics to show that are left alone, and why
    :raises NotFound: when a topic to be altered, grown or deleted does not exist
    :raises UsageProblem: for what the brokers refuse
    """
    kafka = services.kafka.topics
    found = kafka.describe((*changes.altered, *changes.delete))
    settings = kafka.settings(found)
    changes = _without_done(changes, found, settings)
    raise_refusals(kafka.alter(changes.alter, validate_only=True))
    raise_refusals(kafka.add_partitions(changes.grow, validate_only=True))
    creation = prepare_creation(services, changes.create, kafka.names())
    changes = replace(changes, create=creation.topics)
    same = {name: AS_WANTED for name in found if name not in changes.altered and name not in changes.delete} | dict(unchanged or {})
    doomed = {name: found[name] for name in changes.delete}
    readers = reader_warnings(readers_of(services, doomed), changes.delete) if doomed else []
    return Plan(
        operation=NAME,
        summary=_summary(changes, summary, same),
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=(
            *creation.items,
            *(_item(changes, found[name], settings[name]) for name in changes.altered),
            *(delete_items(services, doomed) if doomed else ()),
            *(Item(name, "none", reason=reason) for name, reason in same.items()),
        ),
        severity=Severity.SEVERE if doomed else Severity.MODERATE,
        confirm="" if not doomed else changes.delete[0] if len(doomed) == 1 else f"{len(doomed)} topics",
        guard=guard_of(changes, found, settings),
        arguments=changes.as_json(),
        warnings=(*warnings, *creation.warnings, *_unsafe(services, changes, found, settings), *readers),
        notes=(*notes, *_one_way(changes)),
    )


def guard_of(changes: Changes, found: Mapping[str, Topic], settings: Mapping[str, Mapping[str, Setting]]) -> dict[str, Any]:
    """Return the state that the changes are computed from: what they touch, and nothing else.

    :param found: those of the topics that exist
    """
    topics = {}
    for name in (*changes.altered, *changes.delete):
        if name in found:
            own = own_settings(settings[name])
            topics[name] = {
                "topic_id": found[name].topic_id,
                "partitions": len(found[name].partitions),
                "settings": {setting: own.get(setting) for setting in changes.alter.get(name, ())},
            }
    return {"absent": [topic.name for topic in changes.create], "topics": topics}


def _without_done(changes: Changes, found: Mapping[str, Topic], settings: Mapping[str, Mapping[str, Setting]]) -> Changes:
    altered = {name: left for name, wanted in changes.alter.items() if (left := still_to_alter(settings[name], wanted))}
    return replace(changes, alter=altered, grow={name: n for name, n in changes.grow.items() if n != len(found[name].partitions)})


def _item(changes: Changes, topic: Topic, settings: Mapping[str, Setting]) -> Item:
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    if topic.name in changes.grow:
        before["partitions"], after["partitions"] = len(topic.partitions), changes.grow[topic.name]
    wanted = changes.alter.get(topic.name, {})
    if wanted:
        now = {name: settings[name].value if name in settings else None for name in wanted}
        before["settings"], after["settings"] = now, {name: value_after(settings, name, value) for name, value in wanted.items()}
        before["sources"] = {name: settings[name].source if name in settings else None for name in wanted}
        after["sources"] = {name: source_after(settings, name, value) for name, value in wanted.items()}
    return Item(topic.name, "alter" if wanted else "add partitions", before, after)


def _unsafe(
    services: Services, changes: Changes, found: Mapping[str, Topic], settings: Mapping[str, Mapping[str, Setting]]
) -> Iterable[str]:
    if not changes.alter:
        return []
    pairs = [
        (_effective(found[name], settings[name], {}), _effective(found[name], settings[name], changes.alter[name]))
        for name in changes.alter
    ]
    topics = [found[name] for name in changes.alter]
    return [*change_warnings(pairs, len(services.kafka.cluster().brokers)), *expiry_warnings(services, topics, pairs)]


def _effective(topic: Topic, settings: Mapping[str, Setting], wanted: Settings) -> Effective:
    values = {name: setting.value for name, setting in settings.items()} | {
        name: value_after(settings, name, value) for name, value in wanted.items()
    }
    given = {name: value for name, value in {**own_settings(settings), **wanted}.items() if value is not None}
    return Effective(topic.name, topic.replication_factor, {name: value for name, value in values.items() if value is not None}, given)


def _one_way(changes: Changes) -> list[str]:
    if not changes.grow:
        return []
    return ["Kafka never takes partitions away again: undo leaves them"]


def _summary(changes: Changes, given: str, same: Mapping[str, str]) -> str:
    parts = [
        f"{verb} {_topics(names)}"
        for verb, names in (
            ("create", [topic.name for topic in changes.create]),
            ("alter", list(changes.alter)),
            ("add partitions to", list(changes.grow)),
            ("delete", list(changes.delete)),
        )
        if names
    ]
    if not parts:
        return given or _as_it_is(same)
    text = ", ".join(parts)
    return f"{given}: {text}" if given else text


def _as_it_is(same: Mapping[str, str]) -> str:
    other = [name for name, reason in same.items() if reason != AS_WANTED]
    if other:
        return f"{_topics(other)} {'is' if len(other) == 1 else 'are'} different, which cannot be changed here"
    return f"{_topics(list(same))} {'is' if len(same) == 1 else 'are'} already as declared" if same else "there is nothing to change"


def _topics(names: Sequence[str]) -> str:
    return f"the topic {names[0]}" if len(names) == 1 else f"{len(names)} topics"

"""`kops groups config` and `alter`: settings of groups (KIP-848, KIP-932), which override those of the brokers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kops.core.errors import KopsError, answer_or_error
from kops.core.groups.dead_letters import COPY, TOPIC, dead_letter_warnings
from kops.core.models import Setting
from kops.core.plan import Plan
from kops.core.rights import reason
from kops.core.settings import GROUP, SettingsChange, requested, require_known
from kops.core.topics.settings import in_kafkas_unit
from kops.operations.services import Services
from kops.operations.settings.change import describe, plan_settings


def setting_rows(services: Services, groups: Sequence[str], problems: dict[str, KopsError], *, everything: bool) -> list[dict[str, Any]]:
    """Return a row per setting of groups; a group need not exist to have some.

    :param everything: include those that only the brokers set
    :param problems: receives why the settings of a group are not known
    """
    rows = []
    for name, found in services.kafka.settings.describe_or_errors(GROUP, groups).items():
        if isinstance(found, KopsError):
            problems[name] = found
            continue
        for key, one in sorted(found.items()):
            if everything or one.source == GROUP:
                rows.append({"group": name, "name": key, "value": one.value, "source": one.source})
    return rows


def plan_alter(services: Services, group_id: str, settings: Mapping[str, str], remove: Sequence[str]) -> Plan[SettingsChange]:
    """Plan to change settings of a group, after the brokers have validated them.

    :raises UsageProblem: for a setting that groups do not have, and for a value that the brokers refuse
    """
    target = requested(settings, remove, lambda given: {name: in_kafkas_unit(name, text.strip()) for name, text in given.items()})
    now = describe(services, GROUP, [group_id])[group_id]
    require_settings(target, now)
    plan = plan_settings(services, GROUP, {group_id: target})
    if not target.keys() & {TOPIC, COPY}:
        return plan
    defaults = {COPY: "false"}
    changed = {name: defaults.get(name) if value is None else value for name, value in target.items()}
    after = {name: one.value for name, one in now.items()} | changed
    return replace(plan, warnings=(*plan.warnings, *_dead_letters(services, after)))


def require_settings(names: Iterable[str], found: Mapping[str, Setting]) -> None:
    """Check that groups have such settings.

    :param found: all settings of a group
    :raises UsageProblem: for one that they do not have
    """
    require_known(names, found, "group", hint="`kops groups config --all` shows the names")


def _dead_letters(services: Services, settings: Mapping[str, str | None]) -> Iterator[str]:
    """Say where the dead letters of a share group would be lost, and what of that could not be looked at."""
    topic = settings.get(TOPIC)
    if not topic:
        return
    broker = answer_or_error(lambda: services.kafka.topics.broker_settings(services.kafka.cluster().brokers[0].id))
    found = answer_or_error(lambda: services.kafka.topics.settings([topic], missing_ok=True))
    for what, answer in (("the brokers", broker), (f"topic {topic}", found)):
        if isinstance(answer, KopsError):
            yield f"whether dead letters are written is not known: the settings of {what} could not be read ({reason(answer)})"
    of_broker = {} if isinstance(broker, KopsError) else {name: one.value for name, one in broker.items()}
    if isinstance(found, KopsError):
        of_topic: Mapping[str, str | None] | None = {}
    else:
        of_topic = {name: one.value for name, one in found[topic].items()} if topic in found else None
    yield from dead_letter_warnings(settings, of_topic, of_broker)

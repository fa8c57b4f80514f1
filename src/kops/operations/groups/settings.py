"""`kops groups config` and `alter`: settings of groups (KIP-848, KIP-932), which override those of the brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kops.core.errors import KopsError
from kops.core.models import Setting
from kops.core.plan import Plan
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
    require_settings(target, describe(services, GROUP, [group_id])[group_id])
    return plan_settings(services, GROUP, {group_id: target})


def require_settings(names: Iterable[str], found: Mapping[str, Setting]) -> None:
    """Check that groups have such settings.

    :param found: all settings of a group
    :raises UsageProblem: for one that they do not have
    """
    require_known(names, found, "group", hint="`kops groups config --all` shows the names")

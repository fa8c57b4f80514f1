"""Settings of brokers: which apply and where they come from, and those that can be changed while a broker runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kops.core.errors import KopsError, NotFound, Refused, UsageProblem
from kops.core.models import Setting
from kops.core.plan import Plan
from kops.core.settings import BROKER, DEFAULT_BROKER, SettingsChange, requested, require_known
from kops.core.topics.settings import in_kafkas_unit
from kops.operations.cluster.describe import brokers
from kops.operations.services import Services
from kops.operations.settings.change import describe, plan_settings

DEFAULT = "default"


def brokers_named(services: Services, ids: Sequence[int]) -> list[int]:
    """Return brokers by their ids, all in service for none.

    :raises NotFound: for a broker that is not in service
    """
    known = [broker.id for broker in services.kafka.cluster().brokers]
    missing = [broker for broker in ids if broker not in known]
    if missing:
        raise NotFound(f"no broker {missing[0]} is in service", hint=f"in service: {', '.join(map(str, known))}; see `kops brokers list`")
    return list(dict.fromkeys(ids)) or known


def setting_rows(services: Services, ids: Sequence[int], *, everything: bool) -> tuple[list[dict[str, Any]], dict[str, KopsError]]:
    """Return a row per setting of each broker, or of all brokers together where they agree, and the brokers that did not answer.

    :param ids: of brokers; empty: all
    :param everything: include settings that have Kafka's default
    """
    found = services.kafka.settings.describe_or_errors(BROKER, map(str, brokers_named(services, ids)))
    known = {name: one for name, one in found.items() if not isinstance(one, KopsError)}
    rows: list[dict[str, Any]] = []
    for name in sorted({name for settings in known.values() for name in settings}):
        by_value: dict[tuple[Any, ...], list[int]] = {}
        for broker, settings in known.items():
            if name in settings:
                by_value.setdefault(_shown(settings[name]), []).append(int(broker))
        for (value, source, sensitive, read_only), holders in by_value.items():
            if everything or source != DEFAULT:
                where = {"brokers": holders, "name": name, "value": value, "source": source}
                rows.append(where | {"sensitive": sensitive, "needs_restart": read_only})
    return rows, {name: one for name, one in found.items() if isinstance(one, KopsError)}


def describe_broker(services: Services, broker: int) -> tuple[dict[str, Any], Mapping[str, KopsError]]:
    """Return the row of a broker with the settings that were changed while it runs, and the errors of requests that failed.

    :raises NotFound: for a broker that neither the cluster nor any partition knows
    """
    rows, gaps = brokers(services)
    found = next((row for row in rows if row["id"] == broker), None)
    if found is None:
        known = ", ".join(str(row["id"]) for row in rows)
        raise NotFound(f"there is no broker {broker}", hint=f"known: {known}; see `kops brokers list`")
    settings, problems = setting_rows(services, [broker], everything=False) if found["in_service"] else ([], {})
    changed = [row for row in settings if row["source"] in (BROKER, "broker default")]
    return {**found, "settings": changed}, {**gaps, **{f"settings of broker {name}": error for name, error in problems.items()}}


def _shown(setting: Setting) -> tuple[Any, ...]:
    return setting.value, setting.source, setting.sensitive, setting.read_only


def plan_alter(
    services: Services, ids: Sequence[int], settings: Mapping[str, str], remove: Sequence[str], *, default: bool
) -> Plan[SettingsChange]:
    """Plan to change settings of brokers, after these have validated them.

    :param default: change what applies to every broker that has no value of its own
    :raises UsageProblem: for a setting that brokers do not have, and for a value that they refuse
    :raises Refused: for a setting that only ``server.properties`` and a restart can change
    """
    if default == bool(ids):
        raise UsageProblem(
            "name either brokers or --default", hint="--default sets what applies to every broker without a value of its own"
        )
    target = requested(settings, remove, lambda given: {name: in_kafkas_unit(name, text.strip()) for name, text in given.items()})
    chosen = brokers_named(services, ids)
    found = describe(services, BROKER, map(str, chosen if ids else chosen[:1]))
    for each in found.values():
        require_alterable(target, each)
    names = [DEFAULT_BROKER] if default else [str(broker) for broker in chosen]
    warnings = own_stay(services, chosen, target) if default else []
    return plan_settings(services, BROKER, dict.fromkeys(names, target), warnings=warnings)


def require_alterable(names: Iterable[str], found: Mapping[str, Setting]) -> None:
    """Check that settings can be changed while a broker runs.

    :param found: all settings of a broker
    :raises UsageProblem: for a setting that brokers do not have
    :raises Refused: for a setting that only ``server.properties`` and a restart can change
    """
    require_known(names, found, "broker", hint="`kops brokers config --all` shows the names")
    fixed = [name for name in names if found[name].read_only]
    if fixed:
        hint = "change it in every broker's server.properties, and restart them one after another"
        raise Refused(f"{fixed[0]} cannot be changed while a broker runs", hint=hint, settings=fixed)


def own_stay(services: Services, ids: Iterable[int], target: Mapping[str, str | None]) -> list[str]:
    """Say which brokers have values of their own, which go before the common ones."""
    texts = []
    for name, answer in services.kafka.settings.describe_or_errors(BROKER, map(str, ids)).items():
        if isinstance(answer, KopsError):
            texts.append(f"whether broker {name} has values of its own is not known: {answer.message}")
        else:
            texts += [f"broker {name} keeps its own {key}={answer[key].value}" for key in target if answer[key].source == BROKER]
    return texts

"""`kops client-metrics`: which metrics clients send to the brokers, and which clients."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kops.core.errors import NotFound, UsageProblem
from kops.core.plan import Plan
from kops.core.selection import names_matching
from kops.core.settings import CLIENT_METRICS, SettingsChange, own_settings
from kops.operations.services import Services
from kops.operations.settings.change import describe, plan_settings

MATCHERS = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
"""``ClientMetricsConfigs`` of Kafka; the values are regular expressions."""
SETTINGS = ("metrics", "interval.ms", "match")
"""Those of a subscription (``ClientMetricsConfigs``)."""


def subscription_rows(services: Services, patterns: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row per subscription.

    :param patterns: names or globs
    :raises NotFound: for a plain name that does not exist
    """
    names = names_matching(patterns, services.kafka.settings.names(CLIENT_METRICS), regex=False, what="subscription")
    return [
        {"name": name, "metrics": own.get("metrics"), "interval_ms": own.get("interval.ms"), "match": own.get("match")}
        for name, found in describe(services, CLIENT_METRICS, names).items()
        for own in [own_settings(found, CLIENT_METRICS)]
    ]


def plan_set(services: Services, name: str, settings: Mapping[str, str]) -> Plan[SettingsChange]:
    """Plan to create or change a subscription, after the brokers have validated it.

    :param settings: ``metrics``, ``interval.ms`` and ``match``, those to change
    :raises UsageProblem: for no setting, and for a matcher that Kafka does not have
    """
    if not settings:
        raise UsageProblem("nothing to set is named", hint="--metrics, --interval or --match")
    for part in filter(None, settings.get("match", "").split(",")):
        key, _, pattern = part.partition("=")
        if key.strip() not in MATCHERS or not _is_pattern(pattern):
            raise UsageProblem(f"{part!r} does not choose clients", hint=f"KEY=REGEX, with one of {', '.join(MATCHERS)}")
    return plan_settings(services, CLIENT_METRICS, {name: settings})


def plan_delete(services: Services, name: str) -> Plan[SettingsChange]:
    """Plan to delete a subscription: Kafka drops one without settings.

    :raises NotFound: when it does not exist
    """
    own = own_settings(describe(services, CLIENT_METRICS, [name])[name], CLIENT_METRICS)
    if not own:
        raise NotFound(f"there is no subscription {name}", hint="`kops client-metrics list` shows what there is")
    return plan_settings(services, CLIENT_METRICS, {name: dict.fromkeys(own)})


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return bool(text)

"""Changing the settings of topics that exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kops.core.errors import UsageProblem
from kops.core.plan import Plan
from kops.core.topics.change import Changes
from kops.core.topics.names import is_kafkas_own, streams_application
from kops.core.topics.settings import POLICY, canonical_settings, require_setting_names
from kops.operations.services import Services
from kops.operations.topics.change_plan import plan_changes
from kops.operations.topics.create import names_the_brokers_know
from kops.operations.topics.listing import select


def plan_alter(
    services: Services, patterns: Sequence[str], settings: Mapping[str, str], remove: Sequence[str] = (), *, regex: bool = False
) -> Plan:
    """Decide what changing settings would do; the brokers have checked it. Settings that are not named stay as they are.

    :param patterns: names, globs, or regular expressions with ``regex``; patterns never match internal topics
    :param settings: the values to set, as people write them
    :param remove: settings to take away from the topics, so that the brokers' defaults hold again
    :raises UsageProblem: for a setting that Kafka does not know or a value that it does not take
    :raises NotFound: when a plain name does not exist
    """
    wanted = changed_settings(services, settings, remove)
    found = select(services, patterns, regex=regex)
    if not found:
        return plan_changes(services, Changes(), summary=f"no topic matches {', '.join(patterns)}")
    return plan_changes(services, Changes(alter=dict.fromkeys(found, wanted)), warnings=_owners(services, list(found), wanted))


def changed_settings(services: Services, settings: Mapping[str, str], remove: Sequence[str]) -> dict[str, str | None]:
    """Return the settings to change, checked before any broker is asked: None takes one away.

    :raises UsageProblem: for one that does not exist, cannot have its value, or is both set and removed
    """
    both = sorted(set(settings) & set(remove))
    if both:
        raise UsageProblem(f"{both[0]} is both set and removed", hint="leave --config or --delete-config of it out")
    if not settings and not remove:
        raise UsageProblem("nothing to change is named", hint="--config retention.ms=3600000 sets, --delete-config retention.ms removes")
    wanted: dict[str, str | None] = {}
    wanted |= canonical_settings(settings, also_known=lambda: names_the_brokers_know(services))
    require_setting_names(remove, also_known=lambda: names_the_brokers_know(services))
    return wanted | dict.fromkeys(remove)


def _owners(services: Services, names: Sequence[str], wanted: Mapping[str, str | None]) -> list[str]:
    """Warn about topics whose settings somebody else chose for a reason."""
    texts = [f"{name} belongs to the brokers: they chose its settings" for name in names if is_kafkas_own(name)]
    if POLICY not in wanted and not any(name.startswith("retention.") for name in wanted):
        return texts
    suspects = [name for name in names if name.endswith(("-changelog", "-repartition"))]
    group_ids = services.kafka.groups.ids() if suspects else []
    for name in suspects:
        application = streams_application(name, group_ids)
        if application:
            texts.append(
                f"{name} is an internal topic of the Kafka Streams application {application}, which relies on how it keeps records"
            )
    return texts

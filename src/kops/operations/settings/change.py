"""The mutation of settings of brokers, groups and client metrics; those of topics change with topics (``operations.topics.change``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from kops.core.errors import KopsError, Refused, VerificationFailed
from kops.core.models import Setting
from kops.core.plan import Item, ItemResult, Plan, Status, not_done
from kops.core.settings import (
    Settings,
    SettingsChange,
    alteration,
    changed_since,
    own_settings,
    own_source,
    refuse_secrets,
    still_to_alter,
    title,
)
from kops.operations.protocol.mutation import Mutation, compare_guard, failed
from kops.operations.protocol.settling import settled
from kops.operations.services import Services

CHANGE = "settings.change"
Found = Mapping[str, Mapping[str, Setting]]


def describe(services: Services, kind: str, names: Iterable[str]) -> dict[str, dict[str, Setting]]:
    """Return the settings of each.

    :raises KopsError: for the first that cannot be described
    """
    found: dict[str, dict[str, Setting]] = {}
    for name, answer in services.kafka.settings.describe_or_errors(kind, names).items():
        if isinstance(answer, KopsError):
            raise answer
        found[name] = answer
    return found


def plan_settings(
    services: Services, kind: str, changes: Mapping[str, Settings], *, warnings: Sequence[str] = (), notes: Sequence[str] = ()
) -> Plan[SettingsChange]:
    """Plan to change settings, after the brokers have validated them.

    :param kind: BROKER, GROUP or CLIENT_METRICS
    :param changes: by name; the caller has checked the names of the settings and their values
    :raises Refused: for a secret
    :raises UsageProblem: for what the brokers refuse
    """
    found = describe(services, kind, changes)
    for name, target in changes.items():
        refuse_secrets(found[name], target)
    left = {name: rest for name, target in changes.items() if (rest := still_to_alter(found[name], target, own_source(kind, name)))}
    refusals = services.kafka.settings.alter(kind, left, validate_only=True) if left else {}
    for error in refusals.values():
        if error is not None:
            raise error
    items = [_item(kind, name, found[name], left.get(name)) for name in changes]
    titles = [title(kind, name) for name in left or changes]
    subject = titles[0] if len(titles) == 1 else f"{len(titles)} {kind} settings"
    return Plan(
        operation=CHANGE,
        summary=f"alter {subject}" if left else f"{subject}: already set",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=items,
        guard=_guard(kind, left, found),
        arguments=SettingsChange(kind, left),
        warnings=tuple(warnings),
        notes=tuple(notes),
    )


class ChangeSettings(Mutation[SettingsChange]):
    """Changes settings, and reads them back."""

    name: ClassVar[str] = CHANGE
    arguments: ClassVar[type[SettingsChange]] = SettingsChange

    def locks(self, plan: Plan[SettingsChange]) -> Iterable[str]:
        return [f"settings of {item.target}" for item in plan.changes]

    def check(self, services: Services, plan: Plan[SettingsChange]) -> None:
        kind, changes = plan.arguments.kind, plan.arguments.changes
        compare_guard(plan, _guard(kind, changes, describe(services, kind, changes)), "the settings were")

    def apply(self, services: Services, plan: Plan[SettingsChange]) -> Iterator[ItemResult]:
        kind, changes = plan.arguments.kind, plan.arguments.changes
        items = {item.target: item for item in plan.changes}
        for name, error in services.kafka.settings.alter(kind, changes).items():
            item = items[title(kind, name)]
            yield ItemResult(item.target, Status.DONE) if error is None else failed(item, error)

    def verify(self, services: Services, plan: Plan[SettingsChange], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        kind, changes = plan.arguments.kind, plan.arguments.changes
        by_title = {title(kind, name): name for name in changes}

        def read() -> tuple[ItemResult, ...]:
            found = services.kafka.settings.describe_or_errors(kind, [by_title[result.target] for result in results])
            return tuple(_read_back(one, kind, by_title[one.target], plan, found[by_title[one.target]]) for one in results)

        return settled(read, services.kafka.heard_by_all)

    def resume(self, services: Services, plan: Plan[SettingsChange]) -> Plan[SettingsChange]:
        return plan_settings(services, plan.arguments.kind, plan.arguments.changes)

    def invert(self, services: Services, plan: Plan[SettingsChange], results: Sequence[ItemResult]) -> Plan[SettingsChange]:
        """Plan to set the previous values, "not set" included.

        :raises Refused: when there is nothing to undo
        """
        kind, untouched = plan.arguments.kind, not_done(results)
        before = {name: state for name, state in plan.guard["settings"].items() if title(kind, name) not in untouched}
        now = describe(services, kind, before)
        undo = plan_settings(services, kind, before)
        if not undo.has_changes:
            raise Refused("the settings are as they were before, so there is nothing to undo")
        losses = [
            f"{title(kind, name)} was changed since: {', '.join(strayed)}"
            for name in before
            if (strayed := changed_since(now[name], plan.arguments.changes[name], before[name], own_source(kind, name)))
        ]
        return replace(undo, losses=tuple(losses))


CHANGE_SETTINGS = ChangeSettings()


def _guard(kind: str, changes: Mapping[str, Settings], found: Found) -> dict[str, Any]:
    """Return the own values that are changed: what they touch, and nothing else."""
    own = {name: own_settings(found[name], own_source(kind, name)) for name in changes}
    return {"settings": {name: {key: own[name].get(key) for key in target} for name, target in changes.items()}}


def _item(kind: str, name: str, found: Mapping[str, Setting], target: Settings | None) -> Item:
    if target is None:
        return Item(title(kind, name), "none", reason="already set")
    before, after = alteration(found, target, own_source(kind, name))
    return Item(title(kind, name), "alter", before, after)


def _read_back(
    result: ItemResult, kind: str, name: str, plan: Plan[SettingsChange], found: Mapping[str, Setting] | KopsError
) -> ItemResult:
    if result.status not in (Status.DONE, Status.UNKNOWN) or isinstance(found, KopsError):
        return result
    left = still_to_alter(found, plan.arguments.changes[name], own_source(kind, name))
    if not left:
        return ItemResult(result.target, Status.DONE)
    if result.status is Status.UNKNOWN:
        return result
    wrong = "; ".join(f"{key} is {found[key].value if key in found else 'not set'}" for key in left)
    return ItemResult(result.target, Status.FAILED, error=VerificationFailed(f"{result.target} is not as planned: {wrong}").as_json())

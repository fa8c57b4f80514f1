"""`kops cluster features`: the levels of features, and changing them after a pre-flight by brokers and controllers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from kops.core.cluster.features import (
    CONTROLLERS_REGISTER,
    METADATA,
    Levels,
    brings,
    check_ranges,
    known_names,
    level_text,
    levels_of_release,
    why_final,
)
from kops.core.cluster.models import Feature
from kops.core.errors import KopsError, OperationFailed, Refused, UsageProblem, VerificationFailed, answer_or_error
from kops.core.findings import counted
from kops.core.plan import Item, ItemResult, Plan, Severity, Status
from kops.operations.cluster.observe import Gaps
from kops.operations.protocol.mutation import Mutation, compare_guard, failed
from kops.operations.protocol.settling import as_read_back, settled
from kops.operations.services import Services

Row = dict[str, Any]


def feature_rows(services: Services) -> tuple[list[Row], Mapping[str, KopsError]]:
    """Return a row per feature: its level, what every broker that answered supports, and what the next level brings."""
    gaps = Gaps()
    ranges = gaps.answered("supported features", services.kafka.details.supported_or_errors(_brokers(services)))
    return [_row(one, list(ranges.values())) for one in services.kafka.details.features()], gaps.errors


def _row(one: Feature, ranges: Sequence[Mapping[str, tuple[int, int]]]) -> Row:
    each = [found.get(one.name, (0, 0)) for found in ranges]
    least, most = (max(low for low, _ in each), min(high for _, high in each)) if each else (None, None)
    can_rise = most is not None and most > one.finalized
    return {
        "name": one.name,
        "finalized_level": one.finalized,
        "release": one.release,
        "supported_min": least,
        "supported_max": most,
        "upgrade_brings": brings(one.name, one.finalized, most) if can_rise and most else None,
        "upgrade_is_final": bool(why_final(one.name, one.finalized, most)) if can_rise and most else None,
    }


def plan_upgrade(services: Services, wanted: Mapping[str, int], release: str | None) -> Plan[Levels]:
    """Plan to raise levels: those that are given, or those of a release.

    :raises UsageProblem: for a feature that the cluster does not have, and a level that is lower
    :raises Refused: when a broker or a controller does not support a level
    """
    services.kafka.details.require_features()
    features = services.kafka.details.features()
    known_names(wanted, features)
    after = dict(wanted) if release is None else levels_of_release(release, features)
    now = {one.name: one.finalized for one in features}
    lower = [name for name, level in after.items() if level < now[name]]
    if lower:
        raise UsageProblem(f"{lower[0]} is {now[lower[0]]} already", hint="`kops cluster features downgrade` lowers a level")
    return _plan(services, features, after, verb="upgrade", unsafe=False)


def plan_downgrade(services: Services, wanted: Mapping[str, int], *, unsafe: bool = False) -> Plan[Levels]:
    """Plan to lower levels.

    :param unsafe: let the controllers lose metadata, if they can at all
    :raises UsageProblem: for a feature that the cluster does not have, and a level that is higher
    :raises Refused: when the controllers refuse
    """
    services.kafka.details.require_features()
    features = services.kafka.details.features()
    known_names(wanted, features)
    now = {one.name: one.finalized for one in features}
    higher = [name for name, level in wanted.items() if level > now[name]]
    if higher:
        raise UsageProblem(f"{higher[0]} is only {now[higher[0]]}", hint="`kops cluster features upgrade` raises a level")
    return _plan(services, features, dict(wanted), verb="downgrade", unsafe=unsafe)


def _plan(services: Services, features: Sequence[Feature], wanted: Mapping[str, int], *, verb: str, unsafe: bool) -> Plan[Levels]:
    now = {one.name: one.finalized for one in features}
    after = {name: level for name, level in wanted.items() if level != now[name]}
    before = {name: now[name] for name in after}
    notes = _preflight(services, after, before, metadata=now.get(METADATA, 0), unsafe=unsafe) if after else []
    final = {name: why for name, level in after.items() if (why := why_final(name, now[name], level))}
    items = [_item(name, now[name], level, final.get(name, "")) for name, level in wanted.items()]
    names = ", ".join(f"{name} to {level}" for name, level in after.items())
    return Plan(
        operation=CHANGE.name,
        summary=f"{verb} {names}" if after else "every feature has that level already",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(items),
        severity=Severity.SEVERE if final or unsafe else Severity.MODERATE,
        confirm=",".join(final or after),
        guard=before,
        arguments=Levels(before, after, unsafe),
        warnings=tuple(f"{name} cannot be lowered again: {why}" for name, why in final.items()),
        notes=tuple(notes),
    )


def _preflight(services: Services, after: Mapping[str, int], before: Mapping[str, int], *, metadata: int, unsafe: bool) -> list[str]:
    """Let every broker say what it supports, and the active controller check the change; return what was checked.

    :raises Refused: when one of them does not support it
    """
    answers = services.kafka.details.supported_or_errors(_brokers(services))
    for broker, answer in answers.items():
        if isinstance(answer, KopsError):
            raise Refused(
                f"what broker {broker} supports is not known: {answer.message}", hint="change features while every broker answers"
            )
    check_ranges(after, {broker: ranges for broker, ranges in answers.items() if not isinstance(ranges, KopsError)})
    refused = answer_or_error(lambda: services.kafka.details.update_features(after, before, unsafe=unsafe, validate_only=True))
    if isinstance(refused, OperationFailed):
        raise Refused(refused.message, hint=refused.hint, **refused.details)
    if isinstance(refused, KopsError):
        raise refused
    controllers = "" if metadata >= CONTROLLERS_REGISTER else "; before Kafka 3.7 the other controllers are not checked"
    support = f"{counted(len(answers), 'broker')} support{'s' if len(answers) == 1 else ''}"
    return [f"checked: what {support}, and the whole change by the active controller{controllers}"]


class ChangeFeatures(Mutation[Levels]):
    """Sets levels of features, all or none, and reads them back."""

    name: ClassVar[str] = "cluster.features"
    arguments: ClassVar[type[Levels]] = Levels

    def locks(self, plan: Plan[Levels]) -> Iterable[str]:  # noqa: ARG002 - the contract
        return ["features"]

    def check(self, services: Services, plan: Plan[Levels]) -> None:
        now = {one.name: one.finalized for one in services.kafka.details.features()}
        compare_guard(plan, {name: now.get(name, 0) for name in plan.arguments.after}, "the levels were")

    def apply(self, services: Services, plan: Plan[Levels]) -> Iterator[ItemResult]:
        levels = plan.arguments
        error = answer_or_error(lambda: services.kafka.details.update_features(levels.after, levels.before, unsafe=levels.unsafe))
        for item in plan.changes:
            yield failed(item, error) if isinstance(error, KopsError) else ItemResult(item.target, Status.DONE)

    def verify(self, services: Services, plan: Plan[Levels], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        def read() -> tuple[ItemResult, ...]:
            now = {one.name: one.finalized for one in services.kafka.details.features()}
            return tuple(_read_back(result, now.get(result.target, 0), plan.arguments.after[result.target]) for result in results)

        return settled(read, services.kafka.heard_by_all)

    def can_be_undone(self, plan: Plan[Levels]) -> bool:
        levels = plan.arguments
        return not any(why_final(name, levels.before[name], level) for name, level in levels.after.items())

    def resume(self, services: Services, plan: Plan[Levels]) -> Plan[Levels]:
        levels = plan.arguments
        if any(level < levels.before[name] for name, level in levels.after.items()):
            return plan_downgrade(services, levels.after, unsafe=levels.unsafe)
        return plan_upgrade(services, levels.after, None)

    def invert(self, services: Services, plan: Plan[Levels], results: Sequence[ItemResult]) -> Plan[Levels]:  # noqa: ARG002
        """Plan to set the previous levels.

        :raises Refused: for levels that cannot be lowered again, and when another level was set since
        """
        levels = plan.arguments
        for name, level in levels.after.items():
            if why := why_final(name, levels.before[name], level):
                raise Refused(f"{name} cannot be lowered again: {why}")
        now = {one.name: one.finalized for one in services.kafka.details.features()}
        others = [f"{name} is {now.get(name, 0)}, not {level}" for name, level in levels.after.items() if now.get(name, 0) != level]
        raising = any(level < levels.before[name] for name, level in levels.after.items())
        undo = plan_upgrade(services, levels.before, None) if raising else plan_downgrade(services, levels.before)
        return replace(undo, losses=tuple(others))


CHANGE = ChangeFeatures()


def _brokers(services: Services) -> list[int]:
    return [broker.id for broker in services.kafka.cluster().brokers]


def _item(name: str, before: int, after: int, final: str) -> Item:
    if before == after:
        return Item(name, "none", level_text(name, before), level_text(name, after), "has that level already")
    reason = brings(name, before, after) + ("; cannot be undone" if final else "")
    return Item(name, "set", level_text(name, before), level_text(name, after), reason)


def _read_back(result: ItemResult, now: int, wanted: int) -> ItemResult:
    return as_read_back(result, now, wanted, VerificationFailed(f"{result.target} is {now}, not {wanted}"))

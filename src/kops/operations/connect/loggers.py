"""``kops connect loggers``: show log levels, and set them on all workers at once (KIP-976)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from kops.core.errors import KopsError, StateMoved, UsageProblem, VerificationFailed
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Status
from kops.core.times import time_text
from kops.operations.connect.mutation import ConnectMutation, connect_plan, done, poll
from kops.operations.connect.select import matching
from kops.operations.protocol.mutation import failed
from kops.operations.services import Services

NAME = "connect.loggers"
LEVELS = ("OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")
SETTLE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Levels(Arguments):
    levels: Mapping[str, str]

    def as_json(self) -> Json:
        return {"levels": dict(self.levels)}

    @classmethod
    def of_json(cls, body: Json) -> Levels:
        return cls(dict(body["levels"]))


def logger_rows(services: Services, patterns: Sequence[str], *, regex: bool = False) -> list[dict[str, Any]]:
    """Return loggers with their levels on the worker that answers.

    :raises NotFound: for a plain name that has no level of its own
    """
    found = services.connect.loggers()
    names = matching(patterns, found, "logger", "kops connect loggers list", regex=regex) if patterns else sorted(found)
    return [{"logger": name, "level": found[name]["level"], "last_modified": _time(found[name].get("last_modified"))} for name in names]


def _time(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else time_text(milliseconds)


def plan_loggers(services: Services, names: Sequence[str], level: str) -> Plan[Levels]:
    """Plan to set the level of loggers on every worker; loggers below them inherit it.

    :raises UsageProblem: for an invalid level
    """
    if level.upper() not in LEVELS:
        raise UsageProblem(f"{level} is not a valid level", hint=f"one of {', '.join(LEVELS)}")
    return _plan(services, dict.fromkeys(names, level.upper()))


def _plan(services: Services, wanted: Mapping[str, str]) -> Plan[Levels]:
    now = _levels(services, wanted)
    items = [
        Item(name, "none" if now[name] == level else "set", now[name], level, "already set" if now[name] == level else "")
        for name, level in wanted.items()
    ]
    changing = [item.target for item in items if item.changes]
    what = f"set {', '.join(changing)} on every worker" if changing else "every logger already has that level"
    return connect_plan(services, NAME, what, items, Levels({name: wanted[name] for name in changing}), guard=now)


def _levels(services: Services, names: Iterable[str]) -> dict[str, str]:
    """Return the effective levels of loggers: their own, or that of the nearest ancestor."""
    found = services.connect.loggers()
    levels = {}
    for name in names:
        parts = name.split(".")
        above = [".".join(parts[:length]) for length in range(len(parts), 0, -1)] + ["root"]
        levels[name] = str(next((found[each]["level"] for each in above if each in found), "INFO"))
    return levels


class SetLoggers(ConnectMutation[Levels]):
    name: ClassVar[str] = NAME
    arguments = Levels

    def check(self, services: Services, plan: Plan[Levels]) -> None:
        """Accept any current level: setting one twice does no harm."""

    def apply(self, services: Services, plan: Plan[Levels]) -> Iterator[ItemResult]:
        for item in plan.changes:
            try:
                services.connect.set_logger(item.target, plan.arguments.levels[item.target])
            except KopsError as error:
                yield failed(item, error)
            else:
                yield ItemResult(item.target, Status.DONE)

    def verify(self, services: Services, plan: Plan[Levels], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Poll until the worker that answers has the levels: it learns of them in the same way as the others."""
        names, wanted = done(results), plan.arguments.levels

        def reached(levels: Mapping[str, str]) -> bool:
            return all(levels[name] == wanted[name] for name in names)

        now = poll(lambda: _levels(services, names), reached, seconds=SETTLE_SECONDS)
        return tuple(_verified(one, now[one.target], wanted[one.target]) if one.target in now else one for one in results)

    def invert(self, services: Services, plan: Plan[Levels], results: Sequence[ItemResult]) -> Plan[Levels]:
        names = done(results) or list(plan.arguments.levels)
        now, requested = _levels(services, names), plan.arguments.levels
        changed_since = [
            f"logger {name} was set to {now[name]} since" for name in names if now[name] not in (requested[name], plan.guard[name])
        ]
        return replace(_plan(services, {name: plan.guard[name] for name in names}), losses=tuple(changed_since))

    def resume(self, services: Services, plan: Plan[Levels]) -> Plan[Levels]:
        """Plan the levels that were not set.

        :raises StateMoved: when a logger has another level since
        """
        wanted = plan.arguments.levels
        now = _levels(services, wanted)
        moved = [f"{name} is {level}" for name, level in now.items() if level not in (wanted[name], plan.guard[name])]
        if moved:
            raise StateMoved(f"changed since: {', '.join(moved)}", hint="run the command again to plan from what is there now")
        return _plan(services, wanted)


SET_LOGGERS = SetLoggers()


def _verified(result: ItemResult, level: str, wanted: str) -> ItemResult:
    if level == wanted:
        return ItemResult(result.target, Status.DONE, value=level)
    error = VerificationFailed(f"{result.target} is {level}, not {wanted}", hint="workers apply it one after another: check again")
    return ItemResult(result.target, Status.FAILED, error=error.as_json(), value=level)

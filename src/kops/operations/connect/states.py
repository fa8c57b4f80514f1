"""``kops connect pause``, ``resume`` and ``stop``: request a state, then wait until it is reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from kops.core.connect.models import FAILED, PAUSED, RUNNING, STOPPED, Connector, root_cause
from kops.core.connect.secrets import scrubbed, secret_texts
from kops.core.errors import Refused, StateMoved, VerificationFailed
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Status
from kops.operations.connect.mutation import (
    ConnectMutation,
    connect_plan,
    done,
    done_unless_failed,
    poll_until,
    run_each,
    states_text,
    states_value,
)
from kops.operations.connect.select import by_name, named, select_some
from kops.operations.protocol.mutation import compare_guard
from kops.operations.services import Services

NAME = "connect.state"
STATES = {"pause": PAUSED, "resume": RUNNING, "stop": STOPPED}
VERBS = {state: verb for verb, state in STATES.items()}


@dataclass(frozen=True, slots=True)
class StateChange(Arguments):
    """The requested states by connector.

    :param wait_ms: how long to wait for them
    """

    states: Mapping[str, str]
    wait_ms: int

    def as_json(self) -> Json:
        return {"states": dict(self.states), "wait_ms": self.wait_ms}

    @classmethod
    def of_json(cls, body: Json) -> StateChange:
        return cls(dict(body["states"]), body["wait_ms"])


def plan_state(services: Services, patterns: Sequence[str], verb: str, *, regex: bool, wait_ms: int) -> Plan[StateChange]:
    """Plan to pause, resume or stop connectors.

    :param verb: pause, resume or stop
    :param wait_ms: how long to wait for the states
    :raises NotFound: for a plain name that does not exist
    """
    found = select_some(services, patterns, regex=regex)
    return _plan(services, found, {connector.name: STATES[verb] for connector in found}, wait_ms=wait_ms)


def _plan(services: Services, connectors: Sequence[Connector], wanted: Mapping[str, str], *, wait_ms: int) -> Plan[StateChange]:
    items = [_item(connector, wanted[connector.name]) for connector in connectors]
    changing = [item for item in items if item.changes]
    verbs = sorted({item.action for item in changing})
    summary = f"{' and '.join(verbs)} {named([item.target for item in changing])}" if changing else "every connector already has that state"
    stopping = "stop" in verbs
    return connect_plan(
        services,
        NAME,
        summary,
        items,
        StateChange({item.target: wanted[item.target] for item in changing}, wait_ms),
        guard={connector.name: connector.wanted_state for connector in connectors},
        notes=("stopped connectors have no tasks; their configuration and offsets stay",) if stopping else (),
    )


def _item(connector: Connector, wanted: str) -> Item:
    if connector.wanted_state == wanted:
        reason = f"already {wanted}" if connector.state == wanted else f"{wanted} already requested, currently {connector.state}"
        return Item(connector.name, "none", connector.state, connector.state, reason)
    return Item(connector.name, VERBS[wanted], connector.state, wanted)


class ChangeStates(ConnectMutation[StateChange]):
    name: ClassVar[str] = NAME
    arguments = StateChange

    def check(self, services: Services, plan: Plan[StateChange]) -> None:
        """Refuse if the requested state of a connector was changed since the plan."""
        found = by_name(services)
        compare_guard(plan, {name: found[name].wanted_state if name in found else None for name in plan.guard}, "a connector")

    def apply(self, services: Services, plan: Plan[StateChange]) -> Iterator[ItemResult]:
        wanted = plan.arguments.states
        return run_each(plan.changes, lambda item: services.connect.change_state(item.target, VERBS[wanted[item.target]]))

    def verify(self, services: Services, plan: Plan[StateChange], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Poll until connectors and tasks have the requested states."""
        wanted, names = plan.arguments.states, done(results)
        found = poll_until(
            services, names, lambda name, one: one is None or has_reached(one, wanted[name]), seconds=plan.arguments.wait_ms / 1000
        )
        return tuple(
            _verified(result, found.get(result.target), wanted[result.target]) if result.target in names else result for result in results
        )

    def invert(self, services: Services, plan: Plan[StateChange], results: Sequence[ItemResult]) -> Plan[StateChange]:
        names = set(done(results)) or {item.target for item in plan.changes}
        found = [connector for name, connector in by_name(services).items() if name in names and name in plan.guard]
        if not found:
            raise Refused("the connectors no longer exist", hint="`kops connect list` shows what there is")
        requested, before = plan.arguments.states, plan.guard
        changed_since = [one for one in found if one.wanted_state not in (requested.get(one.name), before[one.name])]
        back = _plan(services, found, {one.name: before[one.name] for one in found}, wait_ms=plan.arguments.wait_ms)
        return replace(back, losses=tuple(f"connector {one.name} was set to {one.wanted_state} since" for one in changed_since))

    def resume(self, services: Services, plan: Plan[StateChange]) -> Plan[StateChange]:
        """Plan the states that were not requested.

        :raises StateMoved: when another one was requested since, or a connector no longer exists
        """
        wanted, found = plan.arguments.states, by_name(services)
        now = {name: found[name].wanted_state if name in found else "deleted" for name in wanted}
        moved = [f"{name} is {state}" for name, state in now.items() if state not in (wanted[name], plan.guard[name])]
        if moved:
            raise StateMoved(f"changed since: {', '.join(moved)}", hint="run the command again to plan from what is there now")
        return _plan(services, [found[name] for name in wanted], wanted, wait_ms=plan.arguments.wait_ms)

    def messages(self, services: Services, plan: Plan[StateChange], results: Sequence[ItemResult]) -> tuple[str, ...]:
        """Report tasks that do not run although their connector was resumed."""
        return failures_of(services, [name for name in done(results) if plan.arguments.states[name] == RUNNING])


CHANGE_STATES = ChangeStates()


def has_reached(connector: Connector, wanted: str) -> bool:
    """Whether a connector and its tasks have reached a state, or have failed, which is final too."""
    if connector.state not in (wanted, FAILED):
        return False
    if wanted == STOPPED:
        return not connector.tasks
    return all(task.state in (wanted, FAILED) for task in connector.tasks) and (bool(connector.tasks) or wanted != RUNNING)


def failures_of(services: Services, names: Sequence[str]) -> tuple[str, ...]:
    """Return a warning per connector and task that has failed, of these connectors; without any, no request is sent."""
    return failures([connector for name, connector in by_name(services).items() if name in names]) if names else ()


def failures(connectors: Sequence[Connector]) -> tuple[str, ...]:
    warnings = []
    for connector in connectors:
        secrets = secret_texts(connector.config)
        parts = [(connector.name, connector)] + [(f"{connector.name} task {task.id}", task) for task in connector.tasks]
        warnings += [f"warning: {what} FAILED: {scrubbed(root_cause(one.trace), secrets)}" for what, one in parts if one.state == FAILED]
    return tuple(warnings)


def _verified(result: ItemResult, connector: Connector | None, wanted: str) -> ItemResult:
    if connector is not None and connector.wanted_state == wanted and (connector.state == wanted or connector.failed):
        return done_unless_failed(result.target, connector, wanted=wanted)
    why = "no longer exists" if connector is None else f"is {states_text(connector)}"
    error = VerificationFailed(f"{result.target} {why}, not {wanted}", hint="`kops connect status` shows it; increase --wait")
    return ItemResult(result.target, Status.FAILED, error=error.as_json(), value=states_value(connector))

"""``kops connect restart``: restart connectors with their tasks, what has failed, or single tasks, and wait until they run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from kops.core.connect.models import FAILED, PAUSED, RUNNING, STOPPED, UNASSIGNED, Connector, root_cause
from kops.core.connect.secrets import scrubbed, secret_texts
from kops.core.errors import NotFound, OperationFailed, StateMoved, VerificationFailed
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Status
from kops.operations.connect.mutation import ConnectMutation, connect_plan, done, poll, run_each, states_text, states_value
from kops.operations.connect.select import by_name, named, select_some
from kops.operations.protocol.mutation import FinalMutation
from kops.operations.services import Services

NAME = "connect.restart"
STEADY_SECONDS = 1.5
"""How long a task must run to count as running: one that fails does so a moment after its start."""
STALE_SECONDS = 4.0
"""For this long a reported failure may date from before the restart."""


@dataclass(frozen=True, slots=True)
class RestartScope(Arguments):
    """What to restart of each connector.

    :param only_failed: only the connector or tasks that have failed
    :param tasks: only these; empty: the connector and all tasks
    :param without_tasks: connectors that were running without any task
    """

    only_failed: bool
    tasks: tuple[int, ...]
    wait_ms: int
    without_tasks: tuple[str, ...]

    def as_json(self) -> Json:
        tasks, without_tasks = list(self.tasks), list(self.without_tasks)
        return {"only_failed": self.only_failed, "tasks": tasks, "wait_ms": self.wait_ms, "without_tasks": without_tasks}

    @classmethod
    def of_json(cls, body: Json) -> RestartScope:
        return cls(body["only_failed"], tuple(body["tasks"]), body["wait_ms"], tuple(body["without_tasks"]))


def plan_restart(
    services: Services,
    patterns: Sequence[str],
    *,
    regex: bool,
    only_failed: bool,
    tasks: Sequence[int],
    wait_ms: int,
) -> Plan[RestartScope]:
    """Plan to restart connectors.

    :param only_failed: only the connector or tasks that have failed (KIP-745)
    :param tasks: only these tasks
    :param wait_ms: how long to wait until they run
    :raises NotFound: for a plain name, or a task, that does not exist
    """
    found = select_some(services, patterns, regex=regex)
    items = [_item(connector, only_failed=only_failed, tasks=tasks) for connector in found]
    changing = [item.target for item in items if item.changes]
    what = f"restart {'what has failed of ' if only_failed else ''}{named(changing)}" if changing else "nothing to restart"
    without_tasks = tuple(connector.name for connector in found if not connector.tasks and connector.state == RUNNING)
    return connect_plan(services, NAME, what, items, RestartScope(only_failed, tuple(tasks), wait_ms, without_tasks))


def _item(connector: Connector, *, only_failed: bool, tasks: Sequence[int]) -> Item:
    states = states_text(connector)
    missing = set(tasks) - {task.id for task in connector.tasks}
    if missing:
        raise NotFound(
            f"{connector.name} has no task {min(missing)}", hint=f"its tasks: {', '.join(str(t.id) for t in connector.tasks) or 'none'}"
        )
    if connector.state in (PAUSED, STOPPED):
        return Item(connector.name, "none", states, reason=f"it is {connector.state}: use `kops connect resume`")
    if only_failed and not connector.failed:
        return Item(connector.name, "none", states, reason="nothing has failed")
    if only_failed:
        numbers = [str(task.id) for task in connector.tasks if task.state == FAILED and (not tasks or task.id in tasks)]
        parts = (["the connector"] if connector.state == FAILED else []) + [f"task {number}" for number in numbers]
        secrets = secret_texts(connector.config)
        traces = [connector.trace, *(task.trace for task in connector.tasks)]
        why = scrubbed(root_cause(next((trace for trace in traces if trace), "")), secrets)
        return Item(connector.name, "restart", states, reason=f"{', '.join(parts)}: {why}")
    which = f"task {', '.join(map(str, tasks))}" if tasks else f"the connector and its {counted_tasks(len(connector.tasks))}"
    return Item(connector.name, "restart", states, reason=which)


def counted_tasks(count: int) -> str:
    return f"{count} task{'' if count == 1 else 's'}"


class Restart(ConnectMutation[RestartScope], FinalMutation[RestartScope]):
    name: ClassVar[str] = NAME
    arguments = RestartScope
    no_undo: ClassVar[str] = "a restart cannot be undone: it changes no settings or offsets"

    def check(self, services: Services, plan: Plan[RestartScope]) -> None:
        there = by_name(services)
        gone = [item.target for item in plan.changes if item.target not in there]
        if gone:
            raise StateMoved(f"deleted since the plan was made: {', '.join(gone)}", hint="run the command again")

    def apply(self, services: Services, plan: Plan[RestartScope]) -> Iterator[ItemResult]:
        """Restart; not retried if the answer is lost."""
        tasks, only_failed = plan.arguments.tasks, plan.arguments.only_failed

        def do(item: Item) -> None:
            if not tasks:
                services.connect.restart(item.target, only_failed=only_failed)
            for task in tasks:
                services.connect.restart_task(item.target, task)

        return run_each(plan.changes, do)

    def covers(self, services: Services, plan: Plan[RestartScope], earlier: Plan[RestartScope]) -> bool:  # noqa: ARG002 - the contract
        """Whether the same connectors and tasks were restarted again."""
        restarted = {item.target for item in plan.changes}
        return earlier.arguments == plan.arguments and {item.target for item in earlier.changes} <= restarted

    def verify(self, services: Services, plan: Plan[RestartScope], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Poll until everything runs steadily, or has failed again."""
        taskless = plan.arguments.without_tasks
        watches = {name: Watch(plan.arguments.tasks, needs_tasks=name not in taskless) for name in done(results)}

        def decided() -> bool:
            found = by_name(services)
            for name, watch in watches.items():
                watch.observe(found.get(name), time.monotonic())
            return all(watch.decided for watch in watches.values())

        if watches:
            poll(decided, bool, seconds=plan.arguments.wait_ms / 1000)
        return tuple(watches[one.target].result(one) if one.target in watches else one for one in results)


RESTART = Restart()


class Watch:
    """Follows one connector while it, or some of its tasks, restart, until they run steadily or have failed again.

    :param tasks: only these; empty: the connector and all tasks
    :param needs_tasks: whether it counts as running only if it has tasks
    """

    def __init__(self, tasks: Sequence[int], *, needs_tasks: bool = True) -> None:
        self._tasks = tuple(tasks)
        self._needs_tasks = needs_tasks
        self._started: float | None = None
        self._running_since: float | None = None
        self._recovered = False
        self._last: Connector | None = None
        self.decided = False

    def observe(self, connector: Connector | None, now: float) -> None:
        self._started = now if self._started is None else self._started
        self._last = connector
        states = [] if connector is None else self._states(connector)
        runs = (
            bool(states) and all(state == RUNNING for state in states) and (bool(self._tasks) or len(states) > 1 or not self._needs_tasks)
        )
        self._running_since = (self._running_since or now) if runs else None
        self._recovered = self._recovered or not any(state == FAILED for state in states)
        again = any(state == FAILED for state in states) and (self._recovered or now - self._started > STALE_SECONDS)
        steady = self._running_since is not None and now - self._running_since >= STEADY_SECONDS
        self.decided = connector is None or again or steady

    def _states(self, connector: Connector) -> list[str]:
        tasks = [task.state for task in connector.tasks if not self._tasks or task.id in self._tasks]
        return tasks if self._tasks else [connector.state, *tasks]

    def result(self, one: ItemResult) -> ItemResult:
        if self._last is None:
            return ItemResult(one.target, Status.FAILED, error=OperationFailed(f"{one.target} no longer exists").as_json())
        value: Any = states_value(self._last)
        if self._running_since is not None:
            return ItemResult(one.target, Status.DONE, value=value)
        secrets = secret_texts(self._last.config)
        broken = [("the connector", self._last.state, self._last.trace)]
        broken += [(f"task {task.id}", task.state, task.trace) for task in self._last.tasks if not self._tasks or task.id in self._tasks]
        again = [f"{what} failed again: {scrubbed(root_cause(trace), secrets)}" for what, state, trace in broken if state == FAILED]
        waiting = [f"{what} is {state}" for what, state, _ in broken if state not in (FAILED, RUNNING)]
        hint = f"kops connect status {one.target} --trace"
        if not again and UNASSIGNED in {state for _, state, _ in broken}:
            hint = "Connect is rebalancing, or workers are down: check again with kops connect status"
        error = VerificationFailed(f"{one.target}: {'; '.join(again or waiting or ['it has no tasks'])}", hint=hint)
        return ItemResult(one.target, Status.FAILED, error=error.as_json(), value=value)

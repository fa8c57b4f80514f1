"""What all changes of connectors share: the cluster that they apply to, and waiting for them to take effect."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from kops.core.connect.models import FAILED, RUNNING, Connector, root_cause
from kops.core.connect.secrets import scrubbed, secret_texts
from kops.core.errors import KopsError, OperationFailed
from kops.core.plan import Args, Item, ItemResult, Plan, Severity, Status
from kops.operations.connect.select import by_name
from kops.operations.protocol.mutation import Mutation, failed
from kops.operations.services import Services

T = TypeVar("T")
POLL_SECONDS = 0.25
_AT_ONCE = 8


class ConnectMutation(Mutation[Args]):
    """A change of Connect, which sends no request to the brokers."""

    def cluster_id(self, services: Services) -> str:
        """Return the id of the Kafka cluster that Connect itself runs on."""
        return str(services.connect.about()["kafka_cluster_id"])

    def locks(self, plan: Plan[Args]) -> Iterable[str]:
        return [f"connector {item.target}" for item in plan.changes]


def connect_plan(
    services: Services,
    operation: str,
    summary: str,
    items: Sequence[Item],
    arguments: Args,
    *,
    delete: str = "",
    **more: Any,
) -> Plan[Args]:
    """Create a plan for the Connect cluster.

    :param delete: what has to be typed to approve; empty if nothing is deleted
    :param more: further fields of the plan
    """
    return Plan(
        operation=operation,
        summary=summary,
        cluster_id=str(services.connect.about()["kafka_cluster_id"]),
        context=services.connection.label,
        items=tuple(items),
        severity=Severity.SEVERE if delete else Severity.MODERATE,
        confirm=delete,
        arguments=arguments,
        **more,
    )


def poll_until(
    services: Services, names: Sequence[str], reached: Callable[[str, Connector | None], bool], *, seconds: float
) -> dict[str, Connector]:
    """Poll all connectors until the named ones satisfy ``reached``, or ``seconds`` have passed.

    :returns: the connectors at the last poll, without those that do not exist
    """

    def look() -> dict[str, Connector]:
        return {name: connector for name, connector in by_name(services).items() if name in names}

    return poll(look, lambda found: all(reached(name, found.get(name)) for name in names), seconds=seconds)


def poll(look: Callable[[], T], enough: Callable[[T], bool], *, seconds: float) -> T:
    """Look until it is enough, or ``seconds`` have passed; return what the last look found."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if enough(found) or time.monotonic() > deadline:
            return found
        time.sleep(POLL_SECONDS)


def run_each(items: Sequence[Item], do: Callable[[Item], None]) -> Iterator[ItemResult]:
    """Run ``do`` for each item, several at a time, and yield the results in order.

    Connect rebalances after each change of connectors; concurrent changes are processed between two rebalances.

    :param do: raises a KopsError if it fails
    """

    def result(item: Item) -> ItemResult:
        try:
            do(item)
        except KopsError as error:
            return failed(item, error)
        return ItemResult(item.target, Status.DONE)

    pool = ThreadPoolExecutor(min(_AT_ONCE, max(1, len(items))))
    try:
        yield from pool.map(result, items)
    finally:
        pool.shutdown(cancel_futures=True)


def done(results: Sequence[ItemResult]) -> list[str]:
    """Return the targets that were changed, fully or partly, or may have been."""
    return [result.target for result in results if result.status in (Status.DONE, Status.PARTIAL, Status.UNKNOWN)]


def done_unless_failed(target: str, connector: Connector | None, *, wanted: str) -> ItemResult:
    """Return the result of an accepted change: partial if the connector should run and has failed since."""
    value = states_value(connector)
    if connector is None or wanted != RUNNING or not connector.failed:
        return ItemResult(target, Status.DONE, value=value)
    traces = [connector.trace] if connector.state == FAILED else []
    traces += [task.trace for task in connector.tasks if task.state == FAILED]
    why = scrubbed(root_cause(next((trace for trace in traces if trace), "")), secret_texts(connector.config))
    error = OperationFailed(
        f"{target} was changed as planned, but has failed since: {why}",
        hint=f"`kops connect status {target} --trace` shows the whole trace; `kops connect restart {target} --failed` once it is fixed",
    )
    return ItemResult(target, Status.PARTIAL, error=error.as_json(), value=value)


def states_text(connector: Connector) -> str:
    states = [task.state for task in connector.tasks]
    tasks = f", tasks {', '.join(states)}" if states else ", no tasks"
    return f"{connector.state}{tasks}"


def states_value(connector: Connector | None) -> Mapping[str, Any] | None:
    return None if connector is None else {"state": connector.state, "tasks": [task.state for task in connector.tasks]}

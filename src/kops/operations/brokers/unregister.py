"""The mutation that makes the controllers forget a broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from kops.core.errors import NotFound, Refused, VerificationFailed
from kops.core.findings import counted
from kops.core.plan import Item, ItemResult, Plan, Severity, Status
from kops.operations.protocol.mutation import FinalMutation
from kops.operations.protocol.settling import settled
from kops.operations.replicas.plan import unseen_topics
from kops.operations.services import Services

OPERATION = "brokers.unregister"


def plan_unregister(services: Services, broker: int) -> Plan:
    """Plan to unregister a broker that is down.

    :raises BrokersTooOld: for brokers that do not report which are down
    :raises NotFound: for a broker that is not registered
    :raises Refused: while it is in service, or partitions have replicas on it
    """
    services.kafka.details.require_fenced_brokers()
    registered = {one.id: one for one in services.kafka.details.registered_brokers()}
    if broker not in registered:
        known = ", ".join(str(one) for one in registered)
        raise NotFound(f"no broker {broker} is registered", hint=f"registered: {known}")
    _refuse_in_use(services, broker)
    unseen = unseen_topics(services, [broker], "may have replicas there")
    found = registered[broker]
    return Plan(
        operation=OPERATION,
        summary=f"unregister broker {broker}",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=[Item(f"broker {broker}", "unregister", f"{found.host}:{found.port}")],
        severity=Severity.SEVERE,
        confirm=str(broker),
        arguments={"broker": broker},
        warnings=tuple(unseen),
        notes=("a broker of this id that is started registers itself again",),
    )


class Unregister(FinalMutation):
    """Unregisters a broker."""

    name: ClassVar[str] = OPERATION
    no_undo: ClassVar[str] = "a broker that was unregistered is back when it is started"

    def check(self, services: Services, plan: Plan) -> None:
        _refuse_in_use(services, plan.arguments["broker"])

    def apply(self, services: Services, plan: Plan) -> Iterator[ItemResult]:
        services.kafka.replicas.unregister(plan.arguments["broker"])
        yield ItemResult(plan.changes[0].target, Status.DONE)

    def verify(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        broker = plan.arguments["broker"]

        def read() -> tuple[ItemResult, ...]:
            if all(one.id != broker for one in services.kafka.details.registered_brokers()):
                return tuple(results)
            error = VerificationFailed(f"broker {broker} is still registered", hint="`kops brokers list` shows it")
            return tuple(ItemResult(one.target, Status.FAILED, error=error.as_json()) for one in results)

        return settled(read, services.kafka.heard_by_all)

    def resume(self, services: Services, plan: Plan) -> Plan:
        return plan_unregister(services, plan.arguments["broker"])


UNREGISTERING = Unregister()


def _refuse_in_use(services: Services, broker: int) -> None:
    fenced = {one.id: one.fenced for one in services.kafka.details.registered_brokers()}
    if not fenced.get(broker, True):
        raise Refused(f"broker {broker} is in service", hint="stop it first; `kops brokers drain` moves its replicas before that")
    partitions = sum(broker in one.replicas for topic in services.kafka.topics.describe().values() for one in topic.partitions)
    if partitions:
        what = f"{counted(partitions, 'partition')} {'has' if partitions == 1 else 'have'}"
        raise Refused(f"{what} a replica on broker {broker}", hint=f"`kops brokers drain {broker}` moves them to other brokers")

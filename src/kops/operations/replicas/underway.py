"""What is being reassigned, whoever began it: shown, and cancelled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from kops.core.cluster.models import sizes_by_replica
from kops.core.errors import Refused, VerificationFailed
from kops.core.findings import counted
from kops.core.models import TopicPartition
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Status, not_done
from kops.core.replicas.reassignment import THROTTLED, Moving, Reassignment, place_of
from kops.core.replicas.space import replica_size
from kops.core.settings import own_settings
from kops.operations.protocol.mutation import Mutation, compare_guard, failed
from kops.operations.protocol.settling import settled
from kops.operations.replicas.plan import assemble, disks_of, look
from kops.operations.services import Services
from kops.operations.topics.listing import select_partitions

CANCEL = "topics.cancel"


def rows_under_way(services: Services, texts: Sequence[str], *, regex: bool = False) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a row per partition that is being reassigned, with the bytes that are left to copy, and what is not known."""
    moving = _chosen(services, texts, regex=regex)
    disks, warnings = disks_of(services, moving) if moving else ({}, [])
    sizes = sizes_by_replica(one for some in disks.values() for one in some)
    rows = []
    for place, found in moving.items():
        size, here = replica_size(place, sizes, None), sizes.get(place, {})
        left = None if size is None else sum(max(0, size - here.get(broker, 0)) for broker in found.adding)
        lists = {"replicas": list(found.target), "adding": list(found.adding), "removing": list(found.removing)}
        rows.append({"topic": place.topic, "partition": place.partition, **lists, "left_bytes": left})
    return rows, warnings


def _chosen(services: Services, texts: Sequence[str], *, regex: bool) -> dict[TopicPartition, Moving]:
    moving = services.kafka.replicas.moving()
    if not texts:
        return moving
    _, places = select_partitions(services, texts, regex=regex)
    return {place: found for place, found in moving.items() if place in set(places)}


@dataclass(frozen=True)
class Cancellation(Arguments):
    """What is cancelled, by partition as text: the replicas that it would have led to."""

    targets: dict[str, list[int]]

    def as_json(self) -> Json:
        return {"targets": self.targets}

    @classmethod
    def of_json(cls, body: Json) -> Cancellation:
        return cls({place: list(replicas) for place, replicas in body["targets"].items()})


def plan_cancel(services: Services, texts: Sequence[str], *, regex: bool = False) -> Plan[Cancellation]:
    """Plan to cancel what is under way: new replicas are deleted, and the old ones stay.

    :param texts: topics or globs, each with or without partitions; empty: all that is under way
    """
    moving = _chosen(services, texts, regex=regex)
    names = {place.topic for place in moving}
    settings = services.kafka.topics.settings(sorted(names), missing_ok=True)
    throttled = [name for name, found in settings.items() if any(own_settings(found).get(one) for one in THROTTLED)]
    hint = f"the throttle of {', '.join(throttled)} stays: `kops journal finish` removes it if kops set it, else `kops topics alter`"
    return Plan(
        operation=CANCEL,
        summary=f"cancel the reassignment of {counted(len(moving), 'partition')}" if moving else "nothing is being reassigned",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=[Item(str(place), "cancel", list(found.target), list(found.origin)) for place, found in moving.items()],
        guard={str(place): [list(found.adding), list(found.removing)] for place, found in moving.items()},
        arguments=Cancellation({str(place): list(found.target) for place, found in moving.items()}),
        warnings=(hint,) if throttled else (),
    )


class Cancel(Mutation[Cancellation]):
    """Cancels reassignments."""

    name: ClassVar[str] = CANCEL
    arguments: ClassVar[type[Cancellation]] = Cancellation

    def check(self, services: Services, plan: Plan[Cancellation]) -> None:
        moving = services.kafka.replicas.moving()
        actual = {str(place): [list(found.adding), list(found.removing)] for place, found in moving.items() if str(place) in plan.guard}
        compare_guard(plan, actual, "what is under way has")

    def apply(self, services: Services, plan: Plan[Cancellation]) -> Iterator[ItemResult]:
        items = {place_of(item.target): item for item in plan.changes}
        for place, error in services.kafka.replicas.reassign(dict.fromkeys(items)).items():
            yield ItemResult(str(place), Status.DONE) if error is None else failed(items[place], error)

    def verify(self, services: Services, plan: Plan[Cancellation], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:  # noqa: ARG002
        def read() -> tuple[ItemResult, ...]:
            topics = {place_of(result.target).topic for result in results}
            _, moving, now = look(services, topics)
            return tuple(_read_back(one, moving, {str(place): list(replicas) for place, replicas in now.items()}) for one in results)

        return settled(read, services.kafka.heard_by_all)

    def resume(self, services: Services, plan: Plan[Cancellation]) -> Plan[Cancellation]:
        """Plan to cancel what is still under way to the same replicas."""
        moving = services.kafka.replicas.moving()
        left = [text for text, target in plan.arguments.targets.items() if (at := moving.get(place_of(text))) and list(at.target) == target]
        return plan_cancel(services, left) if left else _nothing(services)

    def invert(self, services: Services, plan: Plan[Cancellation], results: Sequence[ItemResult]) -> Plan[Reassignment]:
        """Plan to begin again what was cancelled.

        :raises Refused: when nothing was cancelled
        """
        untouched = not_done(results)
        targets = {place_of(text): tuple(target) for text, target in plan.arguments.targets.items() if text not in untouched}
        topics, moving, now = look(services, {place.topic for place in targets})
        moves = {place: (now[place], target) for place, target in targets.items() if place in now and place not in moving}
        moves = {place: pair for place, pair in moves.items() if pair[0] != pair[1]}
        if not moves:
            raise Refused("the partitions are being moved, or are where they were to be moved, so there is nothing to undo")
        disks, warnings = disks_of(services, moves)
        return assemble(services, topics, moves, disks=disks, limit=None, batch=len(moves), warnings=warnings)


CANCELLATION = Cancel()


def _nothing(services: Services) -> Plan[Cancellation]:
    cluster_id = services.kafka.cluster().cluster_id
    return Plan(CANCEL, "nothing of it is under way", cluster_id, services.connection.label, (), arguments=Cancellation({}))


def _read_back(result: ItemResult, moving: Iterable[TopicPartition], now: dict[str, list[int]]) -> ItemResult:
    if result.status is not Status.DONE:
        return result
    if place_of(result.target) in moving:
        error = VerificationFailed(f"{result.target} is still being moved", hint="`kops topics reassignments` shows it")
        return ItemResult(result.target, Status.FAILED, error=error.as_json())
    return ItemResult(result.target, Status.DONE, value={"replicas": now.get(result.target)})

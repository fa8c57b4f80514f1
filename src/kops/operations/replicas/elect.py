"""Elections of leaders: of the preferred replica, or where no replica in sync is up, of one that lacks records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from kops.core.errors import VerificationFailed
from kops.core.findings import counted, names_text
from kops.core.models import Partition, Topic, TopicPartition
from kops.core.plan import Item, ItemResult, Plan, Severity, Status
from kops.core.replicas.reassignment import place_of
from kops.operations.protocol.mutation import FinalMutation, compare_guard, failed
from kops.operations.protocol.settling import settled
from kops.operations.replicas.plan import unseen_topics
from kops.operations.services import Services
from kops.operations.topics.listing import select_partitions

ELECT = "topics.elect-leaders"
_ELECT, _UNCLEAN = "elect", "elect uncleanly"


def plan_elect(services: Services, texts: Sequence[str], *, regex: bool = False, unclean: bool = False) -> Plan:
    """Plan to elect leaders where that changes something.

    :param texts: topics or globs, each with or without partitions; empty: every partition
    :param unclean: of partitions without a leader, let a replica lead that is up, with the loss of what it has not copied
    """
    unseen = [] if texts else unseen_topics(services, (), "would keep the leaders that they have")
    everything = services.kafka.topics.describe() if not texts else select_partitions(services, texts, regex=regex)[0]
    chosen = set(select_partitions(services, texts, regex=regex)[1]) if texts else None
    partitions = {place: one for place, one in _partitions(everything.values()) if chosen is None or place in chosen}
    up = {broker.id for broker in services.kafka.cluster().brokers} - set(services.kafka.down())
    items, warnings = _unclean(partitions, up) if unclean else _preferred(partitions)
    topics = sorted({place_of(item.target).topic for item in items})
    return Plan(
        operation=ELECT,
        summary=_summary(items, unclean=unclean),
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=items,
        severity=Severity.SEVERE if unclean and items else Severity.MODERATE,
        confirm="" if not (unclean and items) else topics[0] if len(topics) == 1 else f"{len(topics)} topics",
        guard={item.target: item.before for item in items},
        arguments={"unclean": unclean},
        warnings=(*warnings, *unseen),
    )


def _preferred(partitions: dict[TopicPartition, Partition]) -> tuple[list[Item], list[str]]:
    items, lagging = [], []
    for place, one in sorted(partitions.items()):
        if one.leader == one.replicas[0]:
            continue
        if one.replicas[0] in one.in_sync_replicas:
            items.append(Item(str(place), _ELECT, one.leader, one.replicas[0]))
        else:
            lagging.append(place)
    said = [f"{names_text(lagging)}: the preferred replica is not in sync, so it cannot lead yet"] if lagging else []
    return items, said


def _unclean(partitions: dict[TopicPartition, Partition], up: set[int]) -> tuple[list[Item], list[str]]:
    items, hopeless = [], []
    for place, one in sorted(partitions.items()):
        if one.leader is not None:
            continue
        here = [broker for broker in one.replicas if broker in up]
        if here:
            items.append(
                Item(str(place), _UNCLEAN, None, here[0], f"in sync, and down: {', '.join(map(str, one.in_sync_replicas)) or 'none'}")
            )
        else:
            hopeless.append(place)
    loss = "every record that only replicas that are down have is lost for good, acknowledged ones too; nothing that is up knows how many"
    offsets = "groups that have read further than the new log end start where auto.offset.reset says"
    said = [f"{names_text(hopeless)}: no replica is up"] if hopeless else []
    return items, [*([loss, offsets] if items else []), *said]


class Elect(FinalMutation):
    """Elects leaders."""

    name: ClassVar[str] = ELECT
    no_undo: ClassVar[str] = "an election cannot be undone: which replica is preferred follows from the order of the replicas"
    instead: ClassVar[str | None] = "`kops brokers demote` keeps a broker from leading"

    def locks(self, plan: Plan) -> Iterable[str]:
        return [f"leader of {item.target}" for item in plan.changes]

    def check(self, services: Services, plan: Plan) -> None:
        found = dict(_partitions(services.kafka.topics.existing({place_of(target).topic for target in plan.guard}).values()))
        actual = {target: found[place].leader if (place := place_of(target)) in found else "gone" for target in plan.guard}
        compare_guard(plan, actual, "leaders were")

    def apply(self, services: Services, plan: Plan) -> Iterator[ItemResult]:
        items = {place_of(item.target): item for item in plan.changes}
        for place, error in services.kafka.replicas.elect(items, unclean=plan.arguments["unclean"]).items():
            yield ItemResult(str(place), Status.DONE) if error is None else failed(items[place], error)

    def verify(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        wanted = {item.target: item.after for item in plan.changes}
        unclean = plan.arguments["unclean"]

        def read() -> tuple[ItemResult, ...]:
            topics = services.kafka.topics.existing({place_of(result.target).topic for result in results})
            leaders = {str(place): one.leader for place, one in _partitions(topics.values())}
            return tuple(_read_back(one, leaders.get(one.target), None if unclean else wanted[one.target]) for one in results)

        return settled(read, services.kafka.heard_by_all)

    def resume(self, services: Services, plan: Plan) -> Plan:
        return plan_elect(services, [item.target for item in plan.changes], unclean=plan.arguments["unclean"])


ELECTION = Elect()


def _read_back(result: ItemResult, leader: int | None, wanted: int | None) -> ItemResult:
    """Return the result with the leader that there is now.

    :param wanted: None: any will do
    """
    if result.status is not Status.DONE:
        return result
    if leader is None or wanted not in (None, leader):
        error = VerificationFailed(
            f"{result.target} is led by {'none' if leader is None else leader}", hint="`kops topics describe` shows it"
        )
        return ItemResult(result.target, Status.FAILED, error=error.as_json())
    return ItemResult(result.target, Status.DONE, value={"leader": leader})


def _partitions(topics: Iterable[Topic]) -> Iterator[tuple[TopicPartition, Partition]]:
    return ((place, one) for topic in topics for place, one in zip(topic.places, topic.partitions, strict=True))


def _summary(items: Sequence[Any], *, unclean: bool) -> str:
    if not items:
        return "every partition has a leader" if unclean else "every partition is led by its preferred replica, as far as that is in sync"
    how = " that may lack records" if unclean else ""
    return f"elect leaders{how} of {counted(len(items), 'partition')}"

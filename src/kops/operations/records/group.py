"""Reading as a group: the only way in which ``records consume`` changes anything, so it runs through the safety protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from kops.core.errors import GroupActive, Refused, UsageProblem, VerificationFailed
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.offsets.moves import ABSENT, group_moves
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Status
from kops.operations.groups.matching import refuse_active
from kops.operations.offsets.arguments import Moves
from kops.operations.offsets.checks import group_or_none
from kops.operations.offsets.items import committed_json, committed_of_json, offset_of, partition_of
from kops.operations.offsets.move import MOVE
from kops.operations.protocol.mutation import Mutation
from kops.operations.records.consume import ReadRequest
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.gateways.kafka.records_group import GroupReader

Drain = Callable[["GroupReader"], None]
"""Writes out the records of a reader, reports and commits what is written, until the reader ends or is interrupted."""


@dataclass(frozen=True, slots=True)
class ConsumeArguments(Arguments):
    """The arguments of ``records.consume``.

    :param ends: the offset at which to stop, per partition; None: continue with new records
    :param prior: the previous commit of each partition; None: there was none
    """

    group: str
    topic: str
    isolation: str
    ends: Mapping[TopicPartition, int] | None
    prior: Mapping[TopicPartition, CommittedOffset | None]
    new_group: bool

    def as_json(self) -> Json:
        return {
            "group": self.group,
            "topic": self.topic,
            "isolation": self.isolation,
            "ends": None if self.ends is None else {str(partition): end for partition, end in self.ends.items()},
            "prior": {str(partition): committed_json(committed) for partition, committed in self.prior.items()},
            "new_group": self.new_group,
        }

    @classmethod
    def of_json(cls, body: Json) -> ConsumeArguments:
        ends = None if body["ends"] is None else {partition_of(name): end for name, end in body["ends"].items()}
        return cls(body["group"], body["topic"], body["isolation"], ends, committed_of_json(body["prior"]), body["new_group"])


def plan_consume(services: Services, group_id: str, wanted: ReadRequest) -> Plan[ConsumeArguments]:
    """Plan to read a topic as a group.

    :raises GroupActive: when the group has members, from which reading would take partitions
    :raises UsageProblem: for some partitions of a topic: a group always shares all of them
    """
    if wanted.selection.partitions is not None:
        raise UsageProblem("a group reads whole topics", hint="leave the partitions out, or leave --group out to read some of them")
    topic = wanted.selection.topic
    bounds = services.kafka.offsets.bounds(services.kafka.offsets.partitions_of([topic])[topic])
    group = group_or_none(services, group_id)
    _refuse_members(services, group_id)
    prior = services.kafka.groups.committed([group_id])[group_id]
    return Plan(
        operation=ConsumeAsGroup.name,
        summary=f"join group {group_id}, read {topic} and commit what is read",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(Item(str(partition), "read", offset_of(prior.get(partition)), None, "") for partition in sorted(bounds)),
        arguments=ConsumeArguments(
            group_id,
            topic,
            wanted.isolation,
            ends=None if wanted.follow else {partition: bound.log_end_offset for partition, bound in bounds.items()},
            prior={partition: prior.get(partition) for partition in bounds},
            new_group=group is None,
        ),
    )


class ConsumeAsGroup(Mutation[ConsumeArguments]):
    """Joins a group without members, reads, and commits what was written out.

    :param drain: None in the registry of mutations, which needs it for undo only
    :param single: see ``GroupReader``
    """

    name: ClassVar[str] = "records.consume"
    arguments = ConsumeArguments

    def __init__(self, drain: Drain | None = None, *, single: bool = False) -> None:
        self._drain = drain
        self._single = single

    def locks(self, plan: Plan[ConsumeArguments]) -> Iterable[str]:
        return (plan.arguments.group,)

    def check(self, services: Services, plan: Plan[ConsumeArguments]) -> None:
        if self._drain is None:
            raise Refused("records are read by their own command", hint="`kops records consume TOPIC --group GROUP`")
        _refuse_members(services, plan.arguments.group)

    def apply(self, services: Services, plan: Plan[ConsumeArguments]) -> Iterator[ItemResult]:
        """Read until the drain returns, leave the group, and yield what was committed."""
        given = plan.arguments
        reader = services.kafka.records.as_group(given.group, given.topic, given.ends, isolation=given.isolation, single=self._single)
        assert self._drain is not None  # noqa: S101 - check() has refused
        try:
            self._drain(reader)
        finally:
            reader.close()
        for item in plan.items:
            offset = reader.committed.get(partition_of(item.target))
            yield ItemResult(item.target, Status.UNCHANGED if offset in (None, item.before) else Status.DONE, value=offset)

    def verify(self, services: Services, plan: Plan[ConsumeArguments], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        found = services.kafka.groups.committed([plan.arguments.group])[plan.arguments.group]
        return tuple(_verified(result, offset_of(found.get(partition_of(result.target)))) for result in results)

    def covers(self, services: Services, plan: Plan[ConsumeArguments], earlier: Plan[ConsumeArguments]) -> bool:  # noqa: ARG002 - the contract
        """Whether the group has read on in every partition since: that is all that was left."""
        same = (plan.arguments.group, plan.arguments.topic) == (earlier.arguments.group, earlier.arguments.topic)
        return same and earlier.arguments.prior.keys() <= plan.arguments.prior.keys()

    def invert(self, services: Services, plan: Plan[ConsumeArguments], results: Sequence[ItemResult]) -> Plan[Any]:
        """Plan to restore the group's previous offsets; for a partition without a result, whatever its current commit is."""
        given = plan.arguments
        done = {partition_of(result.target): CommittedOffset(result.value) for result in results if result.status is Status.DONE}
        known = {partition_of(result.target) for result in results}
        found = services.kafka.groups.committed([given.group])[given.group]
        unsure = {partition: CommittedOffset(found[partition].offset) for partition in given.prior.keys() - known if partition in found}
        done |= unsure
        moved = group_moves(given.group, ABSENT if given.new_group else "", {at: (one, "") for at, one in done.items()}, given.prior)
        moving: Plan[Any] = plan
        back = MOVE.invert(services, replace(moving, arguments=Moves((moved,))), results)
        if not unsure:
            return back
        so = "it was stopped in the middle, so its own commits and later ones of others cannot be distinguished"
        return replace(back, warnings=(so, *back.warnings))


CONSUME = ConsumeAsGroup()


def _refuse_members(services: Services, group_id: str) -> None:
    group = group_or_none(services, group_id)
    if group is None:
        return
    try:
        refuse_active(group)
    except GroupActive as active:
        raise GroupActive(
            active.message, hint="joining it would take partitions from them; leave --group out to look without joining", **active.details
        ) from active


def _verified(result: ItemResult, found: int | None) -> ItemResult:
    if result.status is not Status.DONE or result.value == found:
        return result
    error = VerificationFailed(
        f"{result.target}: committed {result.value}, and read back {found}", hint="was the group moved by another client?"
    )
    return ItemResult(result.target, Status.FAILED, error=error.as_json(), value=found)

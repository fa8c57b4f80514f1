"""The mutation that restores an archive: a replay that reads Parquet, creates its topic, and commits the offsets of groups."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from kops.core.errors import NotFound, OperationFailed, StateMoved
from kops.core.models import TopicPartition
from kops.core.plan import Arguments, ItemResult, Plan, Status
from kops.operations.archive.place import Place
from kops.operations.protocol.mutation import failed
from kops.operations.replay.arguments import RestoreArguments
from kops.operations.replay.progress import forget_progress, progress_of, refuse_forgotten
from kops.operations.replay.proof import proven
from kops.operations.replay.restore_groups import MOVE, commit_groups, refuse_active_groups, verified_groups
from kops.operations.replay.run import Replay
from kops.operations.replay.work import Work
from kops.operations.services import Services
from kops.operations.topics.read_back import POLL_SECONDS, SETTLE_SECONDS

if TYPE_CHECKING:
    from kops.spark.replay.jobs import PartitionRange
    from kops.spark.types import DataFrame


_SENDING = ("send", "prove")


class Restore(Replay[RestoreArguments]):
    name: ClassVar[str] = "replay.restore"
    arguments: ClassVar[type[Arguments] | None] = RestoreArguments

    def check(self, services: Services, plan: Plan[RestoreArguments]) -> None:
        """Refuse when the target has changed, a group has members, or this was carried out before."""
        given = plan.arguments
        resumed = given.resumed
        if given.create and not resumed and services.kafka.topics.existing([given.anchor]):
            raise StateMoved(f"{given.anchor} was made since the plan was", hint="run the command again")
        done = progress_of(services, given.replay, list(plan.arguments.ranges), stable=False, settled=resumed)
        if resumed:
            refuse_forgotten(services, plan, done)
        elif done:
            raise StateMoved("this plan was carried out before", hint="`kops journal list` shows it; `kops replay resume ID` continues")
        refuse_active_groups(services, list(given.groups))
        super().check(services, replace(plan, arguments=replace(given, ranges={})))

    def apply(self, services: Services, plan: Plan[RestoreArguments]) -> Iterator[ItemResult]:
        """Create the topic, send each partition's records, and commit the offsets of groups once all are there."""
        given = plan.arguments
        for item in plan.changes:
            if item.action == "create" and given.create is not None:
                error = services.kafka.topics.create([given.create])[item.target]
                yield ItemResult(item.target, Status.DONE) if error is None else failed(item, error)
                if error is not None:
                    return
                _wait_for_leaders(services, given.targets)
        results = []
        for result in super().apply(services, _sending(plan)):
            results.append(result)
            yield result
        if all(result.status is Status.DONE for result in results):
            yield from commit_groups(services, plan, sorted({each for result in results for each in result.value["producers"]}))
            return
        for item in plan.changes:
            if item.action == MOVE:
                yield failed(item, OperationFailed("not all records are there", hint="`kops replay resume ID` continues"))

    def verify(self, services: Services, plan: Plan[RestoreArguments], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Read back what is in the target and what groups have committed."""
        actions = {item.target: item.action for item in plan.items}
        found = (
            *(result for result in results if actions[result.target] == "create"),
            *proven(services, plan, [result for result in results if actions[result.target] in _SENDING]),
            *verified_groups(services, plan, [result for result in results if actions[result.target] == MOVE]),
        )
        if all(result.status is Status.DONE for result in found):
            forget_progress(services, plan.arguments.replay, list(plan.arguments.ranges))
        return found

    def resume(self, services: Services, plan: Plan[RestoreArguments]) -> Plan:
        """Return the plan for what is left; a topic that was created is not created again."""
        there = services.kafka.topics.existing([plan.arguments.anchor])
        left = super().resume(services, _sending(plan))
        before = [item for item in plan.items if item.action == "create" and not there]
        return replace(left, items=(*before, *left.items, *(item for item in plan.items if item.action == MOVE)))

    def invert(self, services: Services, plan: Plan[RestoreArguments], results: Sequence[ItemResult]) -> Plan:
        """Return the plan that deletes what was sent, where nothing else is.

        :raises Refused: when it cannot be removed
        """
        records = [result for result in results if isinstance(result.value, dict)]
        back = super().invert(services, plan, records)
        groups = ", ".join(plan.arguments.groups)
        left = f"the offsets that {groups} got stay as they are: `kops offsets delete` takes them away"
        return replace(back, warnings=(*back.warnings, left)) if groups else back


RESTORE = Restore()


def _wait_for_leaders(services: Services, targets: Mapping[str, int]) -> None:
    """Wait until the brokers know who leads a topic that was just created."""
    places = [TopicPartition(topic, number) for topic, count in targets.items() for number in range(count)]
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        try:
            services.kafka.offsets.bounds(places)
        except (OperationFailed, NotFound):
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_SECONDS)
        else:
            return


def _sending(plan: Plan[RestoreArguments]) -> Plan:
    return replace(plan, items=tuple(item for item in plan.items if item.action in _SENDING))


def rows_of_archive(work: Work[RestoreArguments], parts: Sequence[PartitionRange]) -> DataFrame:
    """Return the rows to send from an archive, one task per partition, in the order of the offsets."""
    from kops.spark.reading.archive import in_parts, read_archive
    from kops.spark.replay.expressions import COLUMNS

    given = work.arguments
    place = Place(given.path)
    rows = in_parts(read_archive(work.engine.session, [place.records(run) for run in given.runs]), [part.partition for part in parts])
    new = {"topic": f"'{given.anchor}' as topic", "target_partition": "partition as target_partition"}
    return rows.selectExpr(*(new.get(name, name) for name in COLUMNS))

"""The mutation that restores an archive: a replay that reads Parquet, makes its topic, and commits the offsets of groups."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from kops.core.errors import NotFound, OperationFailed, StateMoved
from kops.core.models import NewTopic, TopicPartition
from kops.core.plan import ItemResult, Plan, Status
from kops.operations.protocol.engine import failed
from kops.operations.replay.progress import forget_progress, progress_of, refuse_forgotten
from kops.operations.replay.proof import proven
from kops.operations.replay.restore_groups import MOVE, commit_groups, refuse_active_groups, verified_groups
from kops.operations.replay.run import Replay
from kops.operations.services import Services
from kops.operations.topics.read_back import POLL_SECONDS, SETTLE_SECONDS

_SENDING = ("send", "prove")


class Restore(Replay):
    """Sends the records of an archive."""

    name: ClassVar[str] = "replay.restore"

    def check(self, services: Services, plan: Plan) -> None:
        """Refuse when the target is another than it was, a group has members, or this was carried out before."""
        given = plan.arguments
        resumed = given.get("resumed")
        if given["create"] and not resumed and services.kafka.topics.existing([given["target"]]):
            raise StateMoved(f"{given['target']} was made since the plan was", hint="run the command again")
        done = progress_of(services, given["replay"], _partitions(plan), stable=False, settled=bool(resumed))
        if resumed:
            refuse_forgotten(services, plan, done)
        elif done:
            raise StateMoved("this plan was carried out before", hint="`kops journal list` shows it; `kops replay resume ID` continues")
        refuse_active_groups(services, list(given["groups"]))
        super().check(services, replace(plan, arguments={**given, "ranges": {}}))

    def apply(self, services: Services, plan: Plan) -> Iterator[ItemResult]:
        """Make the topic, send each partition's records, and commit the offsets of groups once all are there."""
        given = plan.arguments
        for item in plan.changes:
            if item.action == "create":
                error = services.kafka.topics.create([NewTopic(**given["create"])])[item.target]
                yield ItemResult(item.target, Status.DONE) if error is None else failed(item, error)
                if error is not None:
                    return
                _wait_for_leaders(services, given["targets"])
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

    def verify(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Read back what is in the target and what groups have committed."""
        actions = {item.target: item.action for item in plan.items}
        found = (
            *(result for result in results if actions[result.target] == "create"),
            *proven(services, plan, [result for result in results if actions[result.target] in _SENDING]),
            *verified_groups(services, plan, [result for result in results if actions[result.target] == MOVE]),
        )
        if all(result.status is Status.DONE for result in found):
            forget_progress(services, plan.arguments["replay"], _partitions(plan))
        return found

    def resume(self, services: Services, plan: Plan) -> Plan:
        """Return the plan for what is left; a topic that was made is not made again."""
        there = services.kafka.topics.existing([plan.arguments["target"]])
        left = super().resume(services, _sending(plan))
        before = [item for item in plan.items if item.action == "create" and not there]
        return replace(left, items=(*before, *left.items, *(item for item in plan.items if item.action == MOVE)))

    def invert(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> Plan:
        """Return the plan that deletes what was sent, where nothing else is.

        :raises Refused: when it cannot be taken out
        """
        records = [result for result in results if isinstance(result.value, dict)]
        back = super().invert(services, plan, records)
        groups = ", ".join(plan.arguments["groups"])
        left = f"the offsets that {groups} got stay as they are: `kops offsets delete` takes them away"
        return replace(back, warnings=(*back.warnings, left)) if groups else back


RESTORE = Restore()


def _wait_for_leaders(services: Services, targets: Mapping[str, int]) -> None:
    """Wait until the brokers know who leads a topic that was just made."""
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


def _partitions(plan: Plan) -> list[int]:
    return [int(number) for number in plan.arguments["ranges"]]


def _sending(plan: Plan) -> Plan:
    """Return the part of a plan that sends."""
    return replace(plan, items=tuple(item for item in plan.items if item.action in _SENDING))

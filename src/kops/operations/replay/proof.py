"""The proof of a replay: count and fingerprint of what is in the target, compared with what was sent, both in any order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kops.core.errors import AuthorizationFailed, OperationFailed, TimedOut, VerificationFailed
from kops.core.findings import counted
from kops.core.models import Bounds, TopicPartition
from kops.core.plan import ItemResult, Plan, Status
from kops.formats.batches.copy import added
from kops.operations.engine.stable import settled_bounds
from kops.operations.offsets.items import partition_of
from kops.operations.replay.arguments import Given
from kops.operations.replay.progress import known_producers
from kops.operations.replay.request import KEEP
from kops.operations.replay.work import Work
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.spark.replay.tasks import PartitionTotals

OTHERS = "records_of_others"
"""Key for the number of records that others wrote to the targets since the plan was made."""


@dataclass(frozen=True)
class Totals:
    """A number of records, and the sum of the fingerprints of their batches."""

    records: int = 0
    fingerprint: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(self.records + other.records, added(self.fingerprint, other.fingerprint))


def proven(services: Services, plan: Plan[Given], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
    """Return the results, with what was found in the target; FAILED where it differs from what was sent."""
    values = {result.target: result.value for result in results if isinstance(result.value, dict)}
    found = read_targets(
        services, plan, sorted({producer for value in values.values() for producer in value["producers"]} | known_producers(services, plan))
    ).found
    by_partition = plan.arguments.partition_by == KEEP and len(plan.arguments.targets) == 1
    sent = {target: Totals(value["records"], int(value["fingerprint"], 16)) for target, value in values.items()}
    results = tuple(_compared_with_count(plan, result) for result in results)
    if by_partition:
        topic = plan.arguments.anchor
        there = {target: _sum_of(found.get(TopicPartition(topic, partition_of(target).partition))) for target in values}
        judged = tuple(_judged(result, sent.get(result.target), there.get(result.target), plan) for result in results)
        return _with_others(judged, found)
    total = sum(map(_sum_of, found.values()), Totals())
    wanted = sum(sent.values(), Totals())
    return _with_others(tuple(_judged(result, wanted, total, plan, shown=sent.get(result.target)) for result in results), found)


def _compared_with_count(plan: Plan[Given], result: ItemResult) -> ItemResult:
    """Return a result; FAILED if as many records were sent of a partition as the plan did not count in its range of time."""
    given = plan.arguments
    counted_before = given.of_times.get(partition_of(result.target).partition)
    if result.status is not Status.DONE or counted_before is None or given.limit is not None or given.changes.some:
        return result
    sent = result.value["records"]
    if sent == counted_before:
        return result
    error = VerificationFailed(
        f"{result.target}: {counted(sent, 'record')} of the range of time sent, and {counted_before:,} counted when it was planned",
        hint="compaction or retention has deleted some since, or transactions were decided; what was sent is in the target",
        sent=sent,
        counted=counted_before,
    )
    return ItemResult(result.target, Status.FAILED, error=error.as_json(), value=result.value)


def _with_others(results: tuple[ItemResult, ...], found: Mapping[TopicPartition, PartitionTotals]) -> tuple[ItemResult, ...]:
    """Return the results; if others have written to the targets since the plan was made, the first that is done has their count."""
    others = sum(each.others for each in found.values())
    first = next((at for at, result in enumerate(results) if result.status is Status.DONE and isinstance(result.value, dict)), None)
    if not others or first is None:
        return results
    more = results[first]._replace(value={**results[first].value, OTHERS: others})
    return (*results[:first], more, *results[first + 1 :])


@dataclass(frozen=True)
class TargetContents:
    """What targets hold since a plan was made.

    :param ends: of all their partitions: everything before these offsets was read, and nothing after them
    """

    found: Mapping[TopicPartition, PartitionTotals]
    ends: Mapping[TopicPartition, int]


def read_targets(services: Services, plan: Plan[Given], producers: Sequence[int]) -> TargetContents:
    from kops.spark.replay.tasks import found_in

    before = plan.arguments.ends
    after = bounds_of_targets(services, before)
    ends = {place: bound.log_end_offset for place, bound in after.items()}
    tails = {
        (place.topic, place.partition): (max(end, after[place].log_start_offset), after[place].log_end_offset)
        for place, end in before.items()
        if after[place].log_end_offset > end
    }
    if not tails:
        return TargetContents({}, ends)
    work = Work(services, plan.arguments)
    services.progress.step("reading back what is in the target")
    settings = work.job(1).target_settings
    try:
        found = found_in(work.engine.tasks, settings, tails, producers, inflated=plan.arguments.inflated)
    except OperationFailed as failure:
        if "TopicAuthorizationFailed" not in failure.message:
            raise
        names = ", ".join(sorted({topic for topic, _ in tails}))
        raise AuthorizationFailed(
            f"what is in {names} cannot be read back (lacks READ on topic {names})",
            hint="what was sent is there; `kops replay resume ID` proves it once the principal may read it",
        ) from failure
    return TargetContents({TopicPartition(*place): each for place, each in found.items()}, ends)


def bounds_of_targets(services: Services, places: Iterable[TopicPartition]) -> Mapping[TopicPartition, Bounds]:
    """Return the bounds of partitions of the targets once nothing is hidden there.

    :raises TimedOut: when another producer's transaction stays open for too long
    """
    try:
        return settled_bounds(services, places)
    except TimedOut as late:
        late.hint = "another producer's transaction is open; `kops replay resume ID` reads back again when it has ended"
        raise


def _sum_of(found: PartitionTotals | None) -> Totals:
    return Totals(found.records, found.fingerprint) if found else Totals()


def _judged(result: ItemResult, sent: Totals | None, there: Totals | None, plan: Plan[Given], *, shown: Totals | None = None) -> ItemResult:
    """Return a result, checked by reading back.

    :param shown: the share of ``sent`` that belongs to this item
    """
    if result.status is not Status.DONE or sent is None or there is None:
        return result
    recompressed = plan.arguments.inflated and plan.arguments.new_times  # with new times, so that the content is another
    same = sent.records == there.records if recompressed else sent == there
    value: Mapping[str, Any] = {key: each for key, each in result.value.items() if key != "producers"}
    if same:
        in_target = there if shown is None else shown
        more = {"in_target": {"records": in_target.records, "fingerprint": f"{in_target.fingerprint:016x}"}}
        return result._replace(value={**value, **more, "producers": result.value["producers"]})
    error = VerificationFailed(
        f"{result.target}: sent {counted(sent.records, 'record')}, found {there.records:,} in the target"
        + ("" if sent.records != there.records else ", but not with the same content"),
        hint="were records deleted there meanwhile, by compaction or retention? `kops journal show ID` has the numbers",
        sent={"records": sent.records, "fingerprint": f"{sent.fingerprint:016x}"},
        in_target={"records": there.records, "fingerprint": f"{there.fingerprint:016x}"},
    )
    return ItemResult(result.target, Status.FAILED, error=error.as_json(), value=result.value)

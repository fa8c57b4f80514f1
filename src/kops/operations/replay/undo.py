"""Undo of a replay: possible where its records are alone, and refused with the reason where they are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from kops.core.errors import Refused, StateMoved
from kops.core.findings import counted
from kops.core.plan import Arguments, ItemResult, Json, Plan
from kops.operations.replay.arguments import Given
from kops.operations.replay.progress import forget_progress, known_producers, progress_of
from kops.operations.replay.proof import TargetContents, read_targets
from kops.operations.services import Services
from kops.operations.topics.truncate import TruncateTopics, Truncation, below_of_json, plan_truncate_at


@dataclass(frozen=True)
class ReplayTruncation(Truncation):
    """The records of a replay, and the replay and partitions whose progress is deleted with them."""

    replay: str
    partitions: tuple[int, ...]

    def as_json(self) -> Json:
        return {**super().as_json(), "replay": self.replay, "partitions": list(self.partitions)}

    @classmethod
    def of_json(cls, body: Json) -> ReplayTruncation:
        return cls(below_of_json(body["below"]), body["replay"], tuple(body["partitions"]))


class UndoReplay(TruncateTopics[ReplayTruncation]):
    """Deletes what a replay sent into topics of its own, and its progress."""

    name: ClassVar[str] = "replay.undo"
    arguments: ClassVar[type[Arguments]] = ReplayTruncation

    def apply(self, services: Services, plan: Plan[ReplayTruncation]) -> Iterator[ItemResult]:
        yield from super().apply(services, plan)
        forget_progress(services, plan.arguments.replay, plan.arguments.partitions)


UNDO = UndoReplay()


def plan_undo(services: Services, plan: Plan[Given], results: Sequence[ItemResult]) -> Plan:
    """Return the plan that deletes a replay's records.

    :raises Refused: when the targets had records before, or have none of the replay
    """
    names = ", ".join(plan.arguments.targets)
    partitions = list(plan.arguments.ranges)
    done = progress_of(services, plan.arguments.replay, partitions, stable=False, settled=False)
    producers = {producer for result in results if isinstance(result.value, dict) for producer in result.value["producers"]}
    producers |= {producer for sent in done.values() for producer in sent.producers} | known_producers(services, plan)
    _refuse_other_topics(services, plan)
    seen = read_targets(services, plan, sorted(producers))
    ours, others = (sum(getattr(each, name) for each in seen.found.values()) for name in ("records", "others"))
    if not ours and (others or not plan.arguments.own):
        raise Refused(f"nothing of the replay is in {names}: there is nothing to undo", records=0, producers=sorted(producers))
    if not plan.arguments.own:
        since = plan.arguments.no_undo or "it had records before"
        sent = f"the {counted(ours, 'record')} that the replay sent to {names}"
        raise Refused(
            f"{sent} cannot be taken out: {since}, and Kafka deletes from the start only",
            hint="readers have to leave them out; `kops journal show ID` says which producers wrote them",
            records=ours,
            producers=sorted(producers),
        )
    back = plan_truncate_at(services, seen.ends)  # records that arrived after the check stay
    arguments = ReplayTruncation(back.arguments.below, plan.arguments.replay, tuple(partitions))
    summary = f"undo the replay: {back.summary}"
    return replace(back, operation=UndoReplay.name, summary=summary, arguments=arguments, losses=tuple(_losses(seen)))


def _losses(seen: TargetContents) -> Iterator[str]:
    """Yield what is lost with the records of the replay: records of others among them, which Kafka cannot keep."""
    others: dict[str, int] = {}
    for place, found in seen.found.items():
        if found.others:
            others[place.topic] = others.get(place.topic, 0) + found.others
    for topic, count in sorted(others.items()):
        yield f"{counted(count, 'record')} of others in {topic}, among those of the replay, and Kafka deletes from the start only"


def _refuse_other_topics(services: Services, plan: Plan[Given]) -> None:
    """Refuse when a target was deleted and created again: its records now are not those of the replay.

    :raises StateMoved: naming it
    """
    there = services.kafka.topics.existing(plan.guard["topics"])
    other = [name for name, topic_id in plan.guard["topics"].items() if name not in there or there[name].topic_id != topic_id]
    if other:
        raise StateMoved(
            f"{', '.join(other)} was deleted, or created again, since the replay: what it sent is gone",
            hint="there is nothing to undo",
        )

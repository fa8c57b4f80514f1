"""The mutation that moves replicas: throttle, batches, leaders, throttle removed; and the one that cancels what is under way."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from kops.core.cluster.models import sizes_by_replica
from kops.core.errors import KopsError, NothingToUndo, StateMoved, TimedOut, VerificationFailed
from kops.core.findings import counted, names_text
from kops.core.models import Topic, TopicPartition
from kops.core.plan import Item, ItemResult, Plan, Status, not_done
from kops.core.replicas.planner import Replicas
from kops.core.replicas.reassignment import Moving, Reassignment, place_of
from kops.core.replicas.space import Moves, replica_size
from kops.operations.protocol.mutation import Mutation, compare_guard, failed
from kops.operations.protocol.settling import settled
from kops.operations.replicas import throttle
from kops.operations.replicas.plan import REASSIGN, THROTTLE, assemble, disks_of, look
from kops.operations.services import Services

POLL_SECONDS, LATER_SECONDS = 0.2, 1.0
"""How often it is looked what has arrived: at first, and after ``_SOON``."""
_SOON = 5.0
STALL_SECONDS = 300.0
"""Copies that stand still for this long are not waited for: a broker is down, or a throttle is lower than what is written."""


class Reassign(Mutation[Reassignment]):
    """Moves replicas, a batch of partitions at a time."""

    name: ClassVar[str] = REASSIGN
    arguments: ClassVar[type[Reassignment]] = Reassignment
    can_leave_partial: ClassVar[bool] = True

    def locks(self, plan: Plan[Reassignment]) -> Iterable[str]:
        return [*(f"replicas of {name}" for name in plan.arguments.ids), *(["the replication throttle"] if plan.arguments.throttle else [])]

    def check(self, services: Services, plan: Plan[Reassignment]) -> None:
        places = list(map(place_of, plan.guard["placement"]))
        topics, _, now = look(services, plan.arguments.ids)
        actual: dict[str, Any] = {
            "placement": {str(place): list(now.get(place, ())) for place in places},
            "topic_ids": {name: topics[name].topic_id if name in topics else None for name in plan.arguments.ids},
            "throttle": None,
        }
        if plan.guard["throttle"] is not None and plan.arguments.throttle is not None:
            actual["throttle"] = throttle.own_now(services, plan.arguments.throttle)
        compare_guard(plan, actual, "replicas, topics or their throttle were")

    def apply(self, services: Services, plan: Plan[Reassignment]) -> Iterator[ItemResult]:
        todo = _todo(plan)
        if plan.arguments.throttle is not None and todo:
            throttle.put_on(services, plan.arguments.throttle, plan.arguments.moves)
        run = _Run(services, plan, todo)
        yield from run.results()
        _elect(services, run.done, plan.arguments.moves)
        if plan.arguments.throttle is None:
            return
        if run.stuck:
            error = TimedOut("the throttle stays, since replicas are still being copied", hint="`kops journal finish` removes it later")
            yield ItemResult(THROTTLE, Status.UNKNOWN, error=error.as_json())
        else:
            yield ItemResult(
                THROTTLE, Status.DONE, value=throttle.taken_off(services, plan.arguments.throttle, plan.arguments.moves) or None
            )

    def verify(self, services: Services, plan: Plan[Reassignment], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        def read() -> tuple[ItemResult, ...]:
            topics, moving, now = look(services, plan.arguments.ids)
            leaders = _leaders(topics)
            return tuple(_read_back(one, plan, moving, now, leaders) for one in results)

        return settled(read, services.kafka.heard_by_all)

    def resume(self, services: Services, plan: Plan[Reassignment]) -> Plan[Reassignment]:
        """Plan what has not arrived yet, what is under way included, and to remove the throttle."""
        arguments = plan.arguments
        topics, moving, now = look(services, arguments.ids)
        todo = {place_of(item.target) for item in plan.changes if item.target != THROTTLE}
        same = {place for place in todo if _is_same(place, topics, arguments)}
        strayed = [place for place in sorted(same) if now[place] not in (*arguments.moves[place], plan_before(plan, place))]
        leaders = _leaders(topics)
        left = [
            place
            for place in sorted(same - set(strayed))
            if now[place] != arguments.moves[place][1] or place in moving or _awaits_leader(place, topics, leaders, arguments.moves)
        ]
        gone = sorted({place.topic for place in todo - same})
        warnings = [f"{names_text(strayed)}: reassigned by others since: left alone"] if strayed else []
        warnings += [f"{names_text(gone)}: deleted or recreated since: left alone"] if gone else []
        there = {name: topic for name, topic in topics.items() if name not in gone}
        limit = arguments.throttle
        if limit is not None and not left and not throttle.is_left(services, limit, arguments.moves):
            limit = None
        disks, unknown = disks_of(services, left)
        moves = {place: pair for place, pair in arguments.moves.items() if place.topic in there}
        warnings += unknown
        batch = arguments.batch
        return assemble(services, there, moves, disks=disks, limit=limit, batch=batch, warnings=warnings, left=left, now=now, moving=moving)

    def can_be_undone(self, plan: Plan[Reassignment]) -> bool:
        """Whether replicas are moved: a plan may only take the throttle of another one away."""
        return bool(_todo(plan))

    def invert(self, services: Services, plan: Plan[Reassignment], results: Sequence[ItemResult]) -> Plan[Reassignment]:
        """Plan to move replicas back, those under way included; what others have reassigned since stays.

        :raises Refused: when there is nothing to undo
        """
        arguments, untouched = plan.arguments, not_done(results)
        topics, moving, now = look(services, arguments.ids)
        todo = {place_of(item.target) for item in plan.changes if item.target != THROTTLE and item.target not in untouched}
        same = {place for place in todo if _is_same(place, topics, arguments)}
        back = {place: (now[place], plan_before(plan, place)) for place in sorted(same) if now[place] == arguments.moves[place][1]}
        back = {place: pair for place, pair in back.items() if pair[0] != pair[1]}
        strayed = sorted(place for place in same if now[place] not in (arguments.moves[place][1], plan_before(plan, place)))
        limit = arguments.throttle
        if limit is not None and not throttle.is_left(services, limit, arguments.moves):
            limit = throttle.prepared(services, back, limit.rate) if any(set(b) - set(a) for a, b in back.values()) else None
        if not back and limit is None:
            raise NothingToUndo(
                "no replica is where this put it, so there is nothing to undo", hint="`kops topics describe` shows where they are"
            )
        disks, unknown = disks_of(services, back)
        there = {name: topic for name, topic in topics.items() if any(place.topic == name for place in same)}
        moves = back if back else {place: pair for place, pair in arguments.moves.items() if place.topic in there}
        undo = assemble(services, there, moves, disks=disks, limit=limit, batch=arguments.batch, warnings=unknown, left=back, moving=moving)
        losses = [f"{names_text(strayed)} was reassigned since, and stays as it is"] if strayed else []
        return replace(undo, losses=tuple(losses))

    def messages(self, services: Services, plan: Plan[Reassignment], results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002 - the contract
        moves = {str(place): pair for place, pair in plan.arguments.moves.items()}
        other = [
            one.target
            for one in results
            if one.target in moves
            and one.status is Status.DONE
            and _changes_leader(moves[one.target])
            and one.value["leader"] != moves[one.target][1][0]
        ]
        return (f"not yet led by their first replica: {names_text(other)}; `kops topics elect-leaders` does that",) if other else ()


REASSIGNMENT = Reassign()


def plan_before(plan: Plan[Reassignment], place: TopicPartition) -> Replicas:
    """Return where a partition's replicas were when this plan was made; the plan of a rest keeps the moves of the whole."""
    return tuple(plan.guard["placement"].get(str(place), plan.arguments.moves[place][0]))


@dataclass
class _Run:
    """Moves partitions, as many at a time as a batch has.

    :param todo: items by partition, in the order in which they are moved
    """

    services: Services
    plan: Plan[Reassignment]
    todo: Mapping[TopicPartition, Item]

    def __post_init__(self) -> None:
        self.done: list[TopicPartition] = []
        self.stuck: list[TopicPartition] = []
        self._flying: dict[TopicPartition, None] = {}
        self._copied = _Copied(self.services, self.plan, self.todo)

    def results(self) -> Iterator[ItemResult]:
        queue = deque(self.todo)
        began = time.monotonic()
        if queue:
            self.services.progress.step(f"moving {counted(len(queue), 'partition')}")
        while queue or self._flying:
            room = self.plan.arguments.batch - len(self._flying)
            if room > 0 and queue:
                yield from self._send([queue.popleft() for _ in range(min(room, len(queue)))])
            moving = self.services.kafka.replicas.moving()
            arrived = [place for place in self._flying if place not in moving]
            for place in arrived:
                del self._flying[place]
                self.done.append(place)
                yield ItemResult(str(place), Status.DONE)
            self._copied.look(self._flying, self.done)
            if self._copied.stalled_for() > STALL_SECONDS and not arrived:
                yield from self._given_up(queue)
                return
            if self._flying:
                time.sleep(POLL_SECONDS if time.monotonic() - began < _SOON else LATER_SECONDS)

    def _send(self, places: Sequence[TopicPartition]) -> Iterator[ItemResult]:
        moves, requests = self.plan.arguments.moves, self.services.kafka.replicas
        topics, moving, now = look(self.services, {place.topic for place in places})
        targets = {}
        for place in places:
            if not _is_same(place, topics, self.plan.arguments) or now[place] not in (plan_before(self.plan, place), moves[place][1]):
                yield failed(self.todo[place], StateMoved(f"{place} was changed by another client meanwhile: it was left alone"))
            elif now[place] != moves[place][1]:
                targets[place] = moves[place][1]
            else:
                self._flying[place] = None
        # Brokers would finish the copies of a reassignment that is replaced by its reverse: it has to be cancelled first.
        if replaced := [place for place in targets if place in moving]:
            requests.reassign(dict.fromkeys(replaced))
            now = look(self.services, {place.topic for place in replaced})[2]
            for place in [place for place in replaced if now.get(place) == targets[place]]:
                self._flying[place] = None
                del targets[place]
        for place, error in requests.reassign(targets).items() if targets else ():
            if error is None:
                self._flying[place] = None
            else:
                yield failed(self.todo[place], error)

    def _given_up(self, queue: Iterable[TopicPartition]) -> Iterator[ItemResult]:
        minutes = round(STALL_SECONDS / 60)
        for place in self._flying:
            self.stuck.append(place)
            error = TimedOut(
                f"nothing of {place} was copied for {minutes} minutes; it is still under way", hint="see `kops cluster health`"
            )
            yield ItemResult(str(place), Status.UNKNOWN, error=error.as_json())
        yield from (ItemResult(str(place), Status.SKIPPED) for place in queue)


class _Copied:
    """How much has been copied, by the sizes of the new replicas."""

    def __init__(self, services: Services, plan: Plan[Reassignment], todo: Iterable[TopicPartition]) -> None:
        self._services = services
        self._adding = {place: set(plan.arguments.moves[place][1]) - set(plan.arguments.moves[place][0]) for place in todo}
        self._sizes: dict[TopicPartition, int] = {}
        self._last, self._since = (-1, -1), time.monotonic()

    def stalled_for(self) -> float:
        return time.monotonic() - self._since

    def look(self, flying: Iterable[TopicPartition], done: Sequence[TopicPartition]) -> None:
        """Read the sizes of what is under way, and report progress in bytes; in partitions if there is nothing to copy."""
        flying = list(flying)
        copying = [place for place in flying if self._adding[place]]
        here = 0
        if copying or (not self._sizes and any(self._adding.values())):
            disks, _ = disks_of(self._services, copying if self._sizes else list(self._adding))
            known = sizes_by_replica(one for some in disks.values() for one in some)
            for place, adding in self._adding.items():
                if place in known:
                    self._sizes[place] = (replica_size(place, known, None) or 0) * len(adding)
            here = sum(known.get(place, {}).get(broker, 0) for place in copying for broker in self._adding[place])
        copied = here + sum(self._sizes.get(place, 0) for place in done)
        if (copied, len(done)) != self._last:
            self._last, self._since = (copied, len(done)), time.monotonic()
        if total := sum(self._sizes.values()):
            self._services.progress.advance(min(copied, total), total, "bytes")
        else:
            self._services.progress.advance(len(done), len(self._adding), "partitions")


def _todo(plan: Plan[Reassignment]) -> dict[TopicPartition, Item]:
    return {place_of(item.target): item for item in plan.changes if item.target != THROTTLE}


def _elect(services: Services, places: Iterable[TopicPartition], moves: Moves) -> None:
    """Let the first replica lead where that is another one than before; an election that fails shows when it is read back."""
    wanted = [place for place in places if _changes_leader(moves[place])]
    if wanted:
        services.kafka.replicas.elect(wanted)


def _changes_leader(pair: tuple[Sequence[int], Sequence[int]]) -> bool:
    return list(pair[0])[:1] != list(pair[1])[:1]


def _is_same(place: TopicPartition, topics: Mapping[str, Topic], arguments: Reassignment) -> bool:
    return place.topic in topics and topics[place.topic].topic_id == arguments.ids[place.topic]


def _leaders(topics: Mapping[str, Topic]) -> dict[TopicPartition, int | None]:
    return {TopicPartition(name, one.partition): one.leader for name, topic in topics.items() for one in topic.partitions}


def _awaits_leader(place: TopicPartition, topics: Mapping[str, Topic], leaders: Mapping[TopicPartition, int | None], moves: Moves) -> bool:
    first = moves[place][1][0]
    in_sync = next(one.in_sync_replicas for one in topics[place.topic].partitions if one.partition == place.partition)
    return _changes_leader(moves[place]) and leaders[place] != first and first in in_sync


def _read_back(
    result: ItemResult,
    plan: Plan[Reassignment],
    moving: Mapping[TopicPartition, Moving],
    now: Mapping[TopicPartition, Replicas],
    leaders: Mapping[TopicPartition, int | None],
) -> ItemResult:
    if result.target == THROTTLE or result.status is not Status.DONE:
        return result
    place = place_of(result.target)
    if now.get(place) == plan.arguments.moves[place][1] and place not in moving:
        return ItemResult(result.target, Status.DONE, value={"replicas": list(now[place]), "leader": leaders[place]})
    found = "it no longer exists" if place not in now else f"its replicas are {', '.join(map(str, now[place]))}"
    error: KopsError = VerificationFailed(f"{place} is not as planned: {found}", hint="`kops topics describe` shows it")
    return ItemResult(result.target, Status.FAILED, error=error.as_json())

"""Log directories of brokers: what is in them, and replicas that are moved from one to another of the same broker."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from kops.core.cluster.models import LogDir
from kops.core.errors import KopsError, NotFound, NothingToUndo, Refused, StateMoved, TimedOut, UsageProblem, VerificationFailed
from kops.core.findings import counted
from kops.core.models import TopicPartition
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Status, not_done
from kops.core.replicas.reassignment import place_of
from kops.core.sizes import size_text
from kops.operations.brokers.settings import brokers_named
from kops.operations.cluster.describe import log_dir_row
from kops.operations.protocol.mutation import Mutation, compare_guard, failed
from kops.operations.services import Services
from kops.operations.topics.listing import select_partitions

OPERATION = "brokers.move-replicas"
POLL_SECONDS = 0.5
STALL_SECONDS = 300.0
"""A copy that stands still for this long is not waited for."""


def directory_rows(services: Services, ids: Sequence[int]) -> tuple[list[dict[str, Any]], dict[int, KopsError]]:
    """Return a row per log directory, and the brokers that did not answer."""
    found, problems = _look(services, brokers_named(services, ids))
    return [{"broker": one.broker, **log_dir_row(one)} for one in found], problems


def replica_rows(services: Services, ids: Sequence[int]) -> tuple[list[dict[str, Any]], dict[int, KopsError]]:
    """Return a row per replica, the largest first, and the brokers that did not answer."""
    found, problems = _look(services, brokers_named(services, ids))
    rows = [
        {
            "broker": one.broker,
            "path": one.path,
            "topic": replica.partition.topic,
            "partition": replica.partition.partition,
            "size_bytes": replica.size,
            "moving": replica.future,
        }
        for one in found
        for replica in one.replicas
    ]
    return sorted(rows, key=lambda row: (-row["size_bytes"], row["broker"], row["topic"], row["partition"])), problems


def _look(services: Services, brokers: Iterable[int]) -> tuple[list[LogDir], dict[int, KopsError]]:
    answers = services.kafka.log_dirs.describe_or_errors(brokers)
    problems = {broker: answer for broker, answer in answers.items() if isinstance(answer, KopsError)}
    return [one for answer in answers.values() if not isinstance(answer, KopsError) for one in answer], problems


@dataclass(frozen=True)
class Move(Arguments):
    """Replicas of a broker to move.

    :param targets: log directories by partition as text
    """

    broker: int
    targets: Mapping[str, str]

    def as_json(self) -> Json:
        return {"broker": self.broker, "targets": dict(self.targets)}

    @classmethod
    def of_json(cls, body: Json) -> Move:
        return cls(body["broker"], dict(body["targets"]))


def plan_move(services: Services, broker: int, texts: Sequence[str], directory: str) -> Plan[Move]:
    """Plan to move the replicas that a broker has of some partitions.

    :raises UsageProblem: for a directory that the broker does not have
    :raises Refused: where they would not fit
    """
    brokers_named(services, [broker])
    _, places = select_partitions(services, texts)
    here = [str(place) for place in places if place in _paths(_dirs(services, broker))]
    if not here:
        raise NotFound(f"broker {broker} has no replica of {', '.join(texts)}", hint="`kops topics describe` shows where replicas are")
    return _plan(services, broker, dict.fromkeys(here, directory))


def _plan(services: Services, broker: int, targets: Mapping[str, str]) -> Plan[Move]:
    dirs = _dirs(services, broker)
    by_path = {one.path: one for one in dirs}
    if missing := sorted(set(targets.values()) - set(by_path)):
        raise UsageProblem(f"broker {broker} has no log directory {missing[0]}", hint=f"it has {', '.join(by_path)}")
    now, sizes = _paths(dirs), {replica.partition: replica.size for one in dirs for replica in one.replicas if not replica.future}
    moves = {text: path for text, path in targets.items() if now.get(place_of(text)) not in (None, path)}
    for path in set(moves.values()):
        target = by_path[path]
        size = sum(sizes[place_of(text)] for text, to in moves.items() if to == path)
        if target.problem:
            raise Refused(f"{path} of broker {broker} cannot be used: {target.problem}")
        if target.usable_bytes is not None and size > target.usable_bytes:
            raise Refused(f"{path} would receive {size_text(size)}, and has {size_text(target.usable_bytes)} free")
    total = sum(sizes[place_of(text)] for text in moves)
    items = [
        Item(text, "move" if text in moves else "none", now.get(place_of(text)), path, size_text(sizes.get(place_of(text))) or "")
        for text, path in targets.items()
    ]
    return Plan(
        operation=OPERATION,
        summary=f"move {counted(len(moves), 'replica')} of broker {broker}, {size_text(total)}" if moves else "they are there already",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=items,
        guard={text: now[place_of(text)] for text in moves},
        arguments=Move(broker, moves),
    )


class MoveReplicas(Mutation[Move]):
    """Moves replicas between log directories, and waits until the copies have taken their places."""

    name: ClassVar[str] = OPERATION
    arguments: ClassVar[type[Move]] = Move
    can_leave_partial: ClassVar[bool] = True

    def locks(self, plan: Plan[Move]) -> Iterable[str]:
        return [f"replica of {text} on broker {plan.arguments.broker}" for text in plan.arguments.targets]

    def check(self, services: Services, plan: Plan[Move]) -> None:
        now = _paths(_dirs(services, plan.arguments.broker))
        compare_guard(plan, {text: now.get(place_of(text)) for text in plan.guard}, "log directories were")

    def apply(self, services: Services, plan: Plan[Move]) -> Iterator[ItemResult]:
        broker, targets = plan.arguments.broker, {place_of(text): path for text, path in plan.arguments.targets.items()}
        items = {place_of(item.target): item for item in plan.changes}
        errors = services.kafka.replicas.to_log_dirs(broker, targets)
        for place, error in errors.items():
            if error is not None:
                yield failed(items[place], error)
        flying = [place for place, error in errors.items() if error is None]
        services.progress.step(f"moving {counted(len(flying), 'replica')} of broker {broker}")
        last, since, total = -1, time.monotonic(), len(flying)
        while flying:
            dirs = _dirs(services, broker)
            now = _paths(dirs)
            for place in [place for place in flying if now.get(place) == targets[place]]:
                flying.remove(place)
                yield ItemResult(str(place), Status.DONE)
            copied = sum(replica.size for one in dirs for replica in one.replicas if replica.future) + len(flying)
            last, since = (copied, time.monotonic()) if copied != last else (last, since)
            if time.monotonic() - since > STALL_SECONDS:
                error = TimedOut("nothing was copied for 5 minutes; it is still under way", hint="`kops brokers log-dirs --replicas`")
                yield from (ItemResult(str(place), Status.UNKNOWN, error=error.as_json()) for place in flying)
                return
            services.progress.advance(total - len(flying), total, "replicas")
            if flying:
                time.sleep(POLL_SECONDS)

    def verify(self, services: Services, plan: Plan[Move], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        now = _paths(_dirs(services, plan.arguments.broker))
        return tuple(_read_back(one, now.get(place_of(one.target)), plan.arguments.targets[one.target]) for one in results)

    def resume(self, services: Services, plan: Plan[Move]) -> Plan[Move]:
        return _plan(services, plan.arguments.broker, plan.arguments.targets)

    def invert(self, services: Services, plan: Plan[Move], results: Sequence[ItemResult]) -> Plan[Move]:
        """Plan to move the replicas back.

        :raises Refused: when none is where this put it
        """
        untouched, now = not_done(results), _paths(_dirs(services, plan.arguments.broker))
        targets = plan.arguments.targets
        back = {text: path for text, path in plan.guard.items() if text not in untouched and now.get(place_of(text)) == targets[text]}
        if not back:
            raise NothingToUndo("no replica is where this put it, so there is nothing to undo")
        return _plan(services, plan.arguments.broker, back)


MOVE = MoveReplicas()


def _dirs(services: Services, broker: int) -> tuple[LogDir, ...]:
    answer = services.kafka.log_dirs.describe_or_errors([broker])[broker]
    if isinstance(answer, KopsError):
        raise answer
    return answer


def _paths(dirs: Iterable[LogDir]) -> dict[TopicPartition, str]:
    """Return the directory of each replica, without the copies that are still being made."""
    return {replica.partition: one.path for one in dirs for replica in one.replicas if not replica.future}


def _read_back(result: ItemResult, path: str | None, wanted: str) -> ItemResult:
    if result.status is not Status.DONE:
        return result
    if path == wanted:
        return ItemResult(result.target, Status.DONE, value=path)
    kind: type[KopsError] = VerificationFailed if path else StateMoved
    return ItemResult(result.target, Status.FAILED, error=kind(f"{result.target} is in {path or 'no directory'}").as_json())

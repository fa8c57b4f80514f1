"""`kops transactions abort`: ends transactions that no coordinator ends, and those that one would end only later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from kops.core.diagnosis.transactions import end_text, is_hanging
from kops.core.errors import KopsError, Refused, StateMoved, UsageProblem, VerificationFailed, answer_or_error
from kops.core.groups.lag import OpenTransaction
from kops.core.models import READ_COMMITTED, Bounds, TopicPartition
from kops.core.plan import Item, ItemResult, Plan, Severity, Status
from kops.core.times import to_milliseconds
from kops.core.transactions import ONGOING, Abortion, Left, Transaction
from kops.operations.protocol.mutation import FinalMutation, compare_guard, failed
from kops.operations.protocol.settling import settled
from kops.operations.services import Services
from kops.operations.transactions.look import not_open, open_transactions

UNSEEN = (
    "the brokers name no transactional id for {}: they leave out ids that this user may not DESCRIBE,"
    " and a transaction with such an id may be alive"
)


def plan_abort(services: Services, texts: Sequence[str], *, start_offset: int | None = None) -> Plan[Abortion]:
    """Plan to abort the transactions in some partitions that no coordinator will end.

    :param texts: topics with or without partitions; empty: all of the cluster
    :param start_offset: only the one that begins there; texts then name one partition
    :raises NotFound: when none is open in a partition that is named
    :raises Refused: for one that its coordinator will end: its producer would go on writing as if it were still open
    """
    problems: dict[str, KopsError] = {}
    found = open_transactions(services, texts, problems)
    if problems:
        raise next(iter(problems.values()))
    now = to_milliseconds(services.now())
    every = [
        (place, one) for place, some in sorted(found.items()) for one in some if start_offset is None or one.start_offset == start_offset
    ]
    if texts and not every:
        raise not_open(", ".join(texts))
    hanging = [(place, one) for place, one in every if is_hanging(one, now)]
    if texts and not hanging:
        place, one = every[0]
        raise _alive(place, one, now)
    left = [_left(place, one) for place, one in hanging]
    ends = services.kafka.offsets.bounds(one.place for one in left) if left else {}
    topics = sorted({one.topic for one in left})
    unseen = [str(place) for place, one in hanging if one.transactional_id is None]
    spared = len(every) - len(hanging)
    return Plan(
        operation=ABORT.name,
        summary=_summary([one.target for one in left]) if left else "no transaction hangs",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(_item(place, one, ends[place], now) for place, one in hanging),
        severity=Severity.SEVERE,
        confirm=topics[0] if len(topics) == 1 else f"{len(topics)} topics",
        guard=_guard({one.target: one for one in left}),
        arguments=Abortion(left=tuple(left)),
        warnings=(UNSEEN.format(", ".join(unseen)),) if unseen else (),
        notes=(f"left open: {spared} that a coordinator will end, or that have not reached their time-out",) if spared else (),
    )


def plan_fence(services: Services, ids: Sequence[str]) -> Plan[Abortion]:
    """Plan to have coordinators abort the open transactions of transactional ids.

    :raises NotFound: for an id that its coordinator does not know
    """
    answers = services.kafka.transactions.described(ids)
    found = {}
    for name, answer in answers.items():
        if isinstance(answer, KopsError):
            raise answer
        found[name] = answer
    chosen = [name for name, one in found.items() if one.state == ONGOING]
    return Plan(
        operation=ABORT.name,
        summary=_summary(chosen) if chosen else "no transaction of these ids is open",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(_of_id(one) for one in found.values()),
        severity=Severity.SEVERE,
        confirm=chosen[0] if len(chosen) == 1 else f"{len(chosen)} transactions",
        guard={name: _identity(found[name]) for name in chosen},
        arguments=Abortion(ids=tuple(chosen)),
        warnings=tuple(f"the producer of {name} is fenced: if it still runs, its next request fails" for name in chosen),
    )


class AbortTransactions(FinalMutation[Abortion]):
    """Writes abort markers, or has coordinators write them; proves that the last stable offset has moved."""

    name: ClassVar[str] = "transactions.abort"
    arguments: ClassVar[type[Abortion]] = Abortion
    no_undo: ClassVar[str] = "consumers of committed data skip the records of an aborted transaction for good"
    instead: ClassVar[str | None] = "the records are still in the log: `kops replay run` can send them again"

    def locks(self, plan: Plan[Abortion]) -> Iterable[str]:
        return [f"transaction {item.target}" for item in plan.changes]

    def check(self, services: Services, plan: Plan[Abortion]) -> None:
        if plan.arguments.ids:
            answers = services.kafka.transactions.described(plan.arguments.ids)
            now: Any = {name: None if isinstance(one, KopsError) else _identity(one) for name, one in answers.items()}
            compare_guard(plan, now, "the transactions have ended, or others begun,")
        elif missing := [one.target for one in plan.arguments.left if one not in _still_left(services, plan.arguments.left)]:
            raise StateMoved(f"ended since the plan was made: {', '.join(missing)}", hint="run the command again to see what is left")

    def apply(self, services: Services, plan: Plan[Abortion]) -> Iterator[ItemResult]:
        ways = {one.target: (services.kafka.transactions.abort, one) for one in plan.arguments.left}
        fences = {name: (services.kafka.transactions.fence, name) for name in plan.arguments.ids}
        for item in plan.changes:
            send, what = (ways | fences)[item.target]
            error = answer_or_error(lambda: send(what))  # type: ignore[arg-type]  # noqa: B023 - called at once
            yield failed(item, error) if isinstance(error, KopsError) else ItemResult(item.target, Status.DONE)

    def verify(self, services: Services, plan: Plan[Abortion], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        def read() -> tuple[ItemResult, ...]:
            if plan.arguments.ids:
                answers = services.kafka.transactions.described([one.target for one in results])
                return tuple(_ended(result, answers[result.target], plan.guard.get(result.target)) for result in results)
            left = {one.target: one for one in plan.arguments.left}
            there = _still_left(services, left.values())
            stable = services.kafka.offsets.bounds_or_errors([one.place for one in left.values()], isolation=READ_COMMITTED)
            return tuple(_moved(result, left[result.target], there, stable[left[result.target].place]) for result in results)

        return settled(read)

    def messages(self, services: Services, plan: Plan[Abortion], results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002
        texts = []
        for result in results:
            value = result.value or {}
            if result.status is Status.DONE and value.get("held_by"):
                texts.append(f"{result.target}: the last stable offset is {value['last_stable_offset']}: {value['held_by']}")
        return tuple(texts)

    def resume(self, services: Services, plan: Plan[Abortion]) -> Plan[Abortion]:
        if plan.arguments.ids:
            return plan_fence(services, plan.arguments.ids)
        left = _still_left(services, plan.arguments.left)
        places = sorted({str(one.place) for one in left})
        if not places:
            return replace(plan, summary="all of these transactions have ended", items=())
        return plan_abort(services, places)


ABORT = AbortTransactions()


def _summary(targets: Sequence[str]) -> str:
    return f"abort the transaction {targets[0]}" if len(targets) == 1 else f"abort {len(targets)} transactions"


def _alive(place: TopicPartition, one: OpenTransaction, now: int) -> Refused:
    hint = f"to end it now and fence its producer: --transactional-id {one.transactional_id}" if one.transactional_id else "wait for that"
    return Refused(f"the transaction of {one.producer} in {place} does not hang: {end_text(one, now)}", hint=hint)


def _left(place: TopicPartition, one: OpenTransaction) -> Left:
    return Left(place.topic, place.partition, one.producer_id, one.producer_epoch, one.coordinator_epoch, one.start_offset)


def _item(place: TopicPartition, one: OpenTransaction, ends: Bounds, now: int) -> Item:
    before = {
        "producer_id": one.producer_id,
        "transactional_id": one.transactional_id,
        "age_ms": one.age(now),
        "unreadable_offsets": ends.log_end_offset - one.start_offset,
    }
    return Item(_left(place, one).target, "abort", before, None, "no coordinator will end it")


def _of_id(one: Transaction) -> Item:
    if one.state != ONGOING:
        return Item(one.transactional_id, "none", reason=f"its transaction is not open ({one.state})")
    return Item(one.transactional_id, "abort", {"producer_id": one.producer_id, "partitions": [str(place) for place in one.partitions]})


def _identity(one: Transaction) -> dict[str, Any]:
    return {"state": one.state, "producer_id": one.producer_id, "producer_epoch": one.producer_epoch, "started": one.started}


def _guard(left: Mapping[str, Left]) -> dict[str, Any]:
    return {target: [one.producer_id, one.producer_epoch, one.start_offset] for target, one in left.items()}


def _still_left(services: Services, some: Iterable[Left]) -> set[Left]:
    """Return those that are still open, by what the leaders of their partitions say now.

    :raises KopsError: when a leader does not answer
    """
    wanted = list(some)
    there: set[Left] = set()
    answers = services.kafka.transactions.producers(one.place for one in wanted)
    for one in wanted:
        producers = answers[one.place]
        if isinstance(producers, KopsError):
            raise producers
        if any((each.producer_id, each.start_offset) == (one.producer_id, one.start_offset) for each in producers):
            there.add(one)
    return there


def _moved(result: ItemResult, one: Left, there: set[Left], stable: Bounds | KopsError) -> ItemResult:
    if result.status not in (Status.DONE, Status.UNKNOWN):
        return result
    if one in there:
        error = VerificationFailed(f"the transaction is still open in {one.place}", hint="`kops transactions list --open` shows it")
        return ItemResult(result.target, Status.FAILED, error=error.as_json())
    if isinstance(stable, KopsError):
        return ItemResult(result.target, Status.UNKNOWN, error=stable.as_json())
    held = f"it waits for another transaction at {stable.log_end_offset}" if stable.log_end_offset <= one.start_offset else None
    return ItemResult(result.target, Status.DONE, value={"last_stable_offset": stable.log_end_offset, "held_by": held})


def _ended(result: ItemResult, now: Transaction | KopsError, before: Mapping[str, Any] | None) -> ItemResult:
    if result.status not in (Status.DONE, Status.UNKNOWN) or isinstance(now, KopsError):
        return result
    same = before is not None and (now.producer_id, now.started) == (before["producer_id"], before["started"])
    if now.state == ONGOING and same:
        error = VerificationFailed(f"the transaction of {result.target} is still open", hint="`kops transactions describe` shows it")
        return ItemResult(result.target, Status.FAILED, error=error.as_json())
    if now.state.startswith("Prepare"):
        error = VerificationFailed(f"the transaction of {result.target} is not ended yet ({now.state})", hint="look again in a moment")
        return ItemResult(result.target, Status.FAILED, error=error.as_json())
    return ItemResult(result.target, Status.DONE, value={"state": now.state})


def require_choice(texts: Sequence[str], ids: Sequence[str], *, hanging: bool, start_offset: int | None) -> None:
    """Check what a command line chooses to abort.

    :raises UsageProblem: unless it is partitions, transactional ids or all that hang
    """
    if bool(ids) == bool(texts or hanging):
        raise UsageProblem(
            "name partitions, --transactional-id, or --hanging for every transaction that hangs",
            hint="`kops transactions list --hanging` shows which hang",
        )
    if start_offset is not None and (len(texts) != 1 or ":" not in texts[0]):
        raise UsageProblem("--start-offset is in one partition", hint="name it, such as orders:0")

"""The mutation that moves a connector's offsets: stop, change, read back, resume; rolled back if a step fails."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from kops.core.connect.models import PAUSED, RUNNING, STOPPED, Connector
from kops.core.errors import KopsError, OperationFailed, Refused, StateMoved, TimedOut, VerificationFailed
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Status
from kops.operations.connect.mutation import ConnectMutation, connect_plan, poll, poll_until, states_text
from kops.operations.connect.offsets import name_of, shown_offset
from kops.operations.connect.select import by_name
from kops.operations.connect.states import VERBS, failures, has_reached
from kops.operations.services import Services

NAME = "connect.offsets"
WAIT_SECONDS = 30.0
_RETRY_SECONDS = 1.0
_DOING = {RUNNING: "resuming", PAUSED: "pausing", STOPPED: "leaving stopped"}
_CANNOT_REWIND = {
    "io.debezium.connector.postgresql.": "a replication slot cannot rewind beyond what it has confirmed: with an earlier offset the "
    "task fails; `kops connect offsets reset` makes it read all rows again, if snapshot.mode allows"
}
"""Warnings about external positions that do not move with a plugin's offsets."""
_STILL_STOPPING = ("haven't stopped completely", "still active", "not empty", "UnknownMemberId", "zombie", "hasn't completely shut down")

Offset = Mapping[str, Any] | None


@dataclass(frozen=True)
class Move:
    """One partition of a connector with its current and intended offset; None: no offset."""

    partition: Mapping[str, Any]
    before: Offset
    after: Offset

    @property
    def name(self) -> str:
        return name_of(self.partition)


@dataclass(frozen=True, slots=True)
class OffsetMoves(Arguments):
    """The offsets of one connector.

    :param state: the state afterwards
    :param reset: delete all offsets, by the request for that
    """

    connector: str
    state: str
    reset: bool
    offsets: tuple[Move, ...]

    def as_json(self) -> Json:
        offsets = [asdict(move) for move in self.offsets]
        return {"connector": self.connector, "state": self.state, "reset": self.reset, "offsets": offsets}

    @classmethod
    def of_json(cls, body: Json) -> OffsetMoves:
        return cls(body["connector"], body["state"], body["reset"], tuple(Move(**each) for each in body["offsets"]))


def plan_moves(
    services: Services, connector: Connector, moves: Sequence[Move], *, reset: bool = False, state: str = ""
) -> Plan[OffsetMoves]:
    """Plan to stop a connector, move its offsets, and restore its state.

    :param reset: delete all offsets, by the request for that
    :param state: the state afterwards; empty: the one that was last requested
    """
    changing = [move for move in moves if move.before != move.after]
    items = [_item(connector, move) for move in moves]
    state = state or connector.wanted_state
    what = (
        f"{'reset' if all(move.after is None for move in changing) else 'move'} {len(changing)} offset{'' if len(changing) == 1 else 's'}"
    )
    stops = state != STOPPED
    sequence = f": stop it, change them, read them back, {VERBS[state]} it" if stops else ""
    return connect_plan(
        services,
        NAME,
        f"{what} of connector {connector.name}{sequence}" if changing else f"every offset of {connector.name} is already set",
        items,
        OffsetMoves(connector.name, state, reset and bool(changing), tuple(changing)),
        guard={"state": connector.wanted_state, "type": connector.type},
        warnings=tuple(_warnings(connector, changing)),
    )


def _item(connector: Connector, move: Move) -> Item:
    target = f"{connector.name} {move.name}"
    before, after = shown_offset(move.before), shown_offset(move.after)
    if move.before == move.after:
        return Item(target, "none", before, after, "already there")
    return Item(target, "reset" if move.after is None else "move" if move.before is not None else "set", before, after)


def _warnings(connector: Connector, moves: Sequence[Move]) -> Iterator[str]:
    if any(move.after is None for move in moves):
        start = "where auto.offset.reset of its consumer says" if connector.type == "sink" else "where its plugin starts without an offset"
        yield f"{connector.name} starts {start}"
    if connector.type == "source" and moves:
        yield "a source may write records again or skip some; what it wrote before stays"
    if any(move.after is not None for move in moves):
        yield from (text for plugin, text in _CANNOT_REWIND.items() if connector.plugin.startswith(plugin))


class ChangeOffsets(ConnectMutation[OffsetMoves]):
    name: ClassVar[str] = NAME
    arguments = OffsetMoves

    def locks(self, plan: Plan[OffsetMoves]) -> Iterable[str]:
        return [f"connector {plan.arguments.connector}"]

    def check(self, services: Services, plan: Plan[OffsetMoves]) -> None:
        """Refuse if the connector no longer exists or its state was changed; its offsets may advance until it is stopped."""
        connector = _found(services, plan)
        actual = {"state": connector.wanted_state, "type": connector.type}
        if actual != plan.guard:
            raise StateMoved(
                f"{connector.name} is {actual['state']} now, not {plan.guard['state']} as planned", hint="run the command again"
            )

    def apply(self, services: Services, plan: Plan[OffsetMoves]) -> Iterator[ItemResult]:
        """Stop, change, read back, resume. If a step fails, restore offsets and state.

        :raises KopsError: when the change was rolled back
        """
        name, moves = plan.arguments.connector, plan.arguments.offsets
        services.progress.step(f"stopping {name}")
        stopped: dict[str, Offset] | None = None
        try:
            _set_state(services, name, STOPPED)
            stopped = _offsets(services, name)
            services.progress.step(f"changing offsets of {name}")
            _change(services, name, moves, reset=plan.arguments.reset)
            _read_back(services, name, moves)
        except BaseException as cause:
            _restore(services, plan, moves, stopped, cause)
            raise
        services.progress.step(f"{_DOING[plan.arguments.state]} {name}")
        _set_state(services, name, plan.arguments.state)
        for item, move in zip(plan.changes, moves, strict=True):
            yield ItemResult(item.target, Status.DONE, value={"before": (stopped or {}).get(move.name), "after": move.after})

    def verify(self, services: Services, plan: Plan[OffsetMoves], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:  # noqa: ARG002
        """Return the results unchanged: they were read back while the connector was stopped."""
        return tuple(results)

    def messages(self, services: Services, plan: Plan[OffsetMoves], results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002
        """Report the state of the connector, and what has failed."""
        connector = _found(services, plan)
        return (f"{connector.name} is {states_text(connector)}", *failures([connector]))

    def invert(self, services: Services, plan: Plan[OffsetMoves], results: Sequence[ItemResult]) -> Plan[OffsetMoves]:
        """Plan to restore the offsets that the connector had when it was stopped."""
        values = {result.target: (result.value or {}) for result in results}
        now, wanted, losses = _offsets(services, _found(services, plan).name), [], []
        for item, move in zip(plan.changes, plan.arguments.offsets, strict=True):
            before = values.get(item.target, {}).get("before", move.before)
            here = now.get(move.name)
            if here not in (move.after, before):
                losses.append(f"{item.target} has moved since, from {shown_offset(move.after)} to {shown_offset(here)}")
            wanted.append(replace(move, after=before))
        return replace(_replan(services, plan, wanted, interrupted=not results), losses=tuple(losses))

    def resume(self, services: Services, plan: Plan[OffsetMoves]) -> Plan[OffsetMoves]:
        """Plan to do the rest, and to restore the state that the connector had at first."""
        return _replan(services, plan, plan.arguments.offsets, interrupted=True)


CHANGE_OFFSETS = ChangeOffsets()


def _replan(services: Services, plan: Plan[OffsetMoves], wanted: Sequence[Move], *, interrupted: bool) -> Plan[OffsetMoves]:
    """Plan to set offsets of an earlier plan, starting from the current ones.

    :param interrupted: the earlier plan may have left the connector stopped: restore its state even if no offset changes
    """
    connector = _found(services, plan)
    current, state = _offsets(services, connector.name), plan.arguments.state if interrupted else ""
    moves = [replace(move, before=current.get(move.name)) for move in wanted]
    if interrupted and connector.wanted_state != state and all(move.before == move.after for move in moves):
        moves = [Move(move.partition, None if move.after is not None else {}, move.after) for move in moves]
    return plan_moves(services, connector, moves, state=state)


def _found(services: Services, plan: Plan[OffsetMoves]) -> Connector:
    name = plan.arguments.connector
    found = by_name(services).get(name)
    if found is None:
        raise Refused(f"connector {name} no longer exists", hint="`kops connect list` shows what there is")
    return found


def _offsets(services: Services, name: str) -> dict[str, Offset]:
    return {name_of(one["partition"]): one.get("offset") for one in services.connect.offsets(name)}


def _set_state(services: Services, name: str, state: str) -> None:
    """Set the state of a connector and wait until it is reached.

    :raises TimedOut: when it is not reached in time
    """
    services.connect.change_state(name, VERBS[state])
    found = poll_until(services, [name], lambda _, one: one is None or has_reached(one, state), seconds=WAIT_SECONDS)
    if name not in found:
        raise OperationFailed(f"connector {name} no longer exists")
    if not has_reached(found[name], state):
        raise TimedOut(f"{name} is {states_text(found[name])} after {WAIT_SECONDS:g} s, not {state}", hint="`kops connect status` shows it")


def _change(services: Services, name: str, moves: Sequence[Move], *, reset: bool) -> None:
    """Set or delete offsets; retry while a task is still stopping."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            if reset:
                message = services.connect.reset_offsets(name)
            else:
                message = services.connect.alter_offsets(name, [{"partition": move.partition, "offset": move.after} for move in moves])
        except OperationFailed as error:
            if time.monotonic() > deadline or not any(sign in error.message for sign in _STILL_STOPPING):
                raise
            services.progress.step(f"{name} is still stopping; retrying")
            time.sleep(_RETRY_SECONDS)
        else:
            if "externally" in message:
                services.progress.step(f"Connect: {message.rstrip('.')}")
            return


def _read_back(services: Services, name: str, moves: Sequence[Move]) -> None:
    """Compare with what was written, while the connector is stopped.

    :raises VerificationFailed: when an offset differs
    """

    def wrong(actual: Mapping[str, Offset]) -> list[Move]:
        return [move for move in moves if actual.get(move.name) != move.after]

    actual = poll(lambda: _offsets(services, name), lambda found: not wrong(found), seconds=WAIT_SECONDS)
    move = next(iter(wrong(actual)), None)
    if move is not None:
        was = shown_offset(actual.get(move.name))
        raise VerificationFailed(f"{name} {move.name} was set to {shown_offset(move.after)}, but read back as {was}")


def _restore(
    services: Services, plan: Plan[OffsetMoves], moves: Sequence[Move], stopped: dict[str, Offset] | None, cause: BaseException
) -> None:
    """Restore the connector's offsets and state; whatever cannot be restored is added to the error."""
    name, unrestored = plan.arguments.connector, []
    services.progress.step(f"rolling back the changes to {name}")
    try:
        if stopped is not None and _offsets(services, name) != stopped:
            services.connect.alter_offsets(name, [{"partition": move.partition, "offset": stopped.get(move.name)} for move in moves])
    except KopsError as error:
        unrestored.append(f"its offsets may have changed ({error.message})")
    try:
        _set_state(services, name, plan.guard["state"])
    except KopsError as error:
        unrestored.append(f"it may not be {plan.guard['state']} ({error.message})")
    if isinstance(cause, KopsError):
        outcome = f"; {'; '.join(unrestored)}" if unrestored else f"; {name} has its previous offsets and state"
        cause.message += outcome

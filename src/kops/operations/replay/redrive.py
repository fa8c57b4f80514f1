"""The mutation that sends dead letters back: a replay that notes which it has sent, so that none is sent twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from kops.core.errors import Refused, StateMoved
from kops.core.intervals import joined
from kops.core.plan import ItemResult, Plan, Status
from kops.operations.replay.redrive_done import Done, done_json, folded, lock_of_topic, read_done, refuse_under_way, write_done
from kops.operations.replay.redrive_rows import claims_of
from kops.operations.replay.redrive_taken_over import abort_open
from kops.operations.replay.run import Replay
from kops.operations.services import Services


class Redrive(Replay):
    """Sends dead letters back."""

    name: ClassVar[str] = "replay.redrive"

    def locks(self, plan: Plan) -> Iterable[str]:
        """Name the dead-letter topic."""
        return [lock_of_topic(plan.arguments["source"])]

    def check(self, services: Services, plan: Plan) -> None:
        """Refuse when something was sent back since the plan was made, or a target is another."""
        given = plan.arguments
        known = read_done(services, given["source"], claims_of(given))
        if given.get("resumed"):
            others = {number: one for number, one in known.items() if one.replay != given["replay"]}
            refuse_under_way(given["source"], others)
        else:
            if not given["take_over"]:
                refuse_under_way(given["source"], known)
            _refuse_sent(plan, folded(services, known, stable=not given["take_over"]))
        super().check(services, plan)

    def apply(self, services: Services, plan: Plan) -> Iterator[ItemResult]:
        """Say which dead letters are about to be sent, and send them."""
        given = plan.arguments
        if not given.get("resumed"):
            if given["take_over"]:
                abort_open(services, given["source"], given["anchor"])
            before = folded(services, read_done(services, given["source"], claims_of(given)))
            _refuse_sent(plan, before)  # a transaction that was being committed when the plan was made
            now = {number: Done(before[number].done, claim, given["replay"]) for number, claim in claims_of(given).items()}
            write_done(services, given["source"], now)
        yield from super().apply(services, plan)

    def verify(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Note what was sent once all is there, then read it back."""
        given = plan.arguments
        if all(result.status is Status.DONE for result in results):
            known = read_done(services, given["source"], claims_of(given))
            ours = {number: one for number, one in known.items() if one.replay == given["replay"]}
            if ours:
                empty = {int(number): joined(some) for number, some in given["without_records"].items()}
                after = folded(services, ours)
                write_done(services, given["source"], {n: Done(joined(one.done, empty.get(n, ()))) for n, one in after.items()})
        return super().verify(services, plan, results)

    def can_be_undone(self, plan: Plan) -> bool:  # noqa: ARG002 - the contract
        """Tell that there is no way back."""
        return False

    def invert(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> Plan:  # noqa: ARG002 - the contract
        """Refuse, and say what can be done.

        :raises Refused: always
        """
        topic = plan.arguments["source"]
        raise Refused(
            f"what was sent back is among other records of {', '.join(plan.arguments['targets'])}, and Kafka deletes from the start only",
            hint=f"{topic} still has the dead letters: `kops replay redrive {topic} --again` sends them back once more",
        )


REDRIVE = Redrive()


def _refuse_sent(plan: Plan, now: Mapping[int, Done]) -> None:
    """Refuse when more is sent back than when the plan was made.

    :raises StateMoved: when it is
    """
    if done_json(now) != plan.guard["done"]:
        source = plan.arguments["source"]
        raise StateMoved(f"dead letters of {source} were sent back since the plan was made", hint="run the command again")

"""The mutation that sends dead letters back: a replay that records which it has sent, so that none is sent twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from kops.core.errors import Refused, StateMoved
from kops.core.intervals import joined
from kops.core.plan import Arguments, ItemResult, Plan, Status
from kops.operations.archive.source import settings_of
from kops.operations.replay.arguments import RedriveArguments
from kops.operations.replay.redrive_done import Done, done_json, folded, lock_of_topic, read_done, refuse_under_way, write_done
from kops.operations.replay.run import Replay
from kops.operations.services import Services


class Redrive(Replay[RedriveArguments]):
    name: ClassVar[str] = "replay.redrive"
    arguments: ClassVar[type[Arguments] | None] = RedriveArguments

    def locks(self, plan: Plan[RedriveArguments]) -> Iterable[str]:
        return [lock_of_topic(plan.arguments.source)]

    def check(self, services: Services, plan: Plan[RedriveArguments]) -> None:
        """Refuse when something was sent back since the plan was made, or a target has changed."""
        given = plan.arguments
        known = read_done(services, given.source, given.claims)
        if given.resumed:
            others = {number: one for number, one in known.items() if one.replay != given.replay}
            refuse_under_way(given.source, others)
        else:
            if not given.take_over:
                refuse_under_way(given.source, known)
            _refuse_sent(plan, folded(services, known, stable=not given.take_over))
        super().check(services, plan)

    def apply(self, services: Services, plan: Plan[RedriveArguments]) -> Iterator[ItemResult]:
        """Record which dead letters are about to be sent, and send them."""
        given = plan.arguments
        if not given.resumed:
            if given.take_over:
                abort_open(services, given.source, given.anchor)
            before = folded(services, read_done(services, given.source, given.claims))
            _refuse_sent(plan, before)  # a transaction may have been committing when the plan was made
            now = {number: Done(before[number].done, claim, given.replay) for number, claim in given.claims.items()}
            write_done(services, given.source, now)
        yield from super().apply(services, plan)

    def verify(self, services: Services, plan: Plan[RedriveArguments], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Store what was sent once everything is there, then read it back."""
        given = plan.arguments
        if all(result.status is Status.DONE for result in results):
            known = read_done(services, given.source, given.claims)
            ours = {number: one for number, one in known.items() if one.replay == given.replay}
            if ours:
                empty = {int(number): joined(some) for number, some in given.without_records.items()}
                after = folded(services, ours)
                write_done(services, given.source, {n: Done(joined(one.done, empty.get(n, ()))) for n, one in after.items()})
        return super().verify(services, plan, results)

    def can_be_undone(self, plan: Plan[RedriveArguments]) -> bool:  # noqa: ARG002 - the contract
        return False

    def invert(self, services: Services, plan: Plan[RedriveArguments], results: Sequence[ItemResult]) -> Plan:  # noqa: ARG002 - the contract
        """Refuse, with what can be done instead.

        :raises Refused: always
        """
        topic = plan.arguments.source
        raise Refused(
            f"what was sent back is among other records of {', '.join(plan.arguments.targets)}, and Kafka deletes from the start only",
            hint=f"{topic} still has the dead letters: `kops replay redrive {topic} --again` sends them back once more",
        )


REDRIVE = Redrive()


def _refuse_sent(plan: Plan[RedriveArguments], now: Mapping[int, Done]) -> None:
    """Refuse when more has been sent back than when the plan was made.

    :raises StateMoved: when it has
    """
    if done_json(now) != plan.guard["done"]:
        source = plan.arguments.source
        raise StateMoved(f"dead letters of {source} were sent back since the plan was made", hint="run the command again")


def abort_open(services: Services, topic: str, anchor: str) -> None:
    """Become the writer of every partition that an unfinished redrive of a topic was sending: brokers abort its open transactions.

    :param anchor: an existing topic of the cluster
    :raises KopsError: when the brokers do not allow it; nothing was sent
    """
    from kops.gateways.kafka.fencing import fence
    from kops.gateways.wire.transaction_requests import Names
    from kops.spark.replay.jobs import group_of

    partitions = range(len(services.kafka.topics.existing([topic])[topic].partitions))
    left = _unfinished(read_done(services, topic, partitions))
    writers = [group_of(replay, number) for number, replay in sorted(left.items())]
    connection = services.connection
    fence(settings_of(connection, "target"), (Names(name, anchor, 0, name) for name in writers), connection.bootstrap_servers)


def taken_over(known: Mapping[int, Done]) -> list[str]:
    """Return what a plan says about the redrives that it takes over from."""
    return [
        f"takes over from {replay}: what that one has in open transactions is aborted, and sent by this one"
        for replay in sorted({*_unfinished(known).values()})
    ]


def _unfinished(known: Mapping[int, Done]) -> dict[int, str]:
    """Return the redrives that have dead letters left to send, by partition of the dead-letter topic."""
    return {number: one.replay for number, one in known.items() if one.replay}

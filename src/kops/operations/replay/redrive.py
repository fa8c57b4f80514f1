"""Sends dead letters back, and records which ones were sent, so that none is sent twice.

The records are in the topic of ``progress``, one per partition of the dead-letter topic. A record has the set of offsets that were
sent back (``done``), and what a redrive that is under way is about to send (``claim``). The progress of that redrive is stored separately,
in the transactions of its records. The key contains the id of the dead-letter topic: one that was deleted and created again has other dead
letters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from kops.core.errors import NotFound, OperationFailed, Refused, StateMoved
from kops.core.findings import counted
from kops.core.intervals import Intervals, below, intervals_of, intervals_text, joined
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.plan import Arguments, ItemResult, Plan, Status
from kops.core.topics.names import PROGRESS_TOPIC, no_topics_text
from kops.operations.archive.source import settings_of
from kops.operations.protocol.journal import Journal
from kops.operations.replay.arguments import RedriveArguments
from kops.operations.replay.progress import create_progress_topic, find_progress_topic, progress_of, read_notes, write_notes
from kops.operations.replay.run import Replay
from kops.operations.services import Services

OPERATION = "replay.redrive"
LARGEST_NOTE = 900_000
"""Bytes of a record that brokers accept with their default of ``max.message.bytes``, minus a margin."""


@dataclass(frozen=True)
class RedriveProgress:
    """What was sent back from a partition.

    :param claim: what the redrive of that name sends
    """

    done: Intervals = ()
    claim: Intervals = ()
    replay: str = ""

    @property
    def first(self) -> int:
        """The first offset that was not sent back."""
        return self.done[0][1] if self.done and self.done[0][0] == 0 else 0

    def as_json(self) -> dict[str, str]:
        note = {"done": intervals_text(self.done), "claim": intervals_text(self.claim), "replay": self.replay}
        return {name: text for name, text in note.items() if text}

    def folded(self, reached: int | None) -> RedriveProgress:
        """Return it with what the redrive has sent, up to the offset it reached; None when it was not begun."""
        return RedriveProgress(joined(self.done, below(self.claim, reached)) if reached is not None else self.done)


def done_of(body: Any) -> RedriveProgress:
    """Read what ``RedriveProgress.as_json`` returned.

    :raises ValueError: when it is not valid
    """
    try:
        done, claim = (intervals_of(body.get(name, "")) for name in ("done", "claim"))
        return RedriveProgress(done, claim, str(body.get("replay", "")))
    except AttributeError as broken:
        raise ValueError(f"{body!r} does not say which dead letters were sent back") from broken


def require_progress_topic(services: Services) -> list[str]:
    """Refuse if there is no permanent place to record what was sent back; return what a plan says about that place.

    :raises Refused: before anything is sent
    """
    progress_topic = find_progress_topic(services)
    if progress_topic.problem:
        raise Refused(f"what is sent back cannot be noted where it does not expire: {progress_topic.problem}", hint=progress_topic.hint)
    return [f"creates {PROGRESS_TOPIC}, a compacted topic that holds which dead letters were sent back"] if progress_topic.create else []


def read_done(services: Services, topic: str, partitions: Iterable[int]) -> dict[int, RedriveProgress]:
    """Return what was sent back from some partitions.

    Records of open transactions are read too, since this is written outside of transactions. Where nothing is recorded, the committed
    offsets of the group that kops used for it before count.

    :raises Refused: when what is stored cannot be read
    """
    wanted = list(partitions)
    prefix = _prefix(services, topic)
    found = read_notes(services, prefix, committed=False)
    group = f"kops-redrive-{topic}"
    before = services.kafka.groups.committed([group], stable=True).get(group, {})
    try:
        noted = {number: done_of(found[f"{prefix}{number}"]) for number in wanted if f"{prefix}{number}" in found}
        return {number: noted.get(number) or _before(before.get(TopicPartition(topic, number))) for number in wanted}
    except ValueError as broken:
        raise Refused(
            f"what {PROGRESS_TOPIC} or group {group} has of {topic} does not say which dead letters were sent back: {broken}",
            hint=f"`kops records consume {PROGRESS_TOPIC}` and `kops offsets show {group}` show it",
        ) from broken


def write_done(services: Services, topic: str, now: Mapping[int, RedriveProgress]) -> None:
    """Store what was sent back.

    :raises OperationFailed: when the brokers reject it
    """
    create_progress_topic(services)
    prefix = _prefix(services, topic)
    try:
        write_notes(services, {f"{prefix}{number}": done.as_json() for number, done in now.items()})
    except OperationFailed as failure:
        why = f"cannot record which dead letters of {topic} were sent back: {failure.message}"
        raise OperationFailed(why, hint=failure.hint) from failure


def refuse_forgotten(services: Services, topic: str, known: Mapping[int, RedriveProgress], starts: Mapping[int, int]) -> None:
    """Refuse where the journal shows dead letters that were sent back, and the cluster does not.

    :param starts: first requested offset by partition
    :raises Refused: naming the entry
    """
    topic_id = services.kafka.topics.existing([topic])[topic].topic_id
    unknown = {f"{topic}:{number}": starts[number] for number, one in known.items() if one == RedriveProgress()}
    for entry in Journal(services.directories.state / "journal").entries(lambda _damaged: None, mentioning=topic):
        given = entry.plan.arguments
        if (entry.plan.operation, given.get("source"), entry.plan.cluster_id) != (OPERATION, topic, services.kafka.cluster().cluster_id):
            continue
        sent = {one.target: one.value for one in entry.item_results if isinstance(one.value, dict) and one.value.get("records")}
        lost = sorted(place for place, start in unknown.items() if place in sent and sent[place]["next_offset"] > start)
        if lost and given.get("source_id", topic_id) == topic_id:
            records, reached = sent[lost[0]]["records"], sent[lost[0]]["next_offset"]
            raise Refused(
                f"journal {entry.id} knows that {counted(records, 'dead letter')} of {lost[0]} before offset {reached:,} "
                f"{'was' if records == 1 else 'were'} sent back, and {PROGRESS_TOPIC} no longer has it: nothing is sent twice",
                hint=f"was {PROGRESS_TOPIC} deleted? `--range {reached}..` leaves them out, --again sends them back again",
                journal_id=entry.id,
                partitions=lost,
            )


def fits(done: RedriveProgress) -> bool:
    return len(json.dumps(done.as_json())) <= LARGEST_NOTE


def folded(services: Services, known: Mapping[int, RedriveProgress], *, stable: bool = True) -> dict[int, RedriveProgress]:
    """Return what was sent back, with what redrives under way have sent so far.

    :param stable: wait for their open transactions to end; otherwise those count as aborted
    """
    reached: dict[tuple[str, int], int] = {}
    for name in _under_way(known):
        partitions = [number for number, one in known.items() if one.replay == name]
        found = progress_of(services, name, partitions, stable=stable, settled=stable)
        reached |= {(name, number): sent.offset for number, sent in found.items()}
    return {number: one.folded(reached.get((one.replay, number))) for number, one in known.items()}


def refuse_under_way(topic: str, known: Mapping[int, RedriveProgress]) -> None:
    """Refuse while another redrive has unfinished dead letters to send.

    :raises Refused: naming it
    """
    names = _under_way(known)
    if names:
        raise Refused(
            f"a redrive of {topic} runs or was killed ({names[0]}): what it sends is not known yet",
            hint="`kops journal list --unfinished` names it, `kops replay resume ID` finishes it; if it is gone for good, --take-over",
            replay=names[0],
        )


def done_json(known: Mapping[int, RedriveProgress]) -> dict[str, Any]:
    return {str(number): done.as_json() for number, done in sorted(known.items())}


def _prefix(services: Services, topic: str) -> str:
    found = services.kafka.topics.existing([topic])
    if topic not in found:
        raise NotFound(no_topics_text([topic]), hint="`kops topics list` shows those that exist")
    return f"redrive {topic} {found[topic].topic_id or '-'} "


def _before(found: CommittedOffset | None) -> RedriveProgress:
    if found is None:
        return RedriveProgress()
    body = done_of(json.loads(found.metadata or "{}"))
    return RedriveProgress(joined([(0, found.offset)], body.done), body.claim, body.replay)


class Redrive(Replay[RedriveArguments]):
    name: ClassVar[str] = "replay.redrive"
    arguments: ClassVar[type[Arguments] | None] = RedriveArguments

    def locks(self, plan: Plan[RedriveArguments]) -> Iterable[str]:
        return [f"kops-redrive-{plan.arguments.source}"]

    def check(self, services: Services, plan: Plan[RedriveArguments]) -> None:
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
        given = plan.arguments
        if not given.resumed:
            if given.take_over:
                abort_open(services, given.source, given.anchor)
            before = folded(services, read_done(services, given.source, given.claims))
            _refuse_sent(plan, before)  # a transaction may have been committing when the plan was made
            now = {number: RedriveProgress(before[number].done, claim, given.replay) for number, claim in given.claims.items()}
            write_done(services, given.source, now)
        yield from super().apply(services, plan)

    def verify(self, services: Services, plan: Plan[RedriveArguments], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        given = plan.arguments
        if all(result.status is Status.DONE for result in results):
            known = read_done(services, given.source, given.claims)
            ours = {number: one for number, one in known.items() if one.replay == given.replay}
            if ours:
                empty, after = given.without_records, folded(services, ours)
                write_done(services, given.source, {n: RedriveProgress(joined(one.done, empty.get(n, ()))) for n, one in after.items()})
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


def _refuse_sent(plan: Plan[RedriveArguments], now: Mapping[int, RedriveProgress]) -> None:
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
    known = read_done(services, topic, partitions)
    writers = [group_of(one.replay, number) for number, one in sorted(known.items()) if one.replay]
    connection = services.connection
    fence(settings_of(connection, "target"), (Names(name, anchor, 0, name) for name in writers), connection.bootstrap_servers)


def taken_over(known: Mapping[int, RedriveProgress]) -> list[str]:
    return [
        f"takes over from {replay}: what that one has in open transactions is aborted, and sent by this one" for replay in _under_way(known)
    ]


def _under_way(known: Mapping[int, RedriveProgress]) -> list[str]:
    """Return the names of the redrives that have dead letters left to send."""
    return sorted({one.replay for one in known.values() if one.replay})

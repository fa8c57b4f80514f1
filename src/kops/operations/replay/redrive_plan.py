"""Plans a redrive: which dead letters go back, to where, and which stay, by cause."""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kops.core.errors import KopsError, Refused, UsageProblem
from kops.core.findings import counted
from kops.core.intervals import Intervals, joined
from kops.core.plan import Item, Plan
from kops.core.records.ranges import range_text
from kops.core.times import ANY_TIME
from kops.core.topics.names import PROGRESS_TOPIC
from kops.formats.dead_letters import SHARE_GROUP
from kops.operations.archive.source import Range, range_of, settings_of, source_of
from kops.operations.engine.spark import chosen_master
from kops.operations.replay.arguments import RedriveArguments, new_name
from kops.operations.replay.redrive import (
    OPERATION,
    RedriveProgress,
    done_json,
    fits,
    folded,
    read_done,
    refuse_forgotten,
    refuse_under_way,
    require_progress_topic,
    taken_over,
)
from kops.operations.replay.redrive_letters import BY_ORIGIN, causes_json, causes_lines, left_lines, letters_of
from kops.operations.replay.request import BY_KEY, EXACTLY_ONCE, Changes, ReplayRequest, parse_form
from kops.operations.replay.targets import Targets, guard_of, targets_of
from kops.operations.replay.work import Work
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.spark.replay.jobs import PartitionRange
    from kops.spark.replay.redrive import LetterGroup


@dataclass(frozen=True)
class RedriveRequest:
    """A redrive as it was requested.

    :param source: the dead-letter topic, with or without partitions
    :param span: its range, ``FROM..TO``
    :param causes: texts; only dead letters whose cause matches one of them are sent
    :param route: target for those that do not say where they came from
    :param parked: target for those that were sent back ``max_attempts`` times; None leaves them
    :param changes: formats, ``--where`` and ``--set``
    :param take_over: count a redrive that was never finished as it is
    :param again: also choose among those that were sent back before
    :param to_topics: patterns of topics that headers may name
    :param unattended: the plan is not shown before it is carried out
    """

    source: str
    span: str | None = None
    causes: tuple[str, ...] = ()
    route: str | None = None
    parked: str | None = None
    max_attempts: int = 3
    changes: Changes = field(default_factory=Changes)
    rate: float | None = None
    accept_new_times: bool = False
    take_over: bool = False
    again: bool = False
    to_topics: tuple[str, ...] = ()
    unattended: bool = False
    master: str | None = None


def plan_redrive(services: Services, request: RedriveRequest, *, report: Callable[[str], None]) -> Plan[RedriveArguments]:
    """Read the dead letters, and decide which go back.

    :param report: called with a line for each cause where the redrive is refused, so that there is no plan to list them
    :raises Refused: with the reason, before anything is sent
    """
    for form in (request.changes.key, request.changes.value):
        parse_form(form)
    source = source_of(services, None)
    found = range_of(services, source, request.source, request.span)
    if found.topic in (request.route, request.parked):
        raise UsageProblem(f"{found.topic} would go back to itself", hint="--route and --parked take other topics")
    settings_of(services.connection, "target", chosen_master(services, request.master))  # refuses before anything starts
    created = require_progress_topic(services)
    known = read_done(services, found.topic, found.ranges)
    if not request.take_over:
        refuse_under_way(found.topic, known)
    if not request.again:
        refuse_forgotten(services, found.topic, known, {number: some.start for number, some in found.ranges.items()})
    noted = folded(services, known, stable=not request.take_over)
    done = dict.fromkeys(noted, RedriveProgress()) if request.again else noted
    arguments = replace(_arguments(services, request, found.topic, chosen_master(services, request.master)), times=found.times)
    work = Work(services, arguments)
    work.begin()
    groups, chosen = _read(work, found, done, request)
    _refuse_scattered(found.topic, noted, chosen)
    sent = [group for group in groups if group.fate in ("send", "parked")]
    topics = sorted({str(group.topic) for group in sent})
    named = sorted({str(group.topic) for group in sent if group.fate == "send"} - {request.route})
    look = ReplayRequest(source=found.topic, target=None, accept_new_times=request.accept_new_times)
    try:
        if found.topic in topics:
            raise Refused(f"dead letters of {found.topic} say that they came from {found.topic} itself", hint="leave them out with --where")
        _refuse_topics(found.topic, named, request)
        targets = targets_of(services, topics, look) if topics else Targets({}, {}, {}, {}, own=False)
    except KopsError as error:
        for line in causes_lines(groups):
            report(line)
        error.details["histogram"] = causes_json(groups)
        raise
    by, said = _placement(sent, targets, request.changes)
    claims = dict(sorted(chosen.items()))
    return Plan(
        operation=OPERATION,
        summary=_summary(sent, found.topic, topics),
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(_items(found, done, claims)),
        guard=guard_of(targets) | {"empty_ends": {}, "done": done_json({number: noted[number] for number in claims})},
        arguments=replace(
            arguments.sent_to(targets),
            own=False,
            anchor=topics[0] if topics else "",
            partition_by=by,
            ranges={number: (some[0][0], some[-1][1]) for number, some in claims.items()},
            claims=claims,
            without_records=_without_records(found, done, claims) if len(sent) == len(groups) and found.times == ANY_TIME else {},
            histogram=causes_json(groups),
        ),
        warnings=tuple(_warnings(found.topic, targets, groups)),
        notes=(
            *causes_lines(groups),
            *left_lines(groups, request.max_attempts),
            *taken_over(known),
            *([said] if sent else []),
            *_exactness(found),
            *created,
        ),
    )


def _read(
    work: Work[RedriveArguments], found: Range, done: Mapping[int, RedriveProgress], request: RedriveRequest
) -> tuple[list[LetterGroup], dict[int, Intervals]]:
    """Return what was found by cause, and the offsets to send."""
    session = work.engine.session  # must have started before anything else imports pyspark
    from kops.spark.driver.failures import explained
    from kops.spark.replay.jobs import PartitionRange
    from kops.spark.replay.redrive import grouped, offsets_chosen

    del session
    parts: list[PartitionRange] = []
    for number, some in sorted(found.ranges.items()):
        start = max(some.start, done[number].first)
        if start < some.end:
            parts.append(PartitionRange(number, start, some.end))
    if not parts:
        return [], {}
    work.services.progress.step(f"reading the dead letters of {found.topic}")
    letters = letters_of(work, parts, {number: one.done for number, one in done.items()}, inside=False, where=request.changes.where)
    with explained(f"read the dead letters of {found.topic}"):
        groups = grouped(letters)
        chosen = offsets_chosen(letters) if any(group.fate in ("send", "parked") for group in groups) else {}
    return groups, {number: joined(some) for number, some in chosen.items()}


def _arguments(services: Services, request: RedriveRequest, topic: str, master: str) -> RedriveArguments:
    return RedriveArguments(
        replay=new_name(services, "redrive"),
        source=topic,
        master=master,
        changes=request.changes,
        rate=request.rate,
        guarantee=EXACTLY_ONCE,
        new_times=request.accept_new_times,
        progress_topic=PROGRESS_TOPIC,
        source_id=services.kafka.topics.existing([topic])[topic].topic_id,
        causes=request.causes,
        route=request.route,
        parked=request.parked,
        max_attempts=request.max_attempts,
        take_over=request.take_over,
    )


def _refuse_scattered(topic: str, done: Mapping[int, RedriveProgress], chosen: Mapping[int, Intervals]) -> None:
    """Refuse when brokers would not accept the record of what was sent, before and after.

    :raises Refused: naming the partition
    """
    for number, some in chosen.items():
        during, after = (
            RedriveProgress(done[number].done, some, "kops-redrive-20260101T000000-000000"),
            RedriveProgress(joined(done[number].done, some)),
        )
        if not (fits(during) and fits(after)):
            raise Refused(
                f"what is chosen of {topic}:{number} is too scattered to be noted: {len(some):,} pieces",
                hint="send a part of it: a narrower --range first, or all causes of a range at once",
            )


def _refuse_topics(topic: str, named: Sequence[str], request: RedriveRequest) -> None:
    """Refuse topics that were not approved: whoever can write to a dead-letter topic chooses, by a header, where a redrive writes.

    :param named: the topics that headers name
    """
    if not request.to_topics and not request.unattended:
        return  # the plan lists them and is approved
    others = [name for name in named if not any(fnmatch.fnmatchcase(name, pattern) for pattern in request.to_topics)]
    if others:
        given = (
            f"--to-topics does not name ({', '.join(request.to_topics)})"
            if request.to_topics
            else "were not approved (--yes skips the question)"
        )
        allow = " ".join(f"--to-topics {shlex.quote(name)}" for name in others)
        raise Refused(
            f"headers of dead letters of {topic} name topics that {given}: {', '.join(others)}",
            hint=f"whoever writes to {topic} chooses these topics: {allow} allows them, --where leaves out what goes there",
            topics=others,
        )


def _placement(sent: Sequence[LetterGroup], targets: Targets, changes: Changes) -> tuple[str, str]:
    """Return how the partition of a record is chosen, and a sentence about it."""
    back = [group for group in sent if group.fate == "send"]
    keys = any(name == "key" for name, _ in changes.assignments)
    known = all(group.placed == group.count and (group.furthest or 0) < targets.counts[str(group.topic)] for group in back)
    if known and not keys:
        return BY_ORIGIN, "each goes to the partition that it came from"
    return BY_KEY, "partitions by murmur2 of the key, without a key by that of the dead letter"


def _items(found: Range, done: Mapping[int, RedriveProgress], claims: Mapping[int, Intervals]) -> list[Item]:
    items = []
    for number, some in sorted(found.ranges.items()):
        target = f"{found.topic}:{number}"
        if number in claims:
            count = sum(end - start for start, end in claims[number])
            items.append(Item(target, "send", claims[number][0][0], claims[number][-1][1], counted(count, "dead letter")))
        else:
            before = done[number].first
            why = "no dead letters" if some.empty else "all were sent back before" if before >= some.end else "none is chosen"
            items.append(Item(target, "none", some.start, some.end, why))
    return items


def _without_records(found: Range, done: Mapping[int, RedriveProgress], claims: Mapping[int, Intervals]) -> dict[int, Intervals]:
    """Return the offsets between the dead letters when all are sent: markers, and what was aborted or compacted away."""
    spans: dict[int, Intervals] = {}
    for number in claims:
        start = found.ranges[number].start
        spans[number] = ((0 if start <= done[number].first else start, found.ranges[number].end),)
    return spans


def _summary(sent: Sequence[LetterGroup], topic: str, topics: Sequence[str]) -> str:
    if not sent:
        return f"send no dead letters of {topic}"
    parked = sum(group.count for group in sent if group.fate == "parked")
    apart = f", {parked:,} of them parked" if parked else ""
    return f"send {counted(sum(group.count for group in sent), 'dead letter')} of {topic} to {', '.join(topics)}{apart}"


def _warnings(topic: str, targets: Targets, groups: Sequence[LetterGroup]) -> list[str]:
    warnings = []
    if targets.counts:
        warnings.append(f"every reader of {', '.join(targets.counts)} gets them again, not only the one that could not take them")
    if targets.appends_times:
        warnings.append(f"{', '.join(targets.appends_times)} gives each record the time of its appending")
    if targets.compacted:
        warnings.append(f"{', '.join(targets.compacted)} is compacted: what is sent back of {topic} replaces newer records of the same key")
    bare = sum(group.count for group in groups if group.written_by == SHARE_GROUP and group.fate == "send")
    if bare:  # KIP-1191: copy.record.enable copies these two
        warnings.append(f"{counted(bare, 'dead letter')} of share groups: sent without the headers and the timestamp that the record had")
    return warnings


def _exactness(found: Range) -> list[str]:
    looked = f"{counted(found.offsets, 'offset')} checked, as timestamps can be out of order"
    return [
        *([f"only dead letters {range_text(found.times)}: {looked}"] if found.times != ANY_TIME else []),
        f"each once: {PROGRESS_TOPIC} has which dead letters were sent back, in the transactions of the records; there is no undo",
        *(note.replace(" is sent", " is sent back") for note in found.notes),
    ]

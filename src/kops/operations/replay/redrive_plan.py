"""Plans a redrive: which dead letters go back, to where, and which stay, by cause."""

from __future__ import annotations

import fnmatch
import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kops.core.errors import KopsError, Refused, UsageProblem
from kops.core.findings import counted
from kops.core.intervals import Intervals, joined
from kops.core.plan import Item, Plan
from kops.core.topics.names import PROGRESS_TOPIC
from kops.operations.engine.spark import chosen_master
from kops.operations.replay.jobs import Work
from kops.operations.replay.redrive_done import (
    OPERATION,
    Done,
    done_json,
    fits,
    folded,
    read_done,
    refuse_forgotten,
    refuse_under_way,
    require_memory,
)
from kops.operations.replay.redrive_rows import BY_ORIGIN, letters_of
from kops.operations.replay.redrive_shown import causes_json, causes_lines, left_lines
from kops.operations.replay.redrive_taken_over import taken_over
from kops.operations.replay.source import Range, range_of, settings_of, source_of
from kops.operations.replay.targets import Targets, guard_of, targets_of
from kops.operations.replay.wanted import BY_KEY, EXACTLY_ONCE, Changes, Wanted, parse_form
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.spark.replay.jobs import Part
    from kops.spark.replay.redrive import Group


@dataclass(frozen=True)
class Redriven:
    """What somebody asks of a redrive.

    :param source: the dead-letter topic, with or without partitions
    :param span: ``FROM..TO`` of it
    :param causes: texts, one of which a cause has
    :param route: where those go that do not say where they came from
    :param parked: where those go that were sent back ``max_attempts`` times; None leaves them
    :param changes: formats, ``--where`` and ``--set``
    :param take_over: count a redrive that was never finished as it is
    :param again: choose among those too that were sent back before
    :param to_topics: patterns of topics that headers may name
    :param unattended: nobody looks at the plan before it is carried out
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


def plan_redrive(services: Services, wanted: Redriven, *, tell: Callable[[str], None]) -> Plan:
    """Read the dead letters, and decide which go back.

    :param tell: is given what there is by cause, a line each, where no plan comes of it that has them
    :raises Refused: with the reason, before anything is sent
    """
    for form in (wanted.changes.key, wanted.changes.value):
        parse_form(form)
    source = source_of(services, None)
    found = range_of(services, source, Wanted(source=wanted.source, target=None, span=wanted.span))
    if found.topic in (wanted.route, wanted.parked):
        raise UsageProblem(f"{found.topic} would go back to itself", hint="--route and --parked take other topics")
    settings_of(services.connection, "target")  # refuses before anything starts
    created = require_memory(services)
    known = read_done(services, found.topic, found.ranges)
    if not wanted.take_over:
        refuse_under_way(found.topic, known)
    if not wanted.again:
        refuse_forgotten(services, found.topic, known, {number: some.start for number, some in found.ranges.items()})
    noted = folded(services, known, stable=not wanted.take_over)
    done = dict.fromkeys(noted, Done()) if wanted.again else noted
    arguments = _arguments(services, wanted, found.topic, chosen_master(services, wanted.master))
    work = Work(services, arguments)
    work.begin()
    groups, chosen, total = _read(work, found, done, wanted)
    _refuse_scattered(found.topic, noted, chosen)
    sent = [group for group in groups if group.fate in ("send", "parked")]
    topics = sorted({str(group.topic) for group in sent})
    named = sorted({str(group.topic) for group in sent if group.fate == "send"} - {wanted.route})
    look = Wanted(source=found.topic, target=None, accept_new_times=wanted.accept_new_times)
    try:
        if found.topic in topics:
            raise Refused(f"dead letters of {found.topic} say that they came from {found.topic} itself", hint="leave them out with --where")
        _refuse_topics(found.topic, named, wanted)
        targets = targets_of(services, topics, look) if topics else Targets({}, {}, {}, {}, own=False)
    except KopsError as error:
        for line in causes_lines(groups):
            tell(line)
        error.details["histogram"] = causes_json(groups)
        raise
    by, said = _placement(sent, targets, wanted.changes)
    claims = {number: chosen[number] for number in sorted(chosen)}
    whole = sum(group.count for group in groups) == total
    return Plan(
        operation=OPERATION,
        summary=_summary(sent, found.topic, topics),
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(_items(found, done, claims)),
        guard=guard_of(targets) | {"empty_ends": {}, "done": done_json({number: noted[number] for number in claims})},
        arguments=arguments
        | {
            "targets": dict(targets.counts),
            "anchor": topics[0] if topics else "",
            "partition_by": by,
            "largest": targets.largest if topics else 0,
            "inflated": any(targets.setting(topic, "compression.type") not in ("", "producer") for topic in topics),
            "ends": {str(place): end for place, end in sorted(targets.ends.items())},
            "ranges": {str(number): [some[0][0], some[-1][1]] for number, some in claims.items()},
            "claims": {str(number): [list(each) for each in some] for number, some in claims.items()},
            "without_records": _without_records(found, done, claims) if whole and len(sent) == len(groups) else {},
            "histogram": causes_json(groups),
        },
        warnings=tuple(_warnings(found.topic, targets)),
        notes=(
            *causes_lines(groups),
            *left_lines(groups, wanted.max_attempts),
            *taken_over(known),
            *([said] if sent else []),
            *_exactness(found),
            *created,
        ),
    )


def _read(work: Work, found: Range, done: Mapping[int, Done], wanted: Redriven) -> tuple[list[Group], dict[int, Intervals], int]:
    """Return what there is by cause, the offsets to send, and how many records were read."""
    session = work.engine.session  # has started before anything else imports pyspark
    from kops.spark.driver.failures import explained
    from kops.spark.replay.jobs import Part
    from kops.spark.replay.redrive import grouped, offsets_chosen

    del session
    parts: list[Part] = []
    for number, some in sorted(found.ranges.items()):
        before = done[number].done
        start = max(some.start, before[0][1]) if before and before[0][0] == 0 else some.start
        if start < some.end:
            parts.append(Part(number, start, some.end))
    if not parts:
        return [], {}, 0
    work.services.progress.step(f"reading the dead letters of {found.topic}")
    letters = letters_of(work, parts, {number: one.done for number, one in done.items()}, inside=False, where=wanted.changes.where)
    with explained(f"read the dead letters of {found.topic}"):
        groups = grouped(letters)
        chosen = offsets_chosen(letters) if any(group.fate in ("send", "parked") for group in groups) else {}
    return groups, {number: joined(some) for number, some in chosen.items()}, sum(group.count for group in groups)


def _arguments(services: Services, wanted: Redriven, topic: str, master: str) -> dict[str, Any]:
    return {
        "replay": f"kops-redrive-{services.now():%Y%m%dT%H%M%S}-{secrets.token_hex(3)}",
        "rows": "dead letters",
        "source": topic,
        "source_id": services.kafka.topics.existing([topic])[topic].topic_id,
        "source_context": None,
        "target": None,
        "changes": wanted.changes.as_json(),
        "causes": list(wanted.causes),
        "route": wanted.route,
        "parked": wanted.parked,
        "max_attempts": wanted.max_attempts,
        "take_over": wanted.take_over,
        "rate": wanted.rate,
        "limit": None,
        "guarantee": EXACTLY_ONCE,
        "compression": "none",
        "new_times": wanted.accept_new_times,
        "master": master,
        "own": False,
        "progress_topic": PROGRESS_TOPIC,
    }


def _refuse_scattered(topic: str, done: Mapping[int, Done], chosen: Mapping[int, Intervals]) -> None:
    """Refuse when brokers would not take the note of what was sent, before and after.

    :raises Refused: naming the partition
    """
    for number, some in chosen.items():
        during, after = Done(done[number].done, some, "kops-redrive-20260101T000000-000000"), Done(joined(done[number].done, some))
        if not (fits(during) and fits(after)):
            raise Refused(
                f"what is chosen of {topic}:{number} is too scattered to be noted: {len(some):,} pieces",
                hint="send a part of it: a narrower --range first, or all causes of a range at once",
            )


def _refuse_topics(topic: str, named: Sequence[str], wanted: Redriven) -> None:
    """Refuse topics that nobody agreed to: who may write to a dead-letter topic chooses by a header where a redrive writes.

    :param named: the topics that headers name
    """
    if not wanted.to_topics and not wanted.unattended:
        return  # the plan lists them, and somebody approves it
    others = [name for name in named if not any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted.to_topics)]
    if others:
        given = f"--to-topics does not name ({', '.join(wanted.to_topics)})" if wanted.to_topics else "with --yes nobody approves the plan"
        allow = " ".join(f"--to-topics {shlex.quote(name)}" for name in others)
        raise Refused(
            f"headers of dead letters of {topic} name topics that {given}: {', '.join(others)}",
            hint=f"whoever writes to {topic} chooses these topics: {allow} allows them, --where leaves out what goes there",
            topics=others,
        )


def _placement(sent: Sequence[Group], targets: Targets, changes: Changes) -> tuple[str, str]:
    """Return how the partition of a record is chosen, and a sentence about it."""
    back = [group for group in sent if group.fate == "send"]
    keys = any(name == "key" for name, _ in changes.assignments)
    known = all(group.placed == group.count and (group.furthest or 0) < targets.counts[str(group.topic)] for group in back)
    if known and not keys:
        return BY_ORIGIN, "each goes to the partition that it came from"
    return BY_KEY, "partitions by murmur2 of the key, without a key by that of the dead letter"


def _items(found: Range, done: Mapping[int, Done], claims: Mapping[int, Intervals]) -> list[Item]:
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


def _without_records(found: Range, done: Mapping[int, Done], claims: Mapping[int, Intervals]) -> dict[str, list[list[int]]]:
    """Return the offsets between the dead letters when all are sent: markers, and what was aborted or compacted away."""
    spans = {}
    for number in claims:
        before = done[number].done
        start = found.ranges[number].start
        reached = before[0][1] if before and before[0][0] == 0 else 0
        spans[str(number)] = [[0 if start <= reached else start, found.ranges[number].end]]
    return spans


def _summary(sent: Sequence[Group], topic: str, topics: Sequence[str]) -> str:
    if not sent:
        return f"send no dead letters of {topic}"
    parked = sum(group.count for group in sent if group.fate == "parked")
    apart = f", {parked:,} of them parked" if parked else ""
    return f"send {counted(sum(group.count for group in sent), 'dead letter')} of {topic} to {', '.join(topics)}{apart}"


def _warnings(topic: str, targets: Targets) -> list[str]:
    warnings = []
    if targets.counts:
        warnings.append(f"every reader of {', '.join(targets.counts)} gets them again, not only the one that could not take them")
    if targets.appends_times:
        warnings.append(f"{', '.join(targets.appends_times)} gives each record the time of its appending")
    if targets.compacted:
        warnings.append(f"{', '.join(targets.compacted)} is compacted: what is sent back of {topic} replaces newer records of the same key")
    return warnings


def _exactness(found: Range) -> list[str]:
    return [
        f"each once: {PROGRESS_TOPIC} has which dead letters were sent back, in the transactions of the records; there is no undo",
        *(note.replace(" is sent", " is sent back") for note in found.notes),
    ]

"""What the commits of an application show, as ``__consumer_offsets`` still has them: who made them, and for which topic.

Kafka Streams stores the partition time with every offset that it commits (``TopicPartitionMetadata``, since 2.4). An offset without it was
set by a tool: the records in between count twice, or not at all. A commit that was deleted, or that is of a topic with another id, refers
to another log than the one that kops reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kops.core.errors import KopsError
from kops.core.findings import Finding
from kops.core.groups.history import CommitEvent
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.offsets.arithmetic import is_streams_metadata
from kops.core.statefile import StateFile
from kops.core.statefile.models import FAUST
from kops.core.streams.verdict import ALL_KEYS, KEYS_THERE, doubt
from kops.core.times import time_text
from kops.operations.groups.log import read_group_log
from kops.operations.services import Services
from kops.operations.state.facts import StoreFacts
from kops.operations.state.input_starts import MOST_COMMITS
from kops.operations.state.judge.journal import OwnHistory


@dataclass(frozen=True)
class Commits:
    """What the commits show about the stores of an application.

    :param findings: store -> what puts it in doubt
    :param apart: stores whose changelogs reflect other offsets than the committed ones: a tool moved the group, and nothing ran since
    :param gap: why the past could not be read; empty where it was
    """

    findings: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    apart: frozenset[str] = frozenset()
    gap: str = ""

    def with_more(self, more: Mapping[str, Sequence[Finding]]) -> Commits:
        """Return these with further findings about stores."""
        names = {**self.findings, **more}
        return replace(self, findings={name: (*self.findings.get(name, ()), *more.get(name, ())) for name in names})


def read_commits(
    services: Services,
    state_file: StateFile,
    facts: Sequence[StoreFacts],
    committed: Mapping[TopicPartition, CommittedOffset],
    *,
    starts: Mapping[TopicPartition, int],
    past: OwnHistory,
    until: str = "",
) -> Commits:
    """Read what the commits of an application show.

    :param committed: its committed offsets now
    :param starts: the first offsets of its input that may count
    :param past: what kops itself did, which is not judged again
    :param until: when the offsets were committed, ISO-8601 UTC, if they are those of a snapshot; empty: now
    """
    if state_file.library == FAUST:
        return Commits()
    gap = ""
    events: dict[TopicPartition, list[CommitEvent]] = {}
    try:
        log = read_group_log(services, [state_file.application], most=MOST_COMMITS)
        known = log.histories[state_file.application].commits
        events = {at: [event for event in some if not until or time_text(event.time) <= until] for at, some in known.items()}
    except KopsError as error:
        gap = f"who set the offsets of {state_file.application} is not known, as far as they have moved on since: {error.message}"
    for at, standing in committed.items():
        if not events.get(at):
            events[at] = [CommitEvent(at, 0, standing, 0)]
    if not any(event.committed and is_streams_metadata(event.committed.metadata) for some in events.values() for event in some):
        return Commits(gap=gap)
    ids = _topic_ids(services, events)
    findings: dict[str, list[Finding]] = {}
    apart = set()
    for found in facts:
        name = found.store.name
        since = past.computed.get(name, "")
        for at in sorted(found.input_bounds):
            some = [event for event in events.get(at, ()) if not since or not event.time or time_text(event.time) >= since]
            kept, made = list(_without_passing(some)), past.made.get(at, frozenset())
            findings.setdefault(name, []).extend(_doubts(kept, starts.get(at, 0), made, ids.get(at.topic)))
            if _stands_apart(kept, made):
                apart.add(name)
    return Commits({name: some for name, some in findings.items() if some}, frozenset(apart), gap)


def _topic_ids(services: Services, events: Mapping[TopicPartition, Sequence[CommitEvent]]) -> dict[str, str]:
    topics = sorted({at.topic for at, some in events.items() if any(event.topic_id for event in some)})
    existing = services.kafka.topics.existing(topics) if topics else {}
    return {name: topic.topic_id for name, topic in existing.items() if topic.topic_id}


def _doubts(events: Sequence[CommitEvent], start: int, made: frozenset[int | None], topic_id: str | None) -> Iterator[Finding]:
    """Follow the commits of a partition.

    :param events: without those that were overwritten
    :param start: the first offset that may count
    :param made: what kops itself committed, which the journal explains; None: it deleted the commit
    :param topic_id: of the topic as it is now
    """
    stood: int | None = None
    recreated = deleted = False
    for event in events:
        at, now, when = event.partition, event.committed, time_text(event.time) if event.time else ""
        if not recreated and event.topic_id is not None and topic_id is not None and event.topic_id != topic_id:
            recreated = True
            yield _doubt(
                "recreated_input",
                when,
                f"{at.topic} was deleted and created again after {when}: what was read of it before is no longer in it",
            )
        if now is None:
            deleted = deleted or (stood is not None and None not in made)
            continue
        if deleted and not recreated:
            what = f"the commit of {at}, which stood at {stood}, expired or was deleted before {when}, and it began again from there"
            yield _doubt("deleted_commit", when, f"{what}: the topic was created again, or records were read twice, or never")
        elif not deleted and now.offset != stood and _is_of_tool(now) and now.offset not in made:
            yield from _moved(at, stood, now.offset, start, when, is_last=event is events[-1])
        stood, deleted = now.offset, False


def _doubt(check: str, when: str, summary: str, *, settled_by: str = ALL_KEYS) -> Finding:
    """Return a doubt about an application's commits.

    :param when: ISO-8601 UTC; empty where that is not known. A ``verify`` after it that found the store proven settles it too
    """
    return doubt(check, summary, settled_by=settled_by, time=when)


def _without_passing(events: Sequence[CommitEvent]) -> Iterator[CommitEvent]:
    """Yield the commits without those of tools that a tool overwrote before the application continued."""
    for number, event in enumerate(events, 1):
        passing = number < len(events) and _is_of_tool(event.committed) and _is_of_tool(events[number].committed)
        if not passing:
            yield event


def _is_of_tool(committed: CommittedOffset | None) -> bool:
    """Whether a commit was not made by Kafka Streams; one whose metadata could not be read may have been."""
    return committed is not None and committed.metadata is not None and not is_streams_metadata(committed.metadata)


def _moved(at: TopicPartition, before: int | None, after: int, start: int, when: str, *, is_last: bool) -> Iterator[Finding]:
    """Judge an offset that a tool committed.

    :param is_last: the application has not continued from there
    """
    to = f"{after}{f' on {when[:10]}' if when else ''}"
    known = "(Kafka Streams commits the partition time with it, and here is none)"
    if before is None:
        if after > start:
            yield _doubt("moved_by_tool", when, f"a tool set the offset of {at} to {to} {known}: what lies before it need not have counted")
    elif after > before:
        yield _doubt(
            "moved_by_tool", when, f"a tool set the offset of {at} forward from {before} to {to} {known}: the records between never counted"
        )
    elif not is_last:
        what = f"a tool set the offset of {at} back from {before} to {to}"
        if after <= start:
            said = f"{what}: where the application kept its state, records have counted twice"
            yield _doubt("moved_by_tool", when, said, settled_by=KEYS_THERE)
        else:
            yield _doubt("moved_by_tool", when, f"{what} {known}: the records between counted twice")


def _stands_apart(events: Sequence[CommitEvent], made: frozenset[int | None]) -> bool:
    """Whether a tool made the last move of the partition, so that the changelog reflects another offset."""
    before, last = (event.committed for event in events[-2:]) if len(events) > 1 else (None, None)  # where it stood, and was moved to
    return before is not None and last is not None and before.offset != last.offset and _is_of_tool(last) and last.offset not in made

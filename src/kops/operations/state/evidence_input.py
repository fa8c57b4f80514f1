"""What the logs of a store's input testify to, as far as tasks have read them as whole batches: gaps, and their latest time.

Of a log that was compacted, or is no longer, offsets without a record are left, which no transaction's marker explains. And Kafka Streams
commits with each offset the greatest timestamp that it has seen of the partition: by its own extractor, of the records that it has read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kops.core.errors import UndecodableRecord
from kops.core.models import Committed, TopicPartition
from kops.core.statefile import StateFile
from kops.core.statefile.models import FAUST
from kops.core.statefile.sources import WALL_CLOCK
from kops.core.times import time_text
from kops.formats.streams.offset_metadata import UNKNOWN_TIME, decode
from kops.operations.state.compute import Computed
from kops.operations.state.cut import Cut
from kops.operations.state.engine import Engine
from kops.operations.state.evidence_commits import Doubt
from kops.operations.state.exactness import of_gaps, worst

_NAMED = 3


def with_input(engine: Engine, found: Computed, cut: Cut) -> Computed:
    """Return a store judged by the gaps in its input."""
    facts = found.facts
    if not facts.store.reuses_source and _lacks_some(found, cut):
        for source in facts.store.inputs:
            engine.scan(source.topic, cut.ranges(facts, source.topic))
    judged = []
    for source in facts.store.inputs:
        gaps = {
            number: seen.gaps
            for number, (start, end) in cut.ranges(facts, source.topic).items()
            if (seen := engine.seen(source.topic, number, start, end)) and seen.gaps
        }
        if gaps:
            places = [f"{source.topic}:{number} {_offsets(some)}" for number, some in sorted(gaps.items())]
            more = f" and {len(places) - _NAMED} more partitions" if len(places) > _NAMED else ""
            judged.append(of_gaps(facts.store, f"{', '.join(places[:_NAMED])}{more}"))
    if not judged:
        return found
    grade = max(each.grade for each in judged)
    return replace(found, exactness=worst([found.exactness, *judged]), computed_as=max(found.computed_as, grade))


def _lacks_some(found: Computed, cut: Cut) -> bool:
    """Tell whether fewer records were read than there are offsets: for transactions' markers, what was aborted, or gaps."""
    facts = found.facts
    offsets = sum(end - start for source in facts.store.inputs for start, end in cut.ranges(facts, source.topic).values())
    return facts.base is None and not cut.archived and found.counts.read + sum(map(len, facts.waiting.values())) < offsets


def _offsets(gaps: tuple[tuple[int, int], ...]) -> str:
    first, last = gaps[0]
    return (f"at offset {first}" if first == last else f"among the offsets {first} to {last}") + (" and others" if len(gaps) > 1 else "")


def doubts_of_aborts(engine: Engine, state_file: StateFile, found: Computed, cut: Cut) -> list[Doubt]:
    """Return where transactions were aborted of which the state file does not say whether their records counted."""
    if state_file.says_isolation or state_file.library == FAUST:
        return []
    places = [
        str(TopicPartition(source.topic, number))
        for source in found.facts.store.inputs
        for number, (start, end) in sorted(cut.ranges(found.facts, source.topic).items())
        if (seen := engine.seen(source.topic, number, start, end)) and seen.aborted
    ]
    if not places:
        return []
    more = f" and {len(places) - _NAMED} more partitions" if len(places) > _NAMED else ""
    what = f"transactions were aborted in {', '.join(places[:_NAMED])}{more}, and the state file does not say whether their records count"
    return [Doubt("", f"{what} (streams.isolation)")]


def doubts_of_times(engine: Engine, state_file: StateFile, found: Computed, cut: Cut, made: Mapping[TopicPartition, object]) -> list[Doubt]:
    """Return where the partition times that the application has committed are not those of what was computed.

    :param made: partitions whose offsets kops has moved: the time that it committed need not be of what lies before
    """
    facts = found.facts
    if state_file.library == FAUST or cut.is_new or facts.base is not None or facts.waiting:
        return []
    may_skip = found.counts.dropped.get("undecodable", 0) > 0
    doubts = []
    for source in facts.store.inputs:
        read = {
            TopicPartition(source.topic, number): (start, end)
            for number, (start, end) in sorted(cut.ranges(facts, source.topic).items())
            if start < end
        }
        if source.timestamp == WALL_CLOCK or any(at in made or start > facts.starts.get(at, 0) for at, (start, _) in read.items()):
            continue
        known = {at: _partition_time(cut.committed.get(at)) for at in read}
        latest = {
            at: seen.latest for at, ends in read.items() if (seen := engine.seen(at.topic, at.partition, *ends)) and seen.latest is not None
        }
        if source.timestamp is None and latest:
            compared = [(str(at), known[at], latest.get(at)) for at in read]
        elif not facts.store.others and UNKNOWN_TIME not in known.values():
            compared = [(source.topic, max(known.values(), default=UNKNOWN_TIME), found.counts.latest)]
        else:
            continue
        doubts += [doubt for where, seen_by_it, by_kops in compared for doubt in _compared(where, seen_by_it, by_kops, may_skip=may_skip)]
    return doubts


def _partition_time(committed: Committed | None) -> int:
    try:
        return decode(committed.metadata or "").partition_time_ms if committed else UNKNOWN_TIME
    except UndecodableRecord:
        return UNKNOWN_TIME


def _compared(where: str, known: int, latest: int | None, *, may_skip: bool) -> Iterator[Doubt]:
    """Compare two times of a partition, or of all of a topic.

    :param known: what Kafka Streams has seen
    :param latest: what kops has seen; None: nothing
    """
    if latest is None or known in (UNKNOWN_TIME, latest) or (may_skip and known < latest):
        return
    told = f"Kafka Streams has seen the time {time_text(known)} in {where}, and the latest record there is of {time_text(latest)}"
    if known > latest:
        yield Doubt("", f"{told}: it takes times from elsewhere (see `timestamp`), or has read records that are gone", shows=True)
    else:
        yield Doubt("", f"{told}: it takes times from elsewhere (see `timestamp`), or that record never counted")

"""What is in doubt about stores that an application's own program computed: by what its capture leaves open, and what its runs showed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kops.core.findings import Finding, counted, names_text
from kops.core.streams.capture import Capture
from kops.core.streams.program import has_windows, topics_of
from kops.core.streams.program_doubts import Doubts, topics_in_any_partition
from kops.core.streams.rules import late_records, record_order
from kops.core.streams.topics import CHANGELOG
from kops.core.streams.verdict import doubt, remark
from kops.formats.base import as_text_or_base64
from kops.output.records import as_line

if TYPE_CHECKING:
    from kops.spark.programs.jobs import Ran, StoreCounts

_NAMED = 5
_BY_CLOCK = "PunctuationType.WALL_CLOCK_TIME"
_OFFSET = ".offset"
"""With what a call ends that asks for a record's offset."""


@dataclass(frozen=True)
class ProgramRuns:
    """How a store was computed by its program.

    :param doubts: that its capture leaves about the store
    :param here: what was counted of it
    :param ran: the sub-topologies that fill it, its own first
    :param windows: whether records may have come too late for something
    :param anywhere: topics of which records without a key may be in any partition
    :param dropped: how many records the library dropped in all sub-topologies, where the program had no network
    """

    doubts: Doubts
    here: StoreCounts
    ran: Sequence[Ran]
    windows: bool = False
    anywhere: Collection[str] = ()
    dropped: int = 0

    @classmethod
    def of(cls, capture: Capture, store: str, doubts: Doubts, ran: Mapping[int, Ran], *, alone: bool) -> ProgramRuns:
        """Return those of a store.

        :param ran: by the numbers of sub-topologies
        :param alone: the program had no network
        """
        found = capture.subtopology_of(store)
        if found is None:
            raise ValueError(store)
        concerned = [found.number, *topics_of(capture, found.number).upstream]
        return cls(
            doubts,
            ran[found.number].stores[store],
            [ran[number] for number in concerned],
            windows=has_windows(capture, concerned),
            anywhere=topics_in_any_partition(capture),
            dropped=sum(each.skipped for each in ran.values()) if alone else 0,
        )

    def findings(self) -> Iterator[Finding]:
        yield from self.doubts.findings
        yield from _calls(self)
        yield from _seen(self)
        yield from _orders(self)
        if self.doubts.own_processors:
            beside = "what they keep in other classes, which a restart forgets, or read from elsewhere is not known"
            said = f"the program's own processors fill it, and {beside}: {', '.join(self.doubts.own_processors)}"
            yield remark("own_processors", said)
        yield from _refused(self.ran)
        if self.dropped:
            why = "without a network that may be since serdes could not ask a schema registry, or another call failed"
            yield doubt("no_network", f"the library dropped {self.dropped:,} records, and {why}")


def _orders(runs: ProgramRuns) -> Iterator[Finding]:
    """Judge a store by what runs in other orders gave."""
    of_order, here = runs.doubts.of_order, runs.here
    if not of_order:
        return
    orders, thrown = runs.ran[0].orders, next((each.thrown for each in runs.ran if each.thrown), None)
    examples = keys_text(here.examples)
    if orders == 1:
        yield from (doubt("record_order", reason) for reason in of_order)
    elif thrown:
        yield doubt("record_order", f"in another legal order of its records it fails: {thrown}; {'; '.join(of_order)}")
    elif here.unsure:
        yield record_order(here.unsure, here.keys + here.elsewhere, of_order, examples)
    elif here.unsure_times:
        which = f"the timestamps of {here.unsure_times:,} of {here.keys:,} keys depend on the order of records, such as {examples}"
        yield remark("times_by_order", f"{which}: {'; '.join(of_order)}")
    else:
        yield remark("record_order", f"all keys agreed in {orders} legal orders of records, though {'; '.join(of_order)}")


def keys_text(keys: Sequence[bytes]) -> str:
    """Return the first of some keys, in one line."""
    shown = [as_text_or_base64(key) for key in keys[:_NAMED]]
    return ", ".join(as_line(key["data"], key["encoding"]) for key in shown)


def _refused(ran: Sequence[Ran]) -> Iterator[Finding]:
    """Name topics for which records were too large, and the program's ``ProductionExceptionHandler`` passed over these.

    What a changelog has refused stays in the store until that is restored.
    """
    refused = sum((Counter(each.refused) for each in ran), Counter[str]())
    too_large = "were too large (max.request.size, or what max.message.bytes of the topic is now), and the program passed over them"
    for topic, count in sorted(refused.items()):
        said = f"{count:,} records for {topic} {too_large}"
        if topic.endswith(CHANGELOG):
            restart = "the store held them until a restart restored it, and when that was is not known"
            yield doubt("refused_records", f"{said}; {restart}", topic=topic)
        else:
            yield remark("refused_records", said, topic=topic)


def _seen(runs: ProgramRuns) -> Iterator[Finding]:
    """Return what was seen while the program ran that makes its result doubtful."""
    doubts, ran = runs.doubts, runs.ran
    schedules, skipped = sum(each.wall_clock_schedules for each in ran), sum(each.skipped for each in ran)
    unshown = 0 if doubts.shows_stream_time else sum(each.stream_time_schedules for each in ran)
    any_partition = sorted({topic for each in ran for topic in each.without_key if topic not in runs.anywhere})
    kept = sorted({field for each in ran for field in each.kept})
    if kept:
        forgets = "the program keeps something between records in fields, which a restart forgets, and when it was restarted is not known"
        yield doubt("kept_fields", f"{forgets}: {_some(kept)}")
    if unshown:
        between = "its tasks ran in no other order, and between which records these acted is not known"
        said = f"the program schedules {counted(unshown, 'punctuator')} by stream time, which its capture does not show: {between}"
        yield doubt("punctuators", said)
    if schedules:
        yield doubt("punctuators", f"the program schedules {counted(schedules, 'punctuator')} by wall-clock time, not called here")
    if skipped and runs.windows:
        yield late_records(skipped)
    if any_partition:
        yield doubt("no_key", f"records without a key go to any partition of {', '.join(any_partition)}")


def _calls(runs: ProgramRuns) -> Iterator[Finding]:
    """Name calls whose answer differs from run to run or from machine to machine, and those that ask for offsets that are not known."""
    doubts, ran = runs.doubts, runs.ran
    seen = {call for each in ran for call in each.calls}
    clocked = {call for call in seen if call.endswith(_BY_CLOCK)}
    calls = seen - clocked
    offsets = {call for call in calls if call.endswith(_OFFSET)}
    own = {name.partition("$")[0] for name in doubts.classes}
    initial = {call for each in ran for call in each.initial_calls if not call.endswith((_OFFSET, _BY_CLOCK)) and _class_of(call) in own}
    differs = "what gives another answer each time, or on another machine"
    if calls - offsets:
        yield doubt("calls", f"the program was seen to call {differs}: {_some(calls - offsets)}")
    if initial:
        yield doubt("calls", f"a class of its nodes was seen to call, outside of tasks, {differs}: {_some(initial)}")
    if offsets and doubts.numbers_anew:
        asked = "the program was seen to ask for offsets of records, and those of repartition topics are others here"
        yield doubt("offsets", f"{asked}: {_some(offsets)}")
    if clocked and not any(each.wall_clock_schedules for each in ran):
        yield doubt("punctuators", f"punctuators by wall-clock time are scheduled: {_some(clocked)}")


def _class_of(call: str) -> str:
    """Return the outermost class whose method made a call, such as ``com.acme.App.<clinit>: Instant.now``."""
    return call.partition(": ")[0].rpartition(".")[0].partition("$")[0]


def _some(calls: Collection[str]) -> str:
    return names_text(sorted(calls), _NAMED)

"""How exact a store is that an application's own program has computed: by what its capture leaves open, and what was seen of its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from kops.core.findings import counted, names_text
from kops.core.streams.program_doubts import Doubts
from kops.core.streams.topics import CHANGELOG
from kops.formats.base import as_text_or_base64
from kops.operations.state.exactness import SURE, Exactness
from kops.output.records import as_line

if TYPE_CHECKING:
    from kops.spark.programs.jobs import Ran, StoreCounts

_NAMED = 5
_BY_CLOCK = "PunctuationType.WALL_CLOCK_TIME"
_OFFSET = ".offset"
"""With what a call ends that asks for a record's offset."""


def of_runs(doubts: Doubts, here: StoreCounts, ran: Sequence[Ran], *, windows: bool, anywhere: Collection[str] = ()) -> list[Exactness]:
    """Judge a store.

    :param here: what was counted of it
    :param ran: the sub-topologies that fill it, its own first
    :param windows: whether records may have come too late for something
    :param anywhere: topics of which records without a key may be in any partition
    """
    lasting = (*doubts.lasting, *_seen(doubts, ran, windows=windows, anywhere=anywhere))
    return [
        Exactness("C", lasting) if lasting else SURE,
        Exactness("B", (*doubts.of_times, *doubts.untested)) if doubts.of_times or doubts.untested else SURE,
        _of_orders(doubts.of_order, here, ran),
        _of_own_processors(doubts.own_processors),
        *_of_refused(ran),
    ]


def _of_orders(of_order: Sequence[str], here: StoreCounts, ran: Sequence[Ran]) -> Exactness:
    """Judge a store by what runs in other orders gave.

    :param of_order: what leaves the order open
    """
    if not of_order:
        return SURE
    orders, thrown = ran[0].orders, next((each.thrown for each in ran if each.thrown), None)
    if orders == 1:
        return Exactness("C", tuple(of_order))
    if thrown:
        return Exactness("C", (f"in another legal order of its records it fails: {thrown}", *of_order))
    examples = keys_text(here.examples)
    agree = f"the others agreed in {orders} legal orders, which is evidence and not proof"
    if here.unsure:
        what = f"{here.unsure:,} of {here.keys + here.elsewhere:,} keys depend on the order of records, such as {examples}; {agree}"
        return Exactness("C", (what, *of_order))
    if here.unsure_times:
        what = f"the timestamps of {here.unsure_times:,} of {here.keys:,} keys depend on the order of records, such as {examples}; {agree}"
        return Exactness("B", (what, *of_order))
    return Exactness("A", (f"all keys agreed in {orders} legal orders of records, which is evidence and not proof", *of_order))


def keys_text(keys: Sequence[bytes]) -> str:
    """Return the first of some keys, in one line."""
    shown = [as_text_or_base64(key) for key in keys[:_NAMED]]
    return ", ".join(as_line(key["data"], key["encoding"]) for key in shown)


def _of_own_processors(names: Sequence[str]) -> Exactness:
    """Name the program's own processors, of which only what they call is seen."""
    if not names:
        return SURE
    beside = "what they keep in other classes, which a restart forgets, or read from elsewhere is not known"
    return Exactness("A", (f"the program's own processors fill it, and {beside}: {', '.join(names)}",))


def _of_refused(ran: Sequence[Ran]) -> list[Exactness]:
    """Name topics for which records were too large, and the program's ``ProductionExceptionHandler`` passed over these.

    What a changelog has refused stays in the store until that is restored.
    """
    refused = sum((Counter(each.refused) for each in ran), Counter[str]())
    too_large = "were too large (max.request.size, or what max.message.bytes of the topic is now), and the program passed over them"
    named = [(topic, f"{count:,} records for {topic} {too_large}") for topic, count in sorted(refused.items())]
    kept = [text for topic, text in named if topic.endswith(CHANGELOG)]
    restart = "; the store held them until a restart restored it, and when that was is not known"
    return [
        *([Exactness("A", tuple(text for topic, text in named if not topic.endswith(CHANGELOG)))] if len(named) > len(kept) else []),
        *([Exactness("C", tuple(f"{text}{restart}" for text in kept))] if kept else []),
    ]


def _seen(doubts: Doubts, ran: Sequence[Ran], *, windows: bool, anywhere: Collection[str]) -> list[str]:
    """Return what was seen while the program ran that makes its result doubtful."""
    schedules, skipped = sum(each.wall_clock_schedules for each in ran), sum(each.skipped for each in ran)
    unshown = 0 if doubts.shows_stream_time else sum(each.stream_time_schedules for each in ran)
    any_partition = sorted({topic for each in ran for topic in each.without_key if topic not in anywhere})
    kept = sorted({field for each in ran for field in each.kept})
    forgets = "the program keeps something between records in fields, which a restart forgets, and when it was restarted is not known"
    late = "an application that was restarted just before a late one had forgotten its stream time, and has counted it"
    between = "its tasks ran in no other order, and between which records these acted is not known"
    return [
        *_of_calls(doubts, ran, counted_schedules=schedules > 0),
        *([f"{forgets}: {_some(kept)}"] if kept else []),
        *(
            [f"the program schedules {counted(unshown, 'punctuator')} by stream time, which its capture does not show: {between}"]
            if unshown
            else []
        ),
        *([f"the program schedules {counted(schedules, 'punctuator')} by wall-clock time, not called here"] if schedules else []),
        *([f"the library dropped {skipped:,} records, such as late ones: {late}"] if skipped and windows else []),
        *([f"records without a key go to any partition of {', '.join(any_partition)}"] if any_partition else []),
    ]


def _of_calls(doubts: Doubts, ran: Sequence[Ran], *, counted_schedules: bool) -> list[str]:
    """Name calls whose answer differs from run to run or from machine to machine, and those that ask for offsets that are not known.

    :param counted_schedules: punctuators by wall-clock time were counted, so who schedules them need not be named
    """
    seen = {call for each in ran for call in each.calls}
    clocked = {call for call in seen if call.endswith(_BY_CLOCK)}
    calls = seen - clocked
    offsets = {call for call in calls if call.endswith(_OFFSET)}
    own = {name.partition("$")[0] for name in doubts.classes}
    initial = {call for each in ran for call in each.initial_calls if not call.endswith((_OFFSET, _BY_CLOCK)) and _class_of(call) in own}
    differs = "what gives another answer each time, or on another machine"
    started = f"a class of its nodes was seen to call, outside of tasks, {differs}"
    asked = "the program was seen to ask for offsets of records, and those of repartition topics are others here"
    return [
        *([f"the program was seen to call {differs}: {_some(calls - offsets)}"] if calls - offsets else []),
        *([f"{started}: {_some(initial)}"] if initial else []),
        *([f"{asked}: {_some(offsets)}"] if offsets and doubts.numbers_anew else []),
        *([f"punctuators by wall-clock time are scheduled: {_some(clocked)}"] if clocked and not counted_schedules else []),
    ]


def _class_of(call: str) -> str:
    """Return the outermost class whose method made a call, such as ``com.acme.App.<clinit>: Instant.now``."""
    return call.partition(": ")[0].rpartition(".")[0].partition("$")[0]


def _some(calls: Collection[str]) -> str:
    return names_text(sorted(calls), _NAMED)

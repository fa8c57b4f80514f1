"""How exact a store is that an application's own program has computed: by what its capture leaves open, and what was seen of its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from kops.core.findings import counted
from kops.core.streams.program_doubts import Doubts
from kops.core.streams.topics import CHANGELOG
from kops.formats.base import as_text_or_base64
from kops.operations.state.exactness import SURE, Exactness
from kops.output.records import as_line

if TYPE_CHECKING:
    from kops.spark.programs.jobs import Ran, StoreCounts

_NAMED = 5
DEPENDS_ON: Mapping[str, str] = {
    "restarts": "when the application was restarted, since the program keeps something in fields or variables",
    "order": "the order of records",
    "offsets": "offsets of records in repartition topics",
    "chance": "chance, such as random numbers or the time of day",
    "clock": "the date",
    "zone": "the time zone of the process",
    "locale": "the language of the process",
    "charset": "the default charset of the process",
    "hash-order": "the order in which hash tables hold objects",
    "several": "several of restarts, order, clock, zone, locale and charset together",
}
"""What ``kops.spark.programs.disturbed`` calls it, in words."""


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
        *_of_disturbed(doubts.of_order, here, ran),
        _of_own_processors(doubts.own_processors),
        *_of_refused(ran),
    ]


def _of_disturbed(of_order: Sequence[str], here: StoreCounts, ran: Sequence[Ran]) -> list[Exactness]:
    """Judge a store by what came of its tasks when they were run once more, disturbed.

    :param of_order: what leaves the order open
    """
    orders, thrown = ran[0].orders, next((each.thrown for each in ran if each.thrown), None)
    lasting = [f"run once more, disturbed, it fails: {thrown}"] if thrown else []
    lasting += [f"what it keeps between records is not known: {each.not_restarted}" for each in ran if each.not_restarted][:1]
    passed = {code for each in ran for code in each.passed_depends_on}
    if count := sum(each.passed_differing for each in ran):
        lasting.append(f"{count:,} records that are passed on {_dependent(sorted(passed))}")
    examples, keys = keys_text(here.examples), f"{here.keys + here.elsewhere:,} keys"
    if here.unsure:
        lasting.append(f"{here.unsure:,} of {keys} {_dependent(here.depends_on)}, such as {examples}")
    times = [f"the timestamps of {here.unsure_times:,} of {keys} {_dependent(here.depends_on)}, such as {examples}"]
    untried = orders == 1 and bool(of_order)
    agreed = f"all keys agreed in {orders} legal orders of records, which is evidence and not proof"
    sure = not (lasting or here.unsure_times or untried)
    return [
        Exactness("C", (*lasting, *of_order)) if lasting or untried else SURE,
        Exactness("B", (*times, *of_order)) if here.unsure_times and not here.unsure else SURE,
        Exactness("A", (agreed, *of_order)) if sure and of_order else SURE,
    ]


def _dependent(codes: Sequence[str]) -> str:
    """Say on what something depends, as ``kops.spark.programs.disturbed`` found it."""
    return f"depend on {' and '.join(DEPENDS_ON.get(code, code) for code in codes)}" if codes else "differ when it is run once more"


def keys_text(keys: Sequence[bytes]) -> str:
    """Return the first of some keys, in one line."""
    shown = [as_text_or_base64(key) for key in keys[:_NAMED]]
    return ", ".join(as_line(key["data"], key["encoding"]) for key in shown)


def _of_own_processors(names: Sequence[str]) -> Exactness:
    """Name the program's own processors, of which only what they call is seen."""
    if not names:
        return SURE
    beside = "what they read from elsewhere is not known"
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
    late = "an application that was restarted just before a late one had forgotten its stream time, and has counted it"
    between = "its tasks ran in no other order, and between which records these acted is not known"
    return [
        *(
            [f"the program schedules {counted(unshown, 'punctuator')} by stream time, which its capture does not show: {between}"]
            if unshown
            else []
        ),
        *([f"the program schedules {counted(schedules, 'punctuator')} by wall-clock time, not called here"] if schedules else []),
        *([f"the library dropped {skipped:,} records, such as late ones: {late}"] if skipped and windows else []),
        *([f"records without a key go to any partition of {', '.join(any_partition)}"] if any_partition else []),
    ]

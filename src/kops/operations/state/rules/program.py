"""What is in doubt about stores that an application's own program computed: by what its capture leaves open, and what its runs showed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kops.core.findings import Finding, counted
from kops.core.streams.capture import Capture
from kops.core.streams.program import has_windows, topics_of
from kops.core.streams.program_doubts import Doubts, topics_in_any_partition
from kops.core.streams.rules import late_records
from kops.core.streams.surroundings import Difference, Surroundings, while_it_ran
from kops.core.streams.topics import CHANGELOG
from kops.core.streams.verdict import LIMITED_TO, doubt, remark
from kops.formats.base import as_text_or_base64
from kops.output.records import as_line

if TYPE_CHECKING:
    from kops.spark.programs.jobs import StoreCounts, SubtopologyRun

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
    "processors": "the number of processors",
    "several": "several of restarts, order, clock, zone, locale and charset together",
}
"""What ``kops.spark.programs.disturbed`` calls it, in words."""


@dataclass(frozen=True)
class ProgramRuns:
    """How a store was computed by its program.

    :param doubts: that its capture leaves about the store
    :param here: what was counted of it
    :param ran: the sub-topologies that fill it, its own first
    :param windows: whether records may have come too late for something
    :param anywhere: topics of which records without a key may be in any partition
    :param elsewhere: where the program had other surroundings than when it was captured
    :param dropped: how many records the library dropped in all sub-topologies, where the program had no network
    """

    doubts: Doubts
    here: StoreCounts
    ran: Sequence[SubtopologyRun]
    windows: bool = False
    anywhere: Collection[str] = ()
    elsewhere: Sequence[Finding] = ()
    dropped: int = 0

    @classmethod
    def of(
        cls,
        capture: Capture,
        store: str,
        doubts: Doubts,
        ran: Mapping[int, SubtopologyRun],
        *,
        alone: bool,
        elsewhere: Sequence[Finding] = (),
    ) -> ProgramRuns:
        """Return those of a store.

        :param ran: by the numbers of sub-topologies
        :param alone: the program had no network
        :param elsewhere: as in :class:`ProgramRuns`
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
            elsewhere=elsewhere,
            dropped=sum(each.skipped for each in ran.values()) if alone else 0,
        )

    def findings(self) -> Iterator[Finding]:
        yield from self.doubts.findings
        yield from self.elsewhere
        yield from _seen(self)
        yield from _disturbed(self)
        if self.doubts.own_processors:
            said = "the program's own processors fill it, and what they read from elsewhere is not known"
            yield remark("own_processors", f"{said}: {', '.join(self.doubts.own_processors)}")
        yield from _refused(self.ran)
        if self.dropped:
            why = "without a network that may be since serdes could not ask a schema registry, or another call failed"
            yield doubt("no_network", f"the library dropped {self.dropped:,} records, and {why}")


def surroundings_differ(before: Iterable[Difference], then: Surroundings, ran: Iterable[SubtopologyRun]) -> list[Finding]:
    """Return where a program had other surroundings than when it was captured.

    :param before: what was known before it was started
    :param then: those of the capture
    """
    notes = [note for each in ran for note in each.surroundings]
    found = dict.fromkeys([*before, *while_it_ran(then, notes)])
    return [doubt("other_surroundings", each.text, what=each.code, name=each.name) for each in found]


def _disturbed(runs: ProgramRuns) -> Iterator[Finding]:
    """Judge a store by what came of its tasks when they were run once more, disturbed.

    Where all of the input was disturbed by another order of records, and only that made keys differ, those that agreed are in no doubt: the
    orders that were tried are as far apart as they can be. One key that differs by something else stands for others: when the application
    was restarted, which partitions shared its fields and what chance gave is not known, and what was tried is one case of very many.
    """
    of_order, here, ran = runs.doubts.of_order, runs.here, runs.ran
    orders, why = ran[0].orders, f": {'; '.join(of_order)}" if of_order else ""
    failed = [each.thrown for each in ran if each.thrown]
    yield from (doubt("disturbed_run_failed", f"run once more, disturbed, it fails: {thrown}{why}") for thrown in failed)
    for each in ran:
        if each.not_restarted:
            yield doubt("not_restarted", f"what it keeps between records is not known: {each.not_restarted}")
    if orders == 1:
        yield from (doubt("record_order", reason) for reason in of_order)
    passed = {code for each in ran for code in each.passed_depends_on}
    if count := sum(each.passed_differing for each in ran):
        yield doubt("depends_on", f"{count:,} records that are passed on {_dependent(sorted(passed))}{why}", on=sorted(passed))
    whole = all(each.disturbed >= each.records for each in ran)
    examples, keys, on = keys_text(here.examples), f"{here.keys + here.elsewhere:,} keys", list(here.depends_on)
    if here.unsure:
        said = f"{here.unsure:,} of {keys} {_dependent(on)}, such as {examples}{why}"
        limited: dict[str, Any] = {LIMITED_TO: here.unsure} if whole and on == ["order"] and not here.elsewhere else {}
        yield doubt("depends_on", said, on=on, **limited)
    elif here.unsure_times:
        said = f"the timestamps of {here.unsure_times:,} of {keys} {_dependent(on)}, such as {examples}{why}"
        yield remark("times_depend_on", said, on=on)
    elif orders > 1 and of_order and not failed:
        yield remark("record_order", f"all keys agreed in {orders} legal orders of records, though {'; '.join(of_order)}")
    if not whole:
        given, of = sum(each.disturbed for each in ran), sum(each.records for each in ran)
        tasks, some = (sum(numbers) for numbers in zip(*(each.tasks for each in ran), strict=True))
        said = f"{given:,} of {of:,} records were given to the program once more, disturbed (--disturb all: all)"
        where = f"; they are of {some:,} of its {tasks:,} tasks, and of the others no more is known" if some < tasks else ""
        yield remark("disturbed_sample", f"{said}{where}", records=given, of_records=of, tasks=some, of_tasks=tasks)


def _dependent(codes: Sequence[str]) -> str:
    """Say on what something depends, as ``kops.spark.programs.disturbed`` found it."""
    return f"depend on {' and '.join(DEPENDS_ON.get(code, code) for code in codes)}" if codes else "differ when it is run once more"


def keys_text(keys: Sequence[bytes]) -> str:
    """Return the first of some keys, in one line."""
    shown = [as_text_or_base64(key) for key in keys[:_NAMED]]
    return ", ".join(as_line(key["data"], key["encoding"]) for key in shown)


def _refused(ran: Sequence[SubtopologyRun]) -> Iterator[Finding]:
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
    if unshown:
        between = "its tasks ran in no other order, and between which records these acted is not known"
        said = f"the program schedules {counted(unshown, 'punctuator')} by stream time, which its capture does not show: {between}"
        yield doubt("punctuators", said)
    if schedules:
        yield doubt("punctuators", f"the program schedules {counted(schedules, 'punctuator')} by wall-clock time, not called here")
    if skipped and runs.windows:
        yield late_records(f"the library dropped {skipped:,} records, such as late ones")
    if any_partition:
        yield doubt("no_key", f"records without a key go to any partition of {', '.join(any_partition)}")

"""The topics behind a store as witnesses: the buffer of its ``suppress()``, and the topic that the application writes its table to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kops.core.findings import Finding
from kops.core.records.models import timestamp_text
from kops.core.statefile import StateFile
from kops.core.streams.verdict import doubt
from kops.operations.engine.spark import Engine
from kops.operations.state.compute import UNKNOWN, ComputedStore, changelog_range
from kops.operations.state.rules.windows import expires
from kops.operations.state.rules.witnesses import OutputWitness, Witnesses
from kops.operations.state.stored_keys import abbreviated, formats_of, shown, stored_key_text
from kops.output.records import as_line

_NAMED = 3


def unbuffered_windows(engine: Engine, state_file: StateFile, found: ComputedStore, witnesses: Witnesses) -> Iterator[Finding]:
    """Judge a store by whether the buffer of ``suppress()`` behind it holds all windows that are open, unless it lost its log.

    The buffer reflects the offsets that are committed now: it shows nothing where the changelog does not (``Witnesses.partitions``).
    """
    from kops.spark.driver.failures import explained
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.stores.buffered import unbuffered

    facts, window = found.facts, found.facts.store.window
    if window is None or window.buffer is None or not witnesses.partitions:
        return
    if facts.held or all(bound.empty for bound in facts.buffer_bounds.values()):
        return
    ranges = {number: (bound.log_start_offset, bound.log_end_offset) for number, bound in facts.buffer_bounds.items()}
    read = TopicRange(window.buffer, ranges, read_committed=state_file.exactly_once)
    changelog = changelog_range(state_file, facts)
    engine.services.progress.step(f"comparing {facts.store.name} with {window.buffer}")
    with explained(f"compare {facts.store.name} with {window.buffer}"), engine.reading(read, changelog):
        lost = unbuffered(engine.kafka(), found.stage, changelog, read, window, limit=_NAMED)
    if lost is None or not lost.missing:
        return
    first = [stored_key_text(engine, facts.store, key) for key in lost.first]
    more = f"; and {lost.missing - len(first):,} more" if lost.missing > len(first) else ""
    which = (
        f"{lost.missing:,} of {lost.open:,} open windows are not in {window.buffer}, the buffer of suppress() ({'; '.join(first)}{more})"
    )
    said = f"{which}: the result of each is only sent if a record of it follows"
    yield doubt("lost_buffer", said, subject=window.buffer, keys=first)


def with_output(
    engine: Engine, state_file: StateFile, found: ComputedStore, witnesses: Witnesses, *, stands_for_lost: bool
) -> tuple[Witnesses, list[Finding]]:
    """Return the witnesses with the output topic, if surviving keys leave something to show, and what it contradicts.

    The topic reflects the offsets that are committed now: if a changelog shows nothing because it reflects other offsets
    (``Witnesses.partitions`` is empty), neither does the topic.

    :param stands_for_lost: it may be the only witness of a key: something shows in which partition of the changelog each key belongs, which
        an output topic does not, and nothing is in doubt that happened to the application after it wrote the topic
    """
    from kops.spark.driver.failures import explained
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.staging.outputs import EXTRA, LOST, OTHER, SAME, contradicting, judged_keys, verdicts

    facts, output = found.facts, found.facts.store.output
    if output is None or not witnesses.partitions or facts.held or (witnesses.show_all and not found.differing):
        return witnesses, []
    ranges = {number: (bound.log_start_offset, bound.log_end_offset) for number, bound in facts.output_bounds.items()}
    read = TopicRange(output, ranges, read_committed=state_file.exactly_once)
    changelog = changelog_range(state_file, facts)
    engine.services.progress.step(f"comparing {facts.store.name} with {output}")
    with explained(f"compare {facts.store.name} with {output}"), engine.reading(read, changelog):
        keys = judged_keys(engine.kafka(), found.stage, changelog, read)
        counts = verdicts(keys)
        totals = {name: sum(each.get(name, 0) for each in counts.values()) for name in (SAME, LOST, OTHER, EXTRA)}
        rows = contradicting(keys, _NAMED) if totals[OTHER] or totals[EXTRA] else []
    stands_for_lost = stands_for_lost and not totals[OTHER] and not totals[EXTRA]
    lost = {
        number: shown
        for number, each in counts.items()
        if stands_for_lost
        and number is not None
        and number != UNKNOWN
        and not (number in witnesses.partitions and witnesses.partitions[number].is_contradicted)
        and _may_show(found, number, each.get(LOST, 0) + each.get(SAME, 0))
        and (shown := _shown(each, witnesses, number))
    }
    seen = OutputWitness(output, equal=totals[SAME] + totals[LOST], differing=totals[OTHER], extra=totals[EXTRA], lost=lost)
    return replace(witnesses, output=seen), seen.contradictions([_in_words(engine, found, row) for row in rows])


def _shown(verdicts: Mapping[str, int], witnesses: Witnesses, number: int) -> int:
    """Return how many keys of a partition an output topic shows that the changelog does not, such as those that it lost."""
    from kops.spark.staging.outputs import LOST, SAME

    here = witnesses.partitions.get(number)
    if here is None or number in witnesses.damaged or not set(verdicts) - {SAME, LOST}:
        return verdicts.get(SAME, 0) + verdicts.get(LOST, 0) - (here.surviving - here.differing if here else 0)
    return verdicts.get(LOST, 0)


def _may_show(found: ComputedStore, number: int, keys: int) -> bool:
    """Whether an output topic can show a partition of the changelog, given how many keys of it are as computed.

    A log that had fewer records than keys never held them: the application was reset after it had written them. (A log without any
    offset is new: nothing ran since.) And what has expired from a log an application that was restarted since does not hold.
    """
    facts = found.facts
    bound = facts.changelog_bounds.get(number)
    if bound is None or bound.log_end_offset == 0:
        return True
    return bound.log_end_offset >= keys and not (bound.log_start_offset > 0 and expires(facts.store, facts.settings))


def _in_words(engine: Engine, found: ComputedStore, row: Any) -> str:
    keys, values = formats_of(engine, found.facts.store)
    sides = (("computed", row.value, row.timestamp), ("written", row.written_value, row.written_timestamp))
    descriptions = [
        f"{side} nothing" if value is None else f"{side} {abbreviated(shown(values, value))} at {timestamp_text(time)}"
        for side, value, time in sides
    ]
    return f"{as_line(shown(keys, row.key))}: {', '.join(descriptions)}"

"""The output topic that a state file names for a store, as evidence: the newest record of each key beside what was computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kops.core.records.models import timestamp_text
from kops.core.statefile import StateFile
from kops.operations.engine.spark import Engine
from kops.operations.records.formats import format_for
from kops.operations.state.compute import Computed, changelog_range
from kops.operations.state.evidence_written import Written
from kops.operations.state.exactness import worst
from kops.operations.state.stored_keys import shown
from kops.output.records import as_line

_NAMED = 3
_LONGEST = 60
"""Characters of a value that a sentence shows."""


def with_output(engine: Engine, state_file: StateFile, found: Computed, *, places_known: bool) -> Computed:
    """Return a store judged by its output topic, where its surviving keys leave something to prove.

    The topic reflects the offsets that are committed now: a changelog that does not testify because it reflects others
    (``Proof.partitions`` is empty) makes it no evidence either.

    :param places_known: something shows in which partition of the changelog each key belongs, which an output topic does not
    """
    from kops.spark.driver.failures import explained
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.staging.outputs import EXTRA, OTHER, SAME, contradicting, judged_keys, verdicts

    facts, proof = found.facts, found.proof
    output = facts.store.output
    if output is None or proof is None or not proof.partitions or facts.held or (proof.suffices and not found.differing):
        return found
    ranges = {number: (bound.log_start_offset, bound.log_end_offset) for number, bound in facts.output_bounds.items()}
    read = TopicRange(output, ranges, read_committed=state_file.exactly_once)
    changelog = changelog_range(state_file, facts)
    engine.services.progress.step(f"comparing {facts.store.name} with {output}")
    with explained(f"compare {facts.store.name} with {output}"), engine.reading(read, changelog):
        keys = judged_keys(engine.kafka(), found.stage, changelog, read)
        counts = verdicts(keys)
        totals = {name: sum(each.get(name, 0) for each in counts.values()) for name in (SAME, OTHER, EXTRA)}
        rows = contradicting(keys, _NAMED) if totals[OTHER] or totals[EXTRA] else []
    whole = frozenset(number for number, each in counts.items() if number is not None and number >= 0 and set(each) == {SAME})
    written = Written(
        output,
        equal=totals[SAME],
        differing=totals[OTHER],
        extra=totals[EXTRA],
        partitions=frozenset(number for number in whole if places_known and _may_show(found, number, counts[number][SAME])),
    )
    first = [_in_words(engine, found, row) for row in rows]
    return replace(found, proof=replace(proof, output=written), exactness=worst([found.exactness, written.judge(first)]))


def _may_show(found: Computed, number: int, keys: int) -> bool:
    """Tell whether an output topic can prove a partition of the changelog, of which it has every key as computed.

    A log that had fewer records than keys never held them: the application was reset after it had written them. (A log without any
    offset is new: nothing ran since.)
    """
    facts = found.facts
    end = facts.changelog_bounds[number].log_end_offset if number in facts.changelog_bounds else 0
    return end == 0 or end >= keys


def _in_words(engine: Engine, found: Computed, row: Any) -> str:
    store = found.facts.store
    keys, values = (format_for(engine.services, form.name) for form in (store.key_form, store.aggregate.form))
    sides: Mapping[str, tuple[bytes | None, int | None]] = {
        "computed": (row.value, row.timestamp),
        "written": (row.written_value, row.written_timestamp),
    }
    descriptions = [
        f"{side} {str(as_line(shown(values, bytes(value))))[:_LONGEST]} at {timestamp_text(time)}"
        if value is not None
        else f"{side} nothing"
        for side, (value, time) in sides.items()
    ]
    return f"{as_line(shown(keys, bytes(row.key)))}: {', '.join(descriptions)}"

"""What the evidence shows about computed stores: surviving keys of changelogs, commits, logs of the input, and the output topic.

An output topic that a state file names is evidence too: the newest record of each key is compared with what was computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kops.core.errors import Refused
from kops.core.models import TopicPartition
from kops.core.records.models import timestamp_text
from kops.core.statefile import StateFile
from kops.core.statefile.models import PROGRAM
from kops.operations.engine.spark import Engine
from kops.operations.services import Services
from kops.operations.state.compute import DIFFERENT, EQUAL, UNKNOWN, ComputedStore, changelog_range, unrestorable_text
from kops.operations.state.evidence import IF_RIGHT, OutputEvidence, Proof, partitions_text, with_survivors
from kops.operations.state.evidence_commits import Commits
from kops.operations.state.evidence_doubts import doubts, is_late, of_expiry
from kops.operations.state.evidence_input import doubts_of_aborts, doubts_of_times, placing_of, with_input
from kops.operations.state.evidence_journal import OwnHistory
from kops.operations.state.evidence_proven import PastDifference, contradiction, remember, remember_difference, remembered
from kops.operations.state.exactness import Exactness, worst
from kops.operations.state.input_offsets import InputOffsets
from kops.operations.state.stored_keys import differing_keys, formats_of, in_short, shown, stored_key_text
from kops.output.records import as_line

_SHOWN = 5
_NAMED = 3


def judged_by_evidence(
    engine: Engine, state_file: StateFile, found: ComputedStore, past: OwnHistory, *, commits: Commits, cut: InputOffsets
) -> ComputedStore:
    """Return a store judged by its input and by the surviving keys of its changelog, with its last proof."""
    found = with_input(engine, found, cut)
    if found.proof is None:
        return found
    store = found.facts.store
    proof = found.proof.without_own(past.written.get(store.changelog, {}))
    proven = remembered(engine.services, state_file, store)
    of_input = [
        *doubts_of_times(engine, state_file, found, cut, past.made),
        *doubts_of_aborts(engine, state_file, found, cut),
    ]
    of_commits = commits.judge(store.name, proof, proven, of_input)
    unsettled = doubts(store, found.counts.noted, proof)
    contradicted = _contradicted(engine.services, state_file, found, proof)
    rows = differing_keys(engine, store, found.stage, _SHOWN, without=proof.damaged) if proof.differing else []
    judged = replace(
        found,
        proof=proof,
        exactness=worst([with_survivors(found.exactness, proof, rows), *of_commits, *unsettled, _expired(found), *_of_past(contradicted)]),
        proven=proven,
        contradicted=contradicted,
    )
    judged = _with_buffer(engine, state_file, judged)
    placing = placing_of(engine.services, state_file, judged)
    placed = replace(judged, exactness=worst([judged.exactness, placing.exactness]))
    return with_output(engine, state_file, placed, places_known=placing.is_shown)


def _contradicted(services: Services, state_file: StateFile, found: ComputedStore, proof: Proof) -> PastDifference | None:
    """Return an earlier contradiction of the state file, unless the keys prove it now, or were in partitions that are declared damaged."""
    past = contradiction(services, state_file, found.facts.store)
    return None if past is None or proof.of_keys.suffices or set(proof.damaged).issuperset(past.partitions) else past


def _of_past(contradicted: PastDifference | None) -> list[Exactness]:
    return [] if contradicted is None else [Exactness("C", (f"`kops state verify` {contradicted.text}, with this same file",))]


def _expired(found: ComputedStore) -> Exactness:
    facts = found.facts
    missing = {number: actions.get("added", 0) for number, actions in found.actions.items()}
    return of_expiry(
        facts.store, facts.settings, {number: bound.log_start_offset for number, bound in facts.changelog_bounds.items()}, missing
    )


def refuse_unwritable(found: ComputedStore, *, replacing: bool) -> None:
    """Refuse to append to a changelog that cannot be restored whatever is appended, and to remove windows that only lateness explains.

    :param replacing: the changelog is recreated, without what it holds
    :raises Refused: with what to do instead
    """
    store = found.facts.store
    if found.counts.unrestorable and not replacing:
        raise Refused(
            f"store {store.name}: {unrestorable_text(found)}, whatever is appended", hint="--write replace recreates it without them"
        )
    if found.proof is None or not found.proof.differing or not is_late(store, found.counts.noted):
        return
    damaged = found.proof.damaged
    removed = sum(actions.get("removed", 0) for number, actions in found.actions.items() if number not in damaged)
    if removed:
        raise Refused(
            f"store {store.name}: {removed:,} windows of its changelog were not computed, and records came late: an application that was"
            " restarted has counted them, so they would be removed wrongly",
            hint=f"where these windows are damage, say so: --damaged {store.name} or --damaged {store.name}:PARTITION,...",
            store=store.name,
        )


def refuse_unplaced(found: ComputedStore) -> None:
    """Refuse to write keys whose partition is unknown.

    :raises Refused: when a partitioner of the application's own chose it, and the changelog has forgotten it
    """
    unplaced = sum(found.actions.get(UNKNOWN, {}).values())
    if unplaced:
        raise Refused(
            f"store {found.facts.store.name}: the partition of {unplaced:,} keys is not known: the application chose it"
            f" (partitioner: custom), and {found.facts.store.changelog} no longer shows it",
            hint="a snapshot from before has them (`kops state restore`); otherwise let the application reprocess its input",
            store=found.facts.store.name,
        )


def remember_proofs(
    services: Services,
    state_file: StateFile,
    computed: Sequence[ComputedStore],
    offsets: Mapping[TopicPartition, int],
    *,
    at: str,
    stands_still: bool,
) -> tuple[list[ComputedStore], list[str]]:
    """Remember which stores a comparison has proven, and in which surviving keys contradict the state file.

    :param at: when what they were compared with was taken, ISO-8601 UTC; empty: now
    :param stands_still: whether a difference is one: the application does not run meanwhile
    :return: the stores with their newest proof, and why a proof could not be kept, if so
    """
    proven, problems = [], []
    for found in computed:
        proof = found.proof
        if proof is not None and proof.contradicted and found.status == DIFFERENT and stands_still:
            try:
                compared = proof.surviving + proof.missing
                remember_difference(services, state_file, found.facts.store, proof.contradicted, compared, at=at)
            except OSError as error:
                problems.append(
                    f"that {found.facts.store.name} was different cannot be kept in {services.directories.state}: {error.strerror}"
                )
        if found.status != EQUAL or found.proof is None or found.grade not in ("A", "B") or not found.proof.of_keys.suffices:
            proven.append(found)
            continue
        newest = found.proven
        try:
            newest = remember(services, state_file, found.facts.store, found.proof.equal, offsets, at=at)
        except OSError as error:
            problems.append(f"that {found.facts.store.name} was proven cannot be kept in {services.directories.state}: {error.strerror}")
        proven.append(replace(found, proven=newest))
    return proven, problems


def question_of(computed: Sequence[ComputedStore]) -> str:
    """Return what the operator has to agree to before stores without evidence are written; empty when there is none."""
    names = [_unproven(found) for found in computed if found.must_write and found.grade.endswith(IF_RIGHT)]
    if not names:
        return ""
    of_program = computed[0].facts.store.aggregate.kind == PROGRAM
    what = "the captured program wrote them" if of_program else "the state file is"
    return f"Nothing proves the keys of {', '.join(names)}: they are right only if {what}, and if no other tool has moved the application."


def _unproven(found: ComputedStore) -> str:
    """Return the name of a store, with the partitions without evidence if others are proven."""
    proof, name = found.proof, found.facts.store.name
    partitions = [number for number in proof.unproven if number >= 0] if proof and proof.proves_file else []
    return f"{name} in {partitions_text(partitions)}" if partitions else name


def _with_buffer(engine: Engine, state_file: StateFile, found: ComputedStore) -> ComputedStore:
    """Return a store judged by whether the buffer of ``suppress()`` behind it holds all windows that are open, unless it lost its log.

    The buffer reflects the offsets that are committed now: it shows nothing where the changelog does not (``Proof.partitions``).
    """
    from kops.spark.driver.failures import explained
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.stores.buffered import unbuffered

    facts, window = found.facts, found.facts.store.window
    if window is None or window.buffer is None or found.proof is None or not found.proof.partitions:
        return found
    if facts.held or all(bound.empty for bound in facts.buffer_bounds.values()):
        return found
    ranges = {number: (bound.log_start_offset, bound.log_end_offset) for number, bound in facts.buffer_bounds.items()}
    read = TopicRange(window.buffer, ranges, read_committed=state_file.exactly_once)
    changelog = changelog_range(state_file, facts)
    engine.services.progress.step(f"comparing {facts.store.name} with {window.buffer}")
    with explained(f"compare {facts.store.name} with {window.buffer}"), engine.reading(read, changelog):
        lost = unbuffered(engine.kafka(), found.stage, changelog, read, window, limit=_NAMED)
    if lost is None or not lost.missing:
        return found
    first = "; ".join(stored_key_text(engine, facts.store, key) for key in lost.first)
    more = f"; and {lost.missing - len(lost.first):,} more" if lost.missing > len(lost.first) else ""
    which = f"{lost.missing:,} of {lost.open:,} open windows are not in {window.buffer}, the buffer of suppress() ({first}{more})"
    why = f"{which}: the result of each is only sent if a record of it follows"
    return replace(found, exactness=worst([found.exactness, Exactness("D", (why,), hides=True)]))


def with_output(engine: Engine, state_file: StateFile, found: ComputedStore, *, places_known: bool) -> ComputedStore:
    """Return a store judged by its output topic, if its surviving keys leave something to prove.

    The topic reflects the offsets that are committed now: if a changelog is not evidence because it reflects other offsets
    (``Proof.partitions`` is empty), the topic is not evidence either.

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
    written = OutputEvidence(
        output,
        equal=totals[SAME],
        differing=totals[OTHER],
        extra=totals[EXTRA],
        partitions=frozenset(number for number in whole if places_known and _may_show(found, number, counts[number][SAME])),
    )
    first = [_in_words(engine, found, row) for row in rows]
    return replace(found, proof=replace(proof, output=written), exactness=worst([found.exactness, written.judge(first)]))


def _may_show(found: ComputedStore, number: int, keys: int) -> bool:
    """Whether an output topic can prove a partition of the changelog, given that every key of it is as computed.

    A log that had fewer records than keys never held them: the application was reset after it had written them. (A log without any
    offset is new: nothing ran since.)
    """
    facts = found.facts
    end = facts.changelog_bounds[number].log_end_offset if number in facts.changelog_bounds else 0
    return end == 0 or end >= keys


def _in_words(engine: Engine, found: ComputedStore, row: Any) -> str:
    keys, values = formats_of(engine, found.facts.store)
    sides = (("computed", row.value, row.timestamp), ("written", row.written_value, row.written_timestamp))
    descriptions = [
        f"{side} nothing" if value is None else f"{side} {in_short(shown(values, value))} at {timestamp_text(time)}"
        for side, value, time in sides
    ]
    return f"{as_line(shown(keys, row.key))}: {', '.join(descriptions)}"

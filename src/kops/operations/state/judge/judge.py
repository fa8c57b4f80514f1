"""The one judgement of a computed store, over all that reading and computing have collected: its rules, in one list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kops.core.errors import ExitCode, Refused
from kops.core.findings import Finding
from kops.core.models import TopicPartition
from kops.core.statefile import StateFile
from kops.core.streams.verdict import ALL_KEYS, KEYS_ANYWHERE, KEYS_THERE, PROVEN, Verdict, counted, doubt, is_open
from kops.operations.engine.spark import Engine
from kops.operations.services import Services
from kops.operations.state.compute import UNKNOWN, ComputedStore, unrestorable_text
from kops.operations.state.input_offsets import InputOffsets
from kops.operations.state.judge import input as logs
from kops.operations.state.judge.commits import Commits
from kops.operations.state.judge.journal import OwnHistory
from kops.operations.state.judge.notices import notices
from kops.operations.state.judge.output import unbuffered_windows, with_output
from kops.operations.state.judge.places import misplaced
from kops.operations.state.rules import windows
from kops.operations.state.rules.past import PastDifference, PastProof, contradiction, remember, remember_difference, remembered
from kops.operations.state.rules.witnesses import Witnesses
from kops.operations.state.stored_keys import differing_keys

_SHOWN = 5


@dataclass(frozen=True)
class Situation:
    """All that is known of a computed store.

    :param found: with the witnesses among its keys, but those that kops wrote, and with what is remembered of it
    """

    engine: Engine
    state_file: StateFile
    found: ComputedStore
    past: OwnHistory
    commits: Commits
    cut: InputOffsets

    @property
    def witnesses(self) -> Witnesses | None:
        return self.found.witnesses


Rule = Callable[[Situation], Iterable[Finding]]


def _judge_emptied(at: Situation) -> Iterator[Finding]:
    found = at.found
    if at.witnesses is not None:
        yield from windows.emptied(found.facts.store, [number for number in found.facts.emptied if not found.actions.get(number)])


def _judge_written_again(at: Situation) -> Iterator[Finding]:
    if at.witnesses is not None:
        yield from windows.other_keys(at.found.facts.store)
        if not at.witnesses.show_code:
            yield from windows.rewritten_code(at.found.facts.store)


def _judge_history(at: Situation) -> Iterator[Finding]:
    if at.witnesses is not None:
        yield from at.commits.findings.get(at.found.facts.store.name, ())
        yield from logs.partition_times(at.engine, at.state_file, at.found, at.cut, at.past.made)
        yield from logs.aborted_transactions(at.engine, at.state_file, at.found, at.cut)


COMPUTATION: tuple[Rule, ...] = (
    lambda at: at.found.facts.findings,
    lambda at: at.found.run.findings(),
    _judge_emptied,
    lambda at: logs.gaps(at.engine, at.found, at.cut),
    _judge_written_again,
    _judge_history,
)
"""What may make the computation wrong."""


def _judge_places(at: Situation) -> Iterable[Finding]:
    return misplaced(at.engine.session, at.found.facts, at.found.stage, at.found.actions, at.found.facts.damaged)


def _judge_survivors(at: Situation) -> Iterable[Finding]:
    found, witnesses = at.found, at.witnesses
    if witnesses is None:
        return ()
    rows = differing_keys(at.engine, found.facts.store, found.stage, _SHOWN, without=witnesses.damaged) if witnesses.differing else []
    return witnesses.contradictions(rows)


def _judge_expired_keys(at: Situation) -> Iterable[Finding]:
    facts = at.found.facts
    if at.witnesses is None:
        return ()
    missing = {number: actions.get("added", 0) for number, actions in at.found.actions.items()}
    begins = {number: bound.log_start_offset for number, bound in facts.changelog_bounds.items()}
    return windows.expiry(facts.store, facts.settings, begins, missing)


def _judge_past(at: Situation) -> Iterator[Finding]:
    if at.found.contradicted is not None:
        yield doubt("differed_before", f"`kops state verify` {at.found.contradicted.text}, with this same file")


def _judge_buffer(at: Situation) -> Iterable[Finding]:
    return () if at.witnesses is None else unbuffered_windows(at.engine, at.state_file, at.found, at.witnesses)


WITNESSES: tuple[Rule, ...] = (_judge_survivors, _judge_places, _judge_expired_keys, _judge_past, _judge_buffer)
"""What the changelog and the topics behind it contradict."""


def judge(
    engine: Engine, state_file: StateFile, found: ComputedStore, past: OwnHistory, *, commits: Commits, cut: InputOffsets
) -> ComputedStore:
    """Return a computed store with its verdict."""
    store, witnesses = found.facts.store, found.witnesses
    if witnesses is not None:
        witnesses = witnesses.without_own(past.written.get(store.changelog, {}))
        proven, contradicted = remembered(engine.services, state_file, store), _contradicted(engine.services, state_file, found, witnesses)
        found = replace(found, witnesses=witnesses, proven=proven, contradicted=contradicted)
    at = Situation(engine, state_file, found, past, commits, cut)
    findings = [finding for rule in COMPUTATION for finding in rule(at) if not is_settled(finding, witnesses, found.proven)]
    contradictions = [finding for rule in WITNESSES for finding in rule(at)]
    if witnesses is not None:
        placing = logs.placing_of(engine.services, state_file, found)
        contradictions += placing.findings
        stands_for_lost = placing.is_shown and not _speaks_against_output(findings, contradictions)
        witnesses, differing = with_output(engine, state_file, found, witnesses, stands_for_lost=stands_for_lost)
        contradictions += differing
    verdict = _verdict(found, findings, contradictions, witnesses)
    verdict = replace(verdict, findings=(*verdict.findings, *notices(replace(found, witnesses=witnesses), verdict)))
    if verdict.doubtful and found.differing:
        first = differing_keys(engine, store, found.stage, _SHOWN, missing=True)
        verdict = replace(verdict, keys=tuple(first))
    return replace(found, witnesses=witnesses, verdict=verdict)


def _speaks_against_output(findings: Iterable[Finding], contradictions: Iterable[Finding]) -> bool:
    """Whether a store may no longer hold what it last wrote to its output topic."""
    of_past = [finding for finding in findings if finding.settled_by in (KEYS_THERE, ALL_KEYS)]
    return is_open(of_past) or is_open(finding for finding in contradictions if not finding.subject)


def is_settled(finding: Finding, witnesses: Witnesses | None, proven: PastProof | None) -> bool:
    """Whether the keys of the changelog, as they are now or as they were proven after it, show that a finding made no difference."""
    when = finding.facts.get("time")
    if not finding.settled_by or witnesses is None:
        return False
    if proven is not None and when and proven.at > when:
        return True
    if finding.settled_by == KEYS_ANYWHERE:
        return witnesses.show_code
    return witnesses.show_history if finding.settled_by == KEYS_THERE else witnesses.show_all


def _verdict(found: ComputedStore, findings: Sequence[Finding], contradictions: Sequence[Finding], witnesses: Witnesses | None) -> Verdict:
    """Count the keys. A store whose topic is its changelog holds what that has."""
    keys = found.counts.keys
    if witnesses is None:
        return counted(findings, contradictions, keys=keys, proven=keys, contradicted=0, unexpected=0)
    differing = witnesses.differing - witnesses.unexpected
    return counted(
        findings,
        contradictions,
        keys=keys,
        proven=0 if _repeats_the_past(findings) and not witnesses.show_all else witnesses.proven,
        contradicted=differing + witnesses.missing,
        unexpected=witnesses.unexpected,
    )


def _repeats_the_past(findings: Iterable[Finding]) -> bool:
    """Whether what is computed may be what a changelog held before, and its newest records no longer say.

    What a program keeps is lost when the application restarts. Without the restart it computes the value from before, and so does a witness
    of which the newest records are gone. Only where all keys are there, and equal, none of them is.
    """
    return any(finding.check == "depends_on" and finding.facts["on"] != ["order"] for finding in findings)


def _contradicted(services: Services, state_file: StateFile, found: ComputedStore, witnesses: Witnesses) -> PastDifference | None:
    """Return an earlier contradiction of the state file, unless the keys settle it now, or were in partitions that are declared damaged."""
    past = contradiction(services, state_file, found.facts.store)
    return None if past is None or witnesses.show_history or set(witnesses.damaged).issuperset(past.partitions) else past


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
    if found.witnesses is None or not found.witnesses.differing or not windows.is_late(store, found.counts.noted):
        return
    damaged = found.witnesses.damaged
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
        witnesses = found.witnesses
        if witnesses is not None and witnesses.contradicted and found.outcome is not ExitCode.DONE and stands_still:
            try:
                compared = witnesses.surviving + witnesses.missing
                remember_difference(services, state_file, found.facts.store, witnesses.contradicted, compared, at=at)
            except OSError as error:
                problems.append(
                    f"that {found.facts.store.name} was different cannot be kept in {services.directories.state}: {error.strerror}"
                )
        if found.outcome is not ExitCode.DONE or witnesses is None or found.word != PROVEN or not witnesses.show_all:
            proven.append(found)
            continue
        newest = found.proven
        try:
            newest = remember(services, state_file, found.facts.store, witnesses.equal, offsets, at=at)
        except OSError as error:
            problems.append(f"that {found.facts.store.name} was proven cannot be kept in {services.directories.state}: {error.strerror}")
        proven.append(replace(found, proven=newest))
    return proven, problems

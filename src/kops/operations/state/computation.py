"""Computes all stores of a state file: reads the facts, judges how exact the result can be, stages what the changelogs lack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kops.core.errors import Refused
from kops.core.statefile import StateFile
from kops.core.streams.capture import Capture
from kops.core.times import Position
from kops.operations.engine.spark import Engine, drop_stage, dropped_on_failure
from kops.operations.services import Services
from kops.operations.state.archived_input import open_archives
from kops.operations.state.compute import ComputedStore, compute_stores
from kops.operations.state.evidence import Proof
from kops.operations.state.evidence_commits import Commits, read_commits
from kops.operations.state.evidence_journal import OwnHistory, read_past
from kops.operations.state.evidence_layout import doubts_of_layout
from kops.operations.state.exactness import MEANINGS, SURE, Exactness, worst
from kops.operations.state.facts import StoreFacts, read_facts
from kops.operations.state.from_archive import with_shares
from kops.operations.state.from_snapshot import BaseSnapshot, check_base, open_base, refuse_older
from kops.operations.state.input_offsets import (
    COMMITTED,
    InputOffsets,
    application_group,
    begins,
    cut_at_committed,
    find_cut,
    first_offsets,
    refuse_alive,
)
from kops.operations.state.judgement import judged_by_evidence, refuse_unplaced, refuse_unwritable
from kops.operations.state.own_code.computed import compute_by_program
from kops.operations.state.own_code.memory import estimate, memory_for
from kops.operations.state.own_code.registries import direct_registries
from kops.operations.state.own_code.snapshot import check_start, refuse_start
from kops.operations.state.own_code.start import ProgramRun, started_ahead
from kops.operations.state.own_code.tasks import refuse_lost_repartitions
from kops.operations.state.waiting_records import answers_waiting, without_waiting


@dataclass(frozen=True)
class ComputeOptions:
    """How stores are computed.

    :param at: up to where the input counts: ``COMMITTED``, the end, or a time
    :param skip_undecodable: skip records that are not in the declared formats
    :param accept_inexact: compute even what cannot be exact (classes C and D)
    :param archives: paths of archives of input topics, which are read before the topics
    :param damaged: store -> partitions of its changelog whose keys are not evidence; None: all of them
    :param program: computes the stores; None: what the state file says does
    :param has_witnesses: the changelogs as they are show whether what was computed is right
    :param snapshot: path of a snapshot to start from, so that only what was read since is computed
    :param compared: path of a snapshot that is compared instead of the changelogs; stores are computed up to its offsets
    :param master: where Spark runs: a master, or ``sc://HOST:PORT``; None: as the context says, or on this machine
    """

    at: Position = COMMITTED
    skip_undecodable: bool = False
    accept_inexact: bool = False
    archives: tuple[str, ...] = ()
    snapshot: str | None = None
    compared: str | None = None
    master: str | None = None
    damaged: Mapping[str, frozenset[int] | None] = field(default_factory=dict)
    has_witnesses: bool = True
    program: ProgramRun | None = None


@dataclass(frozen=True)
class Computation:
    """All stores of a state file, computed.

    :param cut: up to where the input counted
    :param memory: that an application's own program took, in words; empty: none ran
    """

    facts: list[StoreFacts]
    cut: InputOffsets
    computed: list[ComputedStore]
    memory: str = ""

    @property
    def origins(self) -> tuple[str, ...]:
        """Where it comes from, if not from Kafka alone, and what it took."""
        return (*self.cut.origins, *([self.memory] if self.memory else []))


def compute_all(
    services: Services,
    state_file: StateFile,
    engine: Engine,
    options: ComputeOptions,
    *,
    must_be_empty: bool,
    replacing: bool = False,
) -> Computation:
    """Read the facts, refuse what cannot be computed, and compute all stores into stages.

    :param must_be_empty: refuse while the application has members
    :param replacing: changelogs may be recreated
    """
    group = application_group(services, state_file, options.at)
    if must_be_empty:
        refuse_alive(group)
    archived = open_archives(engine, state_file, options.archives)
    base = _opened(services, state_file, options)
    then = open_base(services, state_file, options.compared)
    since = None if base is None else base.offsets
    if options.program is not None:
        refuse_lost_repartitions(services, options.program.capture, [store.name for store in state_file.stores])
    facts = read_facts(services, state_file, replacing=replacing or then is not None, archived=archived, since=since)
    if base is not None:
        facts = [
            replace(found, base=base.path(found.store), exactness=worst([found.exactness, base.judged(found.store)])) for found in facts
        ]
    facts, cut = _cut(services, state_file, facts, options, then)
    if base is not None:
        refuse_older(base, facts, cut)
    since_then, capture = "" if base is None else base.manifest.taken, None if options.program is None else options.program.capture
    past, commits, facts = with_history(services, state_file, facts, cut, capture=capture, since=since_then)
    if not options.accept_inexact:
        for found in facts:
            _refuse_inexact(found.store.name, found.exactness)
    memory = memory_for(engine, facts) if options.program is not None else None
    with started_ahead(engine, None if options.program is None else replace(options.program, memory=memory)) as program:
        cut = with_shares(engine, archived, cut, options.at, first_offsets(facts))
        cut = replace(cut, base="" if base is None else base.origin)
        notes = (*((commits.gap,) if commits.gap else ()), *_of_program(options), *answers_waiting(services, state_file, cut))
        cut = replace(cut, notes=(*cut.notes, *notes))
        facts = [without_waiting(services, engine, state_file, found, cut, skip_undecodable=options.skip_undecodable) for found in facts]
        _check(engine, state_file, options, base, then)
        facts = [replace(found, damaged=_damaged(found, options)) for found in facts]
        size = None if memory is None else estimate(engine, state_file, facts, cut, memory)
        if size is not None:
            services.progress.step(size.text())
        if program is None:
            computed = compute_stores(engine, state_file, facts, cut, skip_undecodable=options.skip_undecodable)
        else:
            computed = compute_by_program(
                engine, state_file, replace(program, base=base), facts, cut, services=services, replacing=replacing
            )
    witnesses = options.has_witnesses and not cut.moves
    computed = [found if witnesses and found.facts.store.name not in past.apart | commits.apart else _unproven(found) for found in computed]
    computed = [judged_by_evidence(engine, state_file, found, past, commits=commits, cut=cut) for found in computed]
    if must_be_empty:
        _refuse_all(computed, lambda done: refuse_unwritable(done, replacing=replacing))
    if not options.accept_inexact:
        _refuse_all(computed, lambda done: _refuse_inexact(done.facts.store.name, done.exactness, done))
    if must_be_empty:
        _refuse_all(computed, refuse_unplaced)
    heap = max((found.heap for found in computed), default=0)
    return Computation(facts, cut, computed, "" if size is None else size.text(heap))


def _damaged(facts: StoreFacts, options: ComputeOptions) -> frozenset[int]:
    chosen = options.damaged.get(facts.store.name, frozenset())
    return frozenset(facts.changelog_bounds) if chosen is None else chosen


def _unproven(found: ComputedStore) -> ComputedStore:
    """Return a store without the evidence of its changelog, which reflects other offsets, or another state, than what was computed."""
    return replace(found, proof=found.proof and Proof(found.counts.keys))


def _of_program(options: ComputeOptions) -> tuple[str, ...]:
    program = options.program
    if program is None:
        return ()
    direct = [
        f"the program asks the schema registry {url} itself: kops does not see whether it registers schemas there"
        for url in direct_registries(program)
    ]
    if not program.alone:
        return tuple(direct)
    named = " and ".join(each.origin.url for each in program.registries.upstreams)
    registry = f"but for reading the schema registry {named} through kops" if named else "and no schema registry"
    reached = f"it could reach files and sockets of this machine, but no other machine, {registry}"
    return (f"the program was run without a network: {reached}",)


def _opened(services: Services, state_file: StateFile, options: ComputeOptions) -> BaseSnapshot | None:
    """Return the snapshot that the computation starts from, which has all that is needed for it."""
    base = open_base(services, state_file, options.snapshot, restores=options.program is not None)
    if options.program is not None and base is not None:
        refuse_start(options.program.capture, state_file, base)
    return base


def _check(engine: Engine, state_file: StateFile, options: ComputeOptions, base: BaseSnapshot | None, then: BaseSnapshot | None) -> None:
    for used in filter(None, (base, then)):
        check_base(engine, state_file, used)
    if options.program is not None and base is not None:
        check_start(engine, options.program.capture, state_file, base)


def compute_whole(
    engine: Engine,
    state_file: StateFile,
    facts: Sequence[StoreFacts],
    cut: InputOffsets,
    *,
    skip_undecodable: bool = False,
    program: ProgramRun | None = None,
) -> list[ComputedStore]:
    """Compute stores as if their changelogs held nothing, so that their stages have all of their keys."""
    bare = [found.without_changelog() for found in facts]
    by_program = [found for found in bare if program is not None and not found.store.reuses_source]
    others = [found for found in bare if found not in by_program]
    skips = skip_undecodable or program is not None  # a program decides itself, and has no say in what is restored
    computed = compute_stores(engine, state_file, others, cut, skip_undecodable=skips) if others else []
    with dropped_on_failure(engine, [found.stage for found in computed]):
        if program is not None and by_program:
            computed += compute_by_program(engine, state_file, program, by_program, cut, services=engine.services, replacing=True)
    return computed


def with_history(
    services: Services,
    state_file: StateFile,
    facts: Sequence[StoreFacts],
    cut: InputOffsets,
    *,
    capture: Capture | None = None,
    since: str = "",
) -> tuple[OwnHistory, Commits, list[StoreFacts]]:
    """Return what kops and others did to an application, and the facts judged by the former.

    :param capture: of the program that computes the stores; None: what the state file says does
    :param since: when the snapshot that the stores start from was taken, ISO-8601 UTC
    """
    starts, until = begins(facts), cut.taken
    past = read_past(services, state_file.application, state_file.stores, cut.committed, starts, since=since, until=until)
    commits = Commits()
    if not cut.is_new:
        commits = read_commits(services, state_file, facts, cut.committed, starts=starts, past=past, until=until)
        commits = commits.with_more(doubts_of_layout(services, state_file, facts, cut, capture, from_nothing=not since))
    judged = [replace(found, exactness=worst([found.exactness, past.judged.get(found.store.name, SURE)])) for found in facts]
    return past, commits, judged


def _cut(
    services: Services, state_file: StateFile, facts: list[StoreFacts], options: ComputeOptions, then: BaseSnapshot | None
) -> tuple[list[StoreFacts], InputOffsets]:
    """Return where the input is cut: now, or at the offsets of the snapshot that is compared instead of the changelogs."""
    if then is None:
        return facts, find_cut(services, state_file, facts, options.at)
    facts = [then.as_changelog(found) for found in facts]
    return facts, replace(cut_at_committed(state_file, facts, then.manifest.committed), taken=then.manifest.taken)


def _refuse_all(computed: Sequence[ComputedStore], refuse: Callable[[ComputedStore], None]) -> None:
    try:
        for done in computed:
            refuse(done)
    except Refused:
        drop_stage(*(done.stage for done in computed))
        raise


def _refuse_inexact(store: str, exactness: Exactness, done: ComputedStore | None = None) -> None:
    grade, reasons = exactness.grade, exactness.reasons
    if grade <= "B":
        return
    differs = done is not None and (done.contradicted or (done.proof and done.proof.differing))
    damaged = f"if these keys are the damage, pass --damaged {store} or --damaged {store}:PARTITION,...; "
    raise Refused(
        f"store {store} would be rebuilt with exactness {grade} ({MEANINGS[grade]}): {'; '.join(reasons)}",
        hint=f"{damaged if differs else ''}pass --accept-inexact to proceed anyway",
        store=store,
        exactness=grade,
        reasons=list(reasons),
    )

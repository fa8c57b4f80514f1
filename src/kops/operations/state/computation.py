"""Computes all stores of a state file: reads the facts, judges how exact the result can be, stages what the changelogs lack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from kops.core.errors import Refused
from kops.core.findings import Finding, Severity
from kops.core.statefile import StateFile
from kops.core.streams.verdict import DOUBTFUL, IMPOSSIBLE, is_open
from kops.core.times import Position
from kops.operations.engine.spark import Engine, drop_stage
from kops.operations.services import Services
from kops.operations.state.archived_input import open_archives
from kops.operations.state.compute import ComputedStore
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
from kops.operations.state.judge.commits import Commits, read_commits
from kops.operations.state.judge.journal import OwnHistory, read_past
from kops.operations.state.judge.judge import judge, refuse_unplaced, refuse_unwritable
from kops.operations.state.judge.layout import layout
from kops.operations.state.recipe import Recipe
from kops.operations.state.rules.witnesses import Witnesses
from kops.operations.state.waiting_records import pending_answers

_NAMED = 3
_IMPOSSIBLE = "what its input or code cannot give is never written: a snapshot or an archive from before has it, or --store leaves it out"


@dataclass(frozen=True)
class ComputeOptions:
    """How stores are computed.

    :param at: up to where the input counts: ``COMMITTED``, the end, or a time
    :param accept_doubtful: write even keys that are in doubt
    :param only_looks: nothing is written, so nothing is refused for what the keys are
    :param archives: paths of archives of input topics, which are read before the topics
    :param damaged: store -> partitions of its changelog whose keys are not evidence; None: all of them
    :param recipe: how the stores are computed
    :param has_witnesses: the changelogs as they are show whether what was computed is right
    :param snapshot: path of a snapshot to start from, so that only what was read since is computed
    :param compared: path of a snapshot that is compared instead of the changelogs; stores are computed up to its offsets
    :param master: where Spark runs: a master, or ``sc://HOST:PORT``; None: as the context says, or on this machine
    """

    recipe: Recipe
    at: Position = COMMITTED
    accept_doubtful: bool = False
    only_looks: bool = False
    archives: tuple[str, ...] = ()
    snapshot: str | None = None
    compared: str | None = None
    master: str | None = None
    damaged: Mapping[str, frozenset[int] | None] = field(default_factory=dict)
    has_witnesses: bool = True


@dataclass(frozen=True)
class Computation:
    """All stores of a state file, computed.

    :param cut: up to where the input counted
    :param took: what it took besides Spark, in one line; empty: nothing
    """

    facts: list[StoreFacts]
    cut: InputOffsets
    computed: list[ComputedStore]
    took: str = ""

    @property
    def origins(self) -> tuple[str, ...]:
        """Where it comes from, if not from Kafka alone, and what it took."""
        return (*self.cut.origins, *([self.took] if self.took else []))


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
    recipe = options.recipe
    archived = open_archives(engine, state_file, options.archives)
    base = open_base(services, state_file, options.snapshot, restores=recipe.restores)
    if base is not None:
        recipe.refuse_start(state_file, base)
    then = open_base(services, state_file, options.compared)
    recipe.refuse_lost(services, [store.name for store in state_file.stores])
    since = None if base is None else base.offsets
    facts = read_facts(services, state_file, replacing=replacing or then is not None, archived=archived, since=since)
    if base is not None:
        facts = [replace(found, base=base.path(found.store), findings=(*found.findings, *base.findings(found.store))) for found in facts]
    facts, cut = _cut(services, state_file, facts, options, then)
    if base is not None:
        refuse_older(base, facts, cut)
    past, commits, facts = with_history(services, state_file, recipe, facts, cut, since="" if base is None else base.manifest.taken)
    if not options.only_looks:
        for found in facts:
            _refuse_impossible(found)
    with recipe.running(engine, state_file, facts, base) as running:
        cut = with_shares(engine, archived, cut, options.at, first_offsets(facts))
        cut = replace(cut, base="" if base is None else base.origin)
        notes = (*((commits.gap,) if commits.gap else ()), *recipe.notes(), *pending_answers(services, state_file, cut))
        cut = replace(cut, notes=(*cut.notes, *notes))
        facts = [recipe.without_waiting(engine, state_file, found, cut, services) for found in facts]
        for used in filter(None, (base, then)):
            check_base(engine, state_file, used)
        if base is not None:
            recipe.check_start(engine, state_file, base)
        facts = [replace(found, damaged=_damaged(found, options)) for found in facts]
        computed, took = running.compute(engine, facts, cut, services, replacing=replacing)
    witnesses = options.has_witnesses and not cut.moves
    computed = [found if witnesses and found.facts.store.name not in past.apart | commits.apart else _unproven(found) for found in computed]
    computed = [judge(engine, state_file, found, past, commits=commits, cut=cut) for found in computed]
    if must_be_empty:
        _refuse_all(computed, lambda done: refuse_unwritable(done, replacing=replacing))
    if not options.only_looks:
        _refuse_all(computed, lambda done: _refuse_doubtful(done, accepted=options.accept_doubtful))
    if must_be_empty:
        _refuse_all(computed, refuse_unplaced)
    return Computation(facts, cut, computed, took)


def _damaged(facts: StoreFacts, options: ComputeOptions) -> frozenset[int]:
    chosen = options.damaged.get(facts.store.name, frozenset())
    return frozenset(facts.changelog_bounds) if chosen is None else chosen


def _unproven(found: ComputedStore) -> ComputedStore:
    """Return a store without the witness of its changelog, which reflects other offsets, or another state, than what was computed."""
    return replace(found, witnesses=found.witnesses and Witnesses(found.counts.keys))


def with_history(
    services: Services,
    state_file: StateFile,
    recipe: Recipe,
    facts: Sequence[StoreFacts],
    cut: InputOffsets,
    *,
    since: str = "",
) -> tuple[OwnHistory, Commits, list[StoreFacts]]:
    """Return what kops and others did to an application, and the facts with what the former shows.

    :param since: when the snapshot that the stores start from was taken, ISO-8601 UTC
    """
    starts, until = begins(facts), cut.taken
    past = read_past(services, state_file.application, state_file.stores, cut.committed, starts, since=since, until=until)
    commits = Commits()
    if not cut.is_new:
        commits = read_commits(services, state_file, facts, cut.committed, starts=starts, past=past, until=until)
        keyed = {found.store.name: recipe.keyed_topics(state_file, found.store) for found in facts}
        read = None if since else recipe.read_topics()
        commits = commits.with_more(layout(services, state_file, facts, cut, keyed=keyed, read=read))
    facts = [replace(found, findings=(*found.findings, *past.findings.get(found.store.name, ()))) for found in facts]
    return past, commits, list(facts)


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


def _refuse_impossible(facts: StoreFacts) -> None:
    """Refuse before anything is computed where no key can be: a store of which all keys survived is nothing to rebuild either.

    :raises Refused: with why
    """
    reasons = [finding for finding in facts.findings if finding.severity is Severity.CRITICAL]
    if reasons:
        _refuse(facts.store.name, IMPOSSIBLE, reasons, hint=f"{_IMPOSSIBLE}; `kops state verify` compares what is there")


def _refuse_doubtful(found: ComputedStore, *, accepted: bool) -> None:
    """Refuse to write keys that are in doubt, or cannot be computed.

    :param accepted: doubtful ones are to be written
    :raises Refused: with the findings, and the keys where single ones differ
    """
    verdict, store = found.verdict, found.facts.store.name
    if not found.must_write and not found.verdict.beyond and found.facts.fits:
        return
    if verdict.word == IMPOSSIBLE:
        _refuse(store, IMPOSSIBLE, verdict.findings, verdict.text, hint=_IMPOSSIBLE)
    if verdict.word == DOUBTFUL and not accepted:
        differs = found.contradicted or (found.witnesses and found.witnesses.differing)
        damaged = f"if these keys are the damage, pass --damaged {store} or --damaged {store}:PARTITION,...; "
        hint = f"{damaged if differs else ''}`kops state diff` shows them; --accept-doubtful writes them all the same"
        first = f": {'; '.join(verdict.keys)}" if verdict.keys else ""
        _refuse(store, DOUBTFUL, verdict.findings, f"{verdict.text}{first}", hint=hint)


def _refuse(store: str, word: str, findings: Sequence[Finding], counts: str = "", *, hint: str) -> NoReturn:
    shown = sorted((finding for finding in findings if is_open([finding])), key=lambda finding: "keys" not in finding.facts)
    text = "; ".join(finding.summary for finding in shown[:_NAMED])
    more = f"; and {len(shown) - _NAMED} more findings" if len(shown) > _NAMED else ""
    raise Refused(
        f"store {store} is {word}{f' ({counts})' if counts else ''}: {text}{more}",
        hint=hint,
        store=store,
        verdict=word,
        findings=[finding.as_json() for finding in shown],
    )

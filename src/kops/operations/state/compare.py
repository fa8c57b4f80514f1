"""``verify`` and ``diff``: the rebuild without the write; and ``diff --against``: the changelogs of two applications, nothing computed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from kops.core.errors import CouldNotTell, ExitCode, KopsError, NotFound
from kops.core.models import isolation_of
from kops.core.statefile import StateFile
from kops.core.topics.names import topics_not_found
from kops.operations.engine.spark import Engine, drop_stage, new_stage, start_engine
from kops.operations.engine.stable import bounds_of_application
from kops.operations.services import Services
from kops.operations.state.completeness import uncovered_changelogs, uncovered_note
from kops.operations.state.computation import ComputeOptions, compute_all
from kops.operations.state.compute import ComputedStore
from kops.operations.state.input_offsets import application_group
from kops.operations.state.into import renamed
from kops.operations.state.judge.judge import remember_proofs
from kops.operations.state.rules.windows import counted
from kops.operations.state.stored_keys import counts_by_word, key_rows

if TYPE_CHECKING:
    from kops.spark.reading.ranges import TopicRange


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison.

    :param rows: one per store, or one per key that differs
    :param differing: keys that differ
    :param outcome: how the command ends: nothing differs, something does, or that is not known; of several stores, the most conclusive
    :param notes: what the operator should know, one sentence each
    """

    rows: list[dict[str, Any]]
    differing: int
    notes: list[str]
    outcome: ExitCode


def verify(
    services: Services,
    state_file: StateFile,
    options: ComputeOptions,
    *,
    look: Callable[[Engine, list[ComputedStore]], None],
) -> Comparison:
    """Compare every store with its changelog and count.

    :param look: called with what was computed before it is discarded
    """
    with _computed(services, state_file, options) as (engine, notes, computed):
        look(engine, computed)
        rows = [_store_row(found) for found in computed]
        return Comparison(rows, sum(found.differing for found in computed), notes, outcome_of([found.outcome for found in computed]))


def diff(services: Services, state_file: StateFile, options: ComputeOptions, *, limit: int) -> Comparison:
    """Compare every store with its changelog and return the keys that differ."""
    with _computed(services, state_file, options) as (engine, notes, computed):
        rows = [row for found in computed if found.differing for row in key_rows(engine, found.facts.store, found.stage, limit)]
        differing = sum(found.differing for found in computed)
        if differing > len(rows):
            notes.append(f"{differing:,} keys differ, {len(rows):,} are shown; --limit shows more")
        return Comparison(rows, differing, notes, outcome_of([found.outcome for found in computed]))


def outcome_of(outcomes: Collection[ExitCode]) -> ExitCode:
    """Return how the comparison of several stores ends: with a difference if any has one, otherwise without knowing if any does."""
    return next((outcome for outcome in (ExitCode.FAILED, ExitCode.UNCLEAR) if outcome in outcomes), ExitCode.DONE)


@contextmanager
def could_not_tell() -> Iterator[None]:
    """Let what fails while computing mean that nothing is known, and not that something differs."""
    try:
        yield
    except KopsError as error:
        if error.exit_code is not ExitCode.FAILED:
            raise
        raise CouldNotTell(error.message, hint=error.hint, **error.details) from error


@contextmanager
def _computed(
    services: Services, state_file: StateFile, options: ComputeOptions
) -> Iterator[tuple[Engine, list[str], list[ComputedStore]]]:
    with could_not_tell():
        engine = options.recipe.engine(services, options.master)
        group = application_group(services, state_file, options.at)
        notes = [f"compared with {options.compared} and not with the changelogs"] if options.compared else []
        if group is not None and not options.compared and group.state != "EMPTY":
            notes.append(f"{state_file.application} is running ({group.state}): what it has not committed yet shows as a difference")
        done = compute_all(services, state_file, engine, replace(options, only_looks=True), must_be_empty=False)
        cut = done.cut
        uncovered = [] if options.compared else uncovered_changelogs(services, state_file)
        still = bool(options.compared) or group is None or group.state == "EMPTY"
        computed, forgotten = remember_proofs(services, state_file, done.computed, cut.offsets, at=cut.taken, stands_still=still)
        try:
            stores = (note for found in computed for note in found.explained)
            yield engine, [*notes, *cut.notes, *cut.origins, *stores, *uncovered_note(state_file, uncovered), *forgotten], computed
        finally:
            drop_stage(*(found.stage for found in computed))


def _store_row(found: ComputedStore) -> dict[str, Any]:
    return {
        "store": found.facts.store.name,
        "changelog": found.facts.store.changelog,
        "keys": found.counts.keys,
        **found.judgement,
        **counts_by_word(*found.actions.values()),
        "records": found.counts.read,
        **counted(found.counts.noted),
    }


def diff_against(services: Services, state_file: StateFile, other: str, *, limit: int, master: str | None) -> Comparison:
    """Compare the stores of a state file with those of another application; ``expected`` is the state file's.

    Where the numbers of partitions differ, a key may be in any partition.

    :param other: the other ``application.id``
    :param limit: maximum number of rows per store
    :raises NotFound: when a changelog does not exist
    """
    from kops.spark.driver.failures import explained
    from kops.spark.staging.difference import compacted_view
    from kops.spark.staging.stage import stage_difference_of
    from kops.spark.stores.versioned import held_versions

    engine = start_engine(services, master)
    named = renamed(state_file, other)
    isolation = isolation_of(committed=state_file.exactly_once)
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    differing, unseen = 0, []
    for store, their in zip(state_file.stores, named.stores, strict=True):
        ranges = [_range(services, topic, isolation, state_file) for topic in (store.changelog, their.changelog)]
        stage = new_stage(services, state_file.application)
        services.progress.step(f"comparing {store.changelog} with {their.changelog}")
        try:
            with explained(f"compare {store.changelog}"), engine.reading(*ranges):
                held = compacted_view if store.history_ms is None else partial(held_versions, history_ms=store.history_ms)
                staged = stage_difference_of(engine.kafka(), ranges[0], ranges[1], stage, held)
            found = sum(counts_by_word(*staged.actions.values()).values())
            shown = key_rows(engine, store, stage, limit) if found else []
        finally:
            drop_stage(stage)
        differing += found
        if not any(wanted.records for wanted in ranges):
            unseen.append(store.name)
        rows += shown
        if found > len(shown):
            notes.append(f"{store.name}: {found:,} keys differ, {len(shown):,} are shown; --limit shows more")
    if unseen:
        notes.append(f"neither changelog has any record, so nothing was compared: {', '.join(unseen)}")
    same = [store.name for store in state_file.stores if store.name not in unseen]
    if same and not differing:
        notes.append(f"{state_file.application} and {other} hold the same: {', '.join(same)}")
    return Comparison(rows, differing, notes, ExitCode.FAILED if differing else ExitCode.UNCLEAR if unseen else ExitCode.DONE)


def _range(services: Services, topic: str, isolation: str, state_file: StateFile) -> TopicRange:
    from kops.spark.reading.ranges import TopicRange

    partitions, problems = services.kafka.offsets.partitions_or_errors([topic])
    if isinstance(problems.get(topic), NotFound):
        raise topics_not_found([topic], hint="`kops topics list '*-changelog'` shows those that exist")
    if topic in problems:
        raise problems[topic]
    bounds = bounds_of_application(services, partitions[topic], isolation=isolation)
    ranges = {at.partition: (bound.log_start_offset, bound.log_end_offset) for at, bound in bounds.items()}
    return TopicRange(topic, ranges, read_committed=state_file.exactly_once, headers=True)

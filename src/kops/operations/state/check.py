"""``check``: what a state file says against the application's own program, over the same input. No changelog is compared, or written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kops.core.errors import UsageProblem
from kops.core.findings import counted
from kops.core.models import TopicPartition
from kops.core.statefile import StateFile, Store
from kops.core.streams.capture import Capture
from kops.core.streams.program import global_topics, reason_against
from kops.operations.engine.spark import Engine, drop_stage, new_stage, start_engine
from kops.operations.services import Services
from kops.operations.state.compare import Comparison, could_not_tell, status_of
from kops.operations.state.computation import ComputeOptions, compute_whole
from kops.operations.state.compute import DIFFERENT, EQUAL, UNCLEAR, ComputedStore
from kops.operations.state.facts import StoreFacts, read_facts
from kops.operations.state.input_offsets import InputOffsets, application_group, begins, find_cut
from kops.operations.state.own_code.start import ProgramRun
from kops.operations.state.own_code.stores import program_state_file
from kops.operations.state.stored_keys import WORDS, counts_by_word, key_rows


@dataclass(frozen=True)
class CheckOptions:
    """What is compared, how much of it, and how much is shown.

    :param path: of the capture
    :param limit: maximum number of keys to show for each store
    :param first: only this many offsets of each partition of the input count; None: all of them
    :param one_key_in: only a share of the keys of the input counts; 1: all of them
    """

    program: ProgramRun
    path: str
    limit: int
    first: int | None
    one_key_in: int


def check(services: Services, state_file: StateFile, options: ComputeOptions, how: CheckOptions) -> Comparison:
    """Compute the stores of a state file twice, by what it says and by the program, and compare.

    :raises UsageProblem: when the program is another application, or has no such store
    """
    program, path = how.program, how.path
    if program.capture.application != state_file.application:
        raise UsageProblem(f"{path} is of {program.capture.application}, and {state_file.path} of {state_file.application}")
    names = _names_in_program(state_file, program.capture, path)
    stores = {store.name: store for store in program.capture.stores}
    against = {store.name: reason_against(program.capture, stores[names[store.name]]) for store in state_file.stores}
    chosen = tuple(store for store in state_file.stores if not against[store.name])
    rows = [_left_out(store, against[store.name]) for store in state_file.stores if against[store.name]]
    notes = [f"store {name} was not compared: {reason}" for name, reason in against.items() if reason]
    if chosen:
        by_program, _ = program_state_file(program.capture, path, [names[store.name] for store in chosen])
        by_name = {store.name: store for store in by_program.stores}
        by_program = replace(by_program, stores=tuple(by_name[names[store.name]] for store in chosen))
        with could_not_tell():
            found, more = _compared(services, (by_program, replace(state_file, stores=chosen)), options, how)
        rows, notes = [*found, *rows], [*more, *notes]
    differing = sum(row[word] for row in rows for word in WORDS.values())
    return Comparison(rows, differing, notes, status_of([row["status"] for row in rows]))


def _names_in_program(state_file: StateFile, capture: Capture, path: str) -> dict[str, str]:
    """Return how the program calls each store of a state file: by its changelog."""
    by_changelog = {store.changelog: store.name for store in capture.stores if store.changelog}
    for store in state_file.stores:
        if store.changelog not in by_changelog:
            raise UsageProblem(
                f"{path} has no store with the changelog {store.changelog}, which store {store.name} of {state_file.path} has",
                hint=f"it has {', '.join(sorted(map(str, by_changelog)))}; --store names those to compare",
            )
    return {store.name: by_changelog[store.changelog] for store in state_file.stores}


def _compared(
    services: Services, files: tuple[StateFile, StateFile], options: ComputeOptions, how: CheckOptions
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a row for each store, and what should be known.

    :param files: the stores as the program has them, and as the state file says
    """
    by_program, stated = files
    engine = start_engine(services, options.master)
    application_group(services, stated, options.at)
    facts_of_program, facts = (read_facts(services, each, replacing=True) for each in files)
    facts_of_program = [replace(ours, starts=_starts(ours, theirs)) for ours, theirs in zip(facts_of_program, facts, strict=True)]
    cut = find_cut(services, stated, [*facts, *facts_of_program], options.at)
    notes = [*cut.notes, *(note for pair in zip(by_program.stores, stated.stores, strict=True) for note in _unlike(*pair))]
    if by_program.reads_committed != stated.reads_committed:
        notes.append(f"the isolation level is {by_program.isolation} in the program, and {stated.isolation} in {stated.path}")
    if how.first is not None:
        cut = _only_first(cut, [*facts, *facts_of_program], how.first)
        notes.append(f"compared over the first {how.first:,} offsets of each partition")
    if how.one_key_in > 1:
        whole = global_topics(how.program.capture)
        topics = {place.topic for place in cut.offsets} - set(whole)
        cut = replace(cut, one_key_in=dict.fromkeys(topics, how.one_key_in))
        kept = f", and all of {', '.join(whole)}" if whole else ""
        notes.append(f"compared over the records of one in {how.one_key_in:,} keys of the input, chosen by their hash{kept}")
    alone = replace(how.program, nothing_waits=True)  # all of the input counts for both
    computed = compute_whole(engine, stated, facts, cut, skip_undecodable=options.skip_undecodable)
    stages = [found.stage for found in computed]
    try:
        expected = compute_whole(engine, by_program, facts_of_program, cut, program=alone)
        stages += [found.stage for found in expected]
        rows = []
        for one, other in zip(expected, computed, strict=True):
            stages.append(new_stage(services, stated.application))
            rows.append(_row(engine, one, other, stages[-1], how.limit))
    finally:
        drop_stage(*stages)
    return rows, [*notes, *(note for row in rows for note in _notes(row))]


def _starts(by_program: StoreFacts, stated: StoreFacts) -> dict[TopicPartition, int]:
    return {place: stated.starts[place] for place in by_program.input_bounds if place in stated.starts}


def _only_first(cut: InputOffsets, facts: Sequence[StoreFacts], count: int) -> InputOffsets:
    starts = begins(facts)
    return replace(cut, offsets={place: min(offset, starts[place] + count) for place, offset in cut.offsets.items()})


def _unlike(by_program: Store, stated: Store) -> Iterator[str]:
    topics, named = ({source.topic for source in store.inputs} for store in (by_program, stated))
    if topics != named:
        yield f"store {stated.name} comes from {', '.join(sorted(topics))} in the program, and by the file from {', '.join(sorted(named))}"
    kept, said = (store.window.retention_ms if store.window else None for store in (by_program, stated))
    if kept != said and None not in (kept, said):
        yield f"store {stated.name} keeps windows for {kept:,} ms in the program, and by the file for {said:,} ms"


def _row(engine: Engine, by_program: ComputedStore, stated: ComputedStore, stage: str, limit: int) -> dict[str, Any]:
    """Compare a store: what is expected is the program's."""
    from kops.spark.driver.failures import explained
    from kops.spark.stores.agreement import stage_disagreement

    store = stated.facts.store
    windows = [found.facts.store.window for found in (by_program, stated)]
    retention = min((each.retention_ms for each in windows if each), default=0)
    engine.services.progress.step(f"comparing {store.name}")
    with explained(f"compare {store.name}"):
        staged, expired = stage_disagreement(
            engine.session,
            (by_program.stage, stated.stage),
            stage,
            timed=not stated.counts.noted.get("timed") and by_program.computed_as != "B",  # B: only timestamps are not sure
            windows=store.window,
            retention_ms=retention,
        )
    counts = counts_by_word(*staged.actions.values())
    differing = sum(counts.values())
    equal = by_program.counts.keys - counts["missing"] - counts["different"] - expired.get("added", 0)
    sure = max(by_program.computed_as, stated.computed_as) <= "B"
    without_any = EQUAL if equal else UNCLEAR
    status = without_any if not differing else DIFFERENT if sure else UNCLEAR
    return {
        "store": store.name,
        "status": status,
        "equal": equal,
        **counts,
        "expired_windows": sum(expired.values()),
        "exactness": {"program": by_program.computed_as, "file": stated.computed_as},
        "reasons": list(dict.fromkeys((*by_program.exactness.reasons, *stated.exactness.reasons))),
        "records": {"program": by_program.counts.read, "file": stated.counts.read},
        "first": key_rows(engine, store, stage, limit) if differing else [],
    }


def _left_out(store: Store, reason: str) -> dict[str, Any]:
    return {
        "store": store.name,
        "status": UNCLEAR,
        "equal": 0,
        **dict.fromkeys(WORDS.values(), 0),
        "expired_windows": 0,
        "exactness": {"program": None, "file": None},
        "reasons": [reason],
        "records": {"program": 0, "file": 0},
        "first": [],
    }


def _notes(row: dict[str, Any]) -> Iterator[str]:
    name, differing = row["store"], sum(row[word] for word in WORDS.values())
    if not differing and not row["equal"]:
        yield f"store {name}: there are no keys, so nothing was compared"
        return
    yield f"store {name}: {row['equal']:,} of {row['equal'] + differing:,} keys are computed the same by the program and by the file"
    if differing > len(row["first"]):
        yield f"store {name}: {differing:,} keys differ, {len(row['first']):,} are shown; --limit shows more"
    if row["expired_windows"]:
        yield f"store {name}: {counted(row['expired_windows'], 'window')} that only one of them has may have expired, and do not count"
    if row["status"] == UNCLEAR:
        yield f"store {name}: what differs need not be wrong: {'; '.join(row['reasons'])}"

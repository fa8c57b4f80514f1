"""``verify`` and ``diff``: the rebuild without the write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from kops.core.errors import CouldNotTell, ExitCode, KopsError
from kops.core.statefile import StateFile
from kops.operations.services import Services
from kops.operations.state.completeness import uncovered_changelogs, uncovered_note
from kops.operations.state.compute import DIFFERENT, EQUAL, UNCLEAR, Computed
from kops.operations.state.cut import application_group
from kops.operations.state.engine import Engine, drop_stage, start_engine
from kops.operations.state.how import How
from kops.operations.state.key_rows import WORDS, key_rows
from kops.operations.state.plans import compute_all
from kops.operations.state.windows import counted
from kops.operations.state.witnesses import remember_proofs


@dataclass(frozen=True)
class Comparison:
    """What was found.

    :param rows: one a store, or one a key that differs
    :param differing: keys that differ
    :param status: equal, different or unclear: of all stores, that of the one that says most
    :param notes: what the person should know, a sentence each
    """

    rows: list[dict[str, Any]]
    differing: int
    notes: list[str]
    status: str


def verify(
    services: Services,
    state_file: StateFile,
    how: How,
    *,
    look: Callable[[Engine, list[Computed]], None] | None = None,
) -> Comparison:
    """Compare every store with its changelog and count.

    :param look: is given what was computed before it is forgotten
    """
    with _computed(services, state_file, how) as (engine, notes, computed):
        if look is not None:
            look(engine, computed)
        rows = [_store_row(found) for found in computed]
        return Comparison(rows, sum(found.differing for found in computed), notes, status_of(computed))


def diff(services: Services, state_file: StateFile, how: How, *, limit: int) -> Comparison:
    """Compare every store with its changelog and return the keys that differ.

    :param limit: the most rows for each store
    """
    with _computed(services, state_file, how) as (engine, notes, computed):
        rows = [row for found in computed if found.differing for row in key_rows(engine, found.facts.store, found.stage, limit)]
        differing = sum(found.differing for found in computed)
        if differing > len(rows):
            notes.append(f"{differing:,} keys differ, {len(rows):,} are shown; --limit shows more")
        return Comparison(rows, differing, notes, status_of(computed))


def status_of(computed: Sequence[Computed]) -> str:
    """Return what a comparison of several stores has shown: different where one is, else unclear where one is."""
    found = {one.status for one in computed}
    return next((status for status in (DIFFERENT, UNCLEAR) if status in found), EQUAL)


@contextmanager
def _computed(services: Services, state_file: StateFile, how: How) -> Iterator[tuple[Engine, list[str], list[Computed]]]:
    try:
        yield from _compared(services, state_file, how)
    except KopsError as error:
        if error.exit_code is not ExitCode.FAILED:
            raise
        raise CouldNotTell(error.message, hint=error.hint, **error.details) from error


def _compared(services: Services, state_file: StateFile, how: How) -> Iterator[tuple[Engine, list[str], list[Computed]]]:
    engine = start_engine(services, how.master)
    group = application_group(services, state_file, how.at)
    notes = [f"compared with {how.compared} and not with the changelogs"] if how.compared else []
    if group is not None and not how.compared and group.state != "EMPTY":
        notes.append(f"{state_file.application} is running ({group.state}): what it has not committed yet shows as a difference")
    _, cut, computed = compute_all(services, state_file, engine, replace(how, accept_inexact=True), must_be_empty=False)
    uncovered = [] if how.compared else uncovered_changelogs(services, state_file)
    computed, forgotten = remember_proofs(services, state_file, computed, cut.offsets, at=cut.taken)
    try:
        said = (note for found in computed for note in (found.summary, *found.warnings))
        yield engine, [*notes, *cut.notes, *cut.origins, *said, *uncovered_note(state_file, uncovered), *forgotten], computed
    finally:
        for found in computed:
            drop_stage(found.stage)


def _store_row(found: Computed) -> dict[str, Any]:
    totals = {name: sum(actions.get(name, 0) for actions in found.actions.values()) for name in WORDS}
    return {
        "store": found.facts.store.name,
        "changelog": found.facts.store.changelog,
        "status": found.status,
        "keys": found.counts.keys,
        **{word: totals[name] for name, word in WORDS.items()},
        "exactness": found.grade,
        **{name: value for name, value in found.judgement.items() if name != "class"},
        "records": found.counts.read,
        **counted(found.counts.noted),
    }

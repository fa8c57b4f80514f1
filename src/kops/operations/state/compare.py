"""``verify`` and ``diff``: the rebuild without the write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kops.core.records import timestamp_text
from kops.core.statefile import StateFile, Store
from kops.core.statefile.models import VERSIONED
from kops.operations.records_formats import format_for
from kops.operations.services import Services
from kops.operations.state.compute import Computed
from kops.operations.state.cut import application_group
from kops.operations.state.engine import Engine, drop_stage, start_engine
from kops.operations.state.expected import version_of
from kops.operations.state.how import How
from kops.operations.state.plans import compute_all
from kops.operations.state.query_keys import stored_key, window_size
from kops.operations.state.shown import as_base64, shown
from kops.operations.state.windows import counted

if TYPE_CHECKING:
    from kops.formats.base import Format

_WORDS = {"added": "missing", "changed": "different", "removed": "unexpected"}


@dataclass(frozen=True)
class Comparison:
    """What was found.

    :param rows: one a store, or one a key that differs
    :param differing: keys that differ
    :param notes: what the person should know, a sentence each
    """

    rows: list[dict[str, Any]]
    differing: int
    notes: list[str]


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
        return Comparison(rows, sum(found.differing for found in computed), notes)


def diff(services: Services, state_file: StateFile, how: How, *, limit: int) -> Comparison:
    """Compare every store with its changelog and return the keys that differ.

    :param limit: the most rows for each store
    """
    with _computed(services, state_file, how) as (engine, notes, computed):
        rows = [row for found in computed if found.differing for row in key_rows(engine, found.facts.store, found.stage, limit)]
        differing = sum(found.differing for found in computed)
        if differing > len(rows):
            notes.append(f"{differing:,} keys differ, {len(rows):,} are shown; --limit shows more")
        return Comparison(rows, differing, notes)


@contextmanager
def _computed(services: Services, state_file: StateFile, how: How) -> Iterator[tuple[Engine, list[str], list[Computed]]]:
    engine = start_engine(services, how.master)
    group = application_group(services, state_file, how.at)
    notes = []
    if group is not None and group.state != "EMPTY":
        notes.append(f"{state_file.application} is running ({group.state}): what it has not committed yet shows as a difference")
    _, cut, computed = compute_all(services, state_file, engine, replace(how, accept_inexact=True), must_be_empty=False)
    try:
        said = (note for found in computed for note in (found.summary, *found.warnings))
        yield engine, [*notes, *cut.notes, *cut.origins, *said], computed
    finally:
        for found in computed:
            drop_stage(found.stage)


def _store_row(found: Computed) -> dict[str, Any]:
    totals = {name: sum(actions.get(name, 0) for actions in found.actions.values()) for name in _WORDS}
    return {
        "store": found.facts.store.name,
        "changelog": found.facts.store.changelog,
        "status": "different" if found.differing else "equal",
        "keys": found.counts.keys,
        **{word: totals[name] for name, word in _WORDS.items()},
        "exactness": found.exactness.grade,
        "records": found.counts.read,
        **counted(found.counts.noted),
    }


def key_rows(engine: Engine, store: Store, stage: str, limit: int) -> list[dict[str, Any]]:
    """Return the first differences of a stage as rows."""
    from kops.spark.stage import differing_rows

    keys, values = (format_for(engine.services, form.name) for form in (store.key_form, store.aggregate.form))
    return [_key_row(row, store, keys, values) for row in differing_rows(engine.session, stage, limit)]


def _key_row(row: Any, store: Store, keys: Format, values: Format) -> dict[str, Any]:
    wanted, found = row.after_value if row.after_present else None, row.before_value if row.before_present else None
    key = bytes(row.key)
    times = {(time or 0).to_bytes(8, "big", signed=True) for time in (row.after_timestamp, row.before_timestamp)}
    if store.type == VERSIONED and key[-8:] in times:  # a deletion is a version too; the timestamps tell which are there
        wanted, found = (None if value is None else version_of(key, bytes(value))[1] for value in (wanted, found))
        key, _ = version_of(key, b"")
    stored = stored_key(store.type, key, window_size(store))
    expected, actual = shown(values, wanted), shown(values, found)
    if expected == actual and wanted != found:  # the same value in other bytes, as JSON can be written in many ways
        expected, actual = as_base64(wanted), as_base64(found)
    return {
        "store": store.name,
        "partition": row.partition,
        "key": shown(keys, stored.inner),
        **stored.around,
        "status": _WORDS[row.action],
        "expected": expected,
        "actual": actual,
        "expected_timestamp": timestamp_text(row.after_timestamp) if row.after_present else None,
        "actual_timestamp": timestamp_text(row.before_timestamp) if row.before_present else None,
    }

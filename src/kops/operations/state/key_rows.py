"""Keys that differ, as rows for people and JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from kops.core.records.models import timestamp_text
from kops.core.statefile import Store
from kops.core.statefile.models import VERSIONED
from kops.operations.records.formats import format_for
from kops.operations.state.engine import Engine
from kops.operations.state.query_keys import stored_key, version_of, window_size
from kops.operations.state.shown import as_base64, shown
from kops.output.records import as_line

if TYPE_CHECKING:
    from kops.formats.base import Format

WORDS = {"added": "missing", "changed": "different", "removed": "unexpected"}
_LONGEST = 60
"""Characters of a value that a sentence shows."""


def differing_keys(engine: Engine, store: Store, stage: str, limit: int, without: Collection[int] = ()) -> list[str]:
    """Return the first keys of a changelog that were computed differently, each in a few words.

    :param without: partitions to leave out
    """
    keys, values = _formats(engine, store)
    where = "action in ('changed', 'removed')"
    if without:
        where += f" and partition not in ({', '.join(map(str, sorted(without)))})"
    return [_in_words(_key_row(row, store, keys, values)) for row in _rows(engine, stage, limit, where)]


def _in_words(row: Mapping[str, Any]) -> str:
    around = f" [{row['window_start']}]" if row.get("window_start") else ""
    place = f"{as_line(row['key'])}{around} of partition {row['partition']}"
    if row["status"] == WORDS["removed"]:
        return f"{place}: computed nothing, found {_side(row, 'actual')}"
    return f"{place}: computed {_side(row, 'expected')}, found {_side(row, 'actual')}"


def _side(row: Mapping[str, Any], side: str) -> str:
    time = f" at {row[f'{side}_timestamp']}" if row["expected"] == row["actual"] else ""
    return f"{str(as_line(row[side]))[:_LONGEST]}{time}"


def key_rows(engine: Engine, store: Store, stage: str, limit: int) -> list[dict[str, Any]]:
    """Return the first differences of a stage as rows."""
    keys, values = _formats(engine, store)
    return [_key_row(row, store, keys, values) for row in _rows(engine, stage, limit, "action != 'erased'")]


def _rows(engine: Engine, stage: str, limit: int, where: str) -> list[Any]:
    from kops.spark.staging.stage import differing_rows

    return list(differing_rows(engine.session, stage, limit, where))


def _formats(engine: Engine, store: Store) -> tuple[Format, Format]:
    return format_for(engine.services, store.key_form.name), format_for(engine.services, store.aggregate.form.name)


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
        "status": WORDS[row.action],
        "expected": expected,
        "actual": actual,
        "expected_timestamp": timestamp_text(row.after_timestamp) if row.after_present else None,
        "actual_timestamp": timestamp_text(row.before_timestamp) if row.before_present else None,
    }

"""Keys and values of stores in readable form: the application's own key, the window or session around it, the keys that differ."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kops.core.errors import UndecodableRecord
from kops.core.records.models import timestamp_text
from kops.core.statefile import Store
from kops.core.statefile.models import SLIDING, VERSIONED, WINDOW
from kops.formats.base import Format, as_text_or_base64
from kops.operations.changelog.layouts import KEY_VALUE, LAYOUTS, Layout
from kops.operations.engine.spark import Engine
from kops.operations.records.formats import format_for
from kops.output.records import as_line

WORDS = {"added": "missing", "changed": "different", "removed": "unexpected"}
_LONGEST = 60
"""Characters of a value that a sentence shows."""


@dataclass(frozen=True)
class StoredKey:
    """What the key of a changelog record holds.

    :param inner: bytes of the application's own key
    :param around: the window's or session's bounds, in stores that have them
    """

    inner: bytes
    around: dict[str, Any]


def counts_by_word(*partitions: Mapping[str, int]) -> dict[str, int]:
    """Return how many keys of some partitions are missing, different and unexpected.

    :param partitions: how many keys are added, changed and removed in each
    """
    return {word: sum(actions.get(name, 0) for actions in partitions) for name, word in WORDS.items()}


def layout_of(kind: str) -> Layout:
    return LAYOUTS.get(WINDOW if kind == SLIDING else kind, KEY_VALUE)


def suffix_length(kind: str) -> int:
    return layout_of(kind).suffix


def stored_key(kind: str, data: bytes, size_ms: int | None = None) -> StoredKey:
    """Return what the key of a changelog record holds; a key that is too short for a window is shown as it is.

    :param kind: the type of the store
    :param size_ms: of its windows; None when it is not known
    """
    layout = layout_of(kind)
    inner = layout.inner(data)
    with suppress(UndecodableRecord):
        if inner is not None:
            return StoredKey(inner, layout.columns(data, size_ms))
    return StoredKey(data, {})


def version_of(key: bytes, value: bytes) -> tuple[bytes, bytes | None]:
    """Return the key and the value of a versioned store's row (``kops.spark.stores.versioned``)."""
    return key[:-8], value[1:] if value[:1] == b"\x01" else None


def window_size(store: Store) -> int | None:
    """Return the size of a store's windows in milliseconds; for sessions, which have no size, the gap, which is never used."""
    return store.window.size_ms if store.window is not None else None


def shown(form: Format, data: Any) -> Any:
    """Return bytes decoded, or as text or base64 when they are not in the format: a wrong changelog may hold anything."""
    if data is None:
        return None
    try:
        return form.show(form.decode(bytes(data)))
    except UndecodableRecord:
        return as_text_or_base64(bytes(data))


def as_base64(data: Any) -> Any:
    return None if data is None else {"data": b64encode(bytes(data)).decode(), "encoding": "base64"}


def differing_keys(
    engine: Engine, store: Store, stage: str, limit: int, without: Collection[int] = (), *, missing: bool = False
) -> list[str]:
    """Return the first keys of a changelog that were computed differently, each in a few words.

    :param without: partitions to leave out
    :param missing: those that it does not hold are among them
    """
    keys, values = formats_of(engine, store)
    where = "action in ('changed', 'removed', 'added')" if missing else "action in ('changed', 'removed')"
    if without:
        where += f" and partition not in ({', '.join(map(str, sorted(without)))})"
    return [_in_words(_key_row(row, store, keys, values)) for row in _rows(engine, stage, limit, where)]


def stored_key_text(engine: Engine, store: Store, key: bytes) -> str:
    """Return a key of a changelog in a few words: the application's own, and the start of its window or session."""
    stored = stored_key(store.type, key, window_size(store))
    text = as_line(shown(formats_of(engine, store)[0], stored.inner))
    return f"{text} [{stored.around['window_start']}]" if stored.around.get("window_start") else text


def _in_words(row: Mapping[str, Any]) -> str:
    around = f" [{row['window_start']}]" if row.get("window_start") else ""
    place = f"{as_line(row['key'])}{around} of partition {row['partition']}"
    if row["status"] == WORDS["added"]:
        return f"{place}: computed {abbreviated(row['expected'])}, found nothing"
    if row["status"] == WORDS["removed"]:
        return f"{place}: computed nothing, found {_side(row, 'actual')}"
    return f"{place}: computed {_side(row, 'expected')}, found {_side(row, 'actual')}"


def _side(row: Mapping[str, Any], side: str) -> str:
    time = f" at {row[f'{side}_timestamp']}" if row["expected"] == row["actual"] else ""
    return f"{abbreviated(row[side])}{time}"


def abbreviated(value: Any) -> str:
    """Return a decoded value as a sentence shows it."""
    return as_line(value)[:_LONGEST]


def key_rows(engine: Engine, store: Store, stage: str, limit: int) -> list[dict[str, Any]]:
    keys, values = formats_of(engine, store)
    return [_key_row(row, store, keys, values) for row in _rows(engine, stage, limit, "action != 'erased'")]


def _rows(engine: Engine, stage: str, limit: int, where: str) -> list[Any]:
    from kops.spark.staging.stage import differing_rows

    return differing_rows(engine.session, stage, limit, where)


def formats_of(engine: Engine, store: Store) -> tuple[Format, Format]:
    """Return the formats of a store's keys and values."""
    return format_for(engine.services, store.key_form.name), format_for(engine.services, store.aggregate.form.name)


def _key_row(row: Any, store: Store, keys: Format, values: Format) -> dict[str, Any]:
    wanted, found = row.after_value if row.after_present else None, row.before_value if row.before_present else None
    key = bytes(row.key)
    times = {(time or 0).to_bytes(8, "big", signed=True) for time in (row.after_timestamp, row.before_timestamp)}
    if store.type == VERSIONED and key[-8:] in times:  # a deletion is a version too; the timestamps show which ones exist
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

"""The keys of a changelog as a person asks for them: the application's own key, and the window or session around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kops.core.errors import UndecodableRecord
from kops.core.records import timestamp_text
from kops.core.statefile import Store
from kops.formats.streams import session_keys, window_keys

SUFFIXES = {"window": 12, "sliding-window": 12, "session": 16}
"""Bytes that follow the application's key: ``WindowKeySchema.toStoreKeyBinary``, ``SessionKeySchema.toBinary``."""
NOTHING_AROUND: dict[str, Any] = {}


@dataclass(frozen=True)
class StoredKey:
    """What the key of a changelog record holds.

    :param inner: bytes of the application's own key
    :param around: ``window_start`` and ``window_end`` as ISO 8601, in stores that have them
    """

    inner: bytes
    around: dict[str, Any]


def store_type(store: Store) -> str:
    """Return the type of a store, as the state file names it."""
    return str(getattr(store, "type", "key-value"))


def suffix_length(kind: str) -> int:
    """Return how many bytes follow the application's key in stores of a type."""
    return SUFFIXES.get(kind, 0)


def stored_key(kind: str, data: bytes, size_ms: int | None = None) -> StoredKey:
    """Return what the key of a changelog record holds; bytes that are too few for a window are shown as they are.

    :param kind: the type of the store
    :param size_ms: of its windows; None when it is not known
    """
    try:
        if kind in ("window", "sliding-window"):
            window = window_keys.decode(data)
            end = timestamp_text(window_keys.end_of(window.start_ms, size_ms)) if size_ms is not None else None
            return StoredKey(window.key, {"window_start": timestamp_text(window.start_ms), "window_end": end})
        if kind == "session":
            session = session_keys.decode(data)
            return StoredKey(session.key, {"window_start": timestamp_text(session.start_ms), "window_end": timestamp_text(session.end_ms)})
    except UndecodableRecord:
        return StoredKey(data, {"window_start": None, "window_end": None})
    return StoredKey(data, NOTHING_AROUND)


def window_size(store: Store) -> int | None:
    """Return the size of a store's windows in milliseconds, where the state file says it."""
    window = getattr(store, "window", None)
    size = getattr(window, "size_ms", None)
    return int(size) if size is not None else None

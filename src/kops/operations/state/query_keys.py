"""The keys of a changelog as a person asks for them: the application's own key, and the window or session around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kops.core.errors import UndecodableRecord
from kops.core.statefile import Store
from kops.core.statefile.models import SLIDING, WINDOW
from kops.operations.changelog.layouts import KEY_VALUE, LAYOUTS, Layout


@dataclass(frozen=True)
class StoredKey:
    """What the key of a changelog record holds.

    :param inner: bytes of the application's own key
    :param around: the window's or session's bounds, in stores that have them
    """

    inner: bytes
    around: dict[str, Any]


def layout_of(kind: str) -> Layout:
    """Return how the keys of a type of store, as a state file names it, are made."""
    return LAYOUTS.get(WINDOW if kind == SLIDING else kind, KEY_VALUE)


def suffix_length(kind: str) -> int:
    """Return how many bytes follow the application's key in stores of a type."""
    return layout_of(kind).suffix


def stored_key(kind: str, data: bytes, size_ms: int | None = None) -> StoredKey:
    """Return what the key of a changelog record holds; bytes that are too few for a window are shown as they are.

    :param kind: the type of the store
    :param size_ms: of its windows; None when it is not known
    """
    layout = layout_of(kind)
    inner = layout.inner(data)
    if inner is None:
        return StoredKey(data, {})
    try:
        return StoredKey(inner, layout.columns(data, size_ms))
    except UndecodableRecord:
        return StoredKey(data, {})


def version_of(key: bytes, value: bytes) -> tuple[bytes, bytes | None]:
    """Return the key and the value of a versioned store's row (``kops.spark.stores.versioned``)."""
    return key[:-8], value[1:] if value[:1] == b"\x01" else None


def window_size(store: Store) -> int | None:
    """Return the size of a store's windows in milliseconds; of a session, which has no size, the gap, which nobody asks for."""
    return store.window.size_ms if store.window is not None else None

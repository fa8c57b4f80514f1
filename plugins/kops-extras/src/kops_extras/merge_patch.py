"""A reducer that merges all JSON values of a key (RFC 7396, JSON Merge Patch). Standard library only, because executors import it."""

from __future__ import annotations

from typing import Any


def merge_patch(_key: Any, patch: Any, document: Any) -> Any:
    """Return the document after a patch; ``None`` deletes the key.

    :param patch: what the JSON value of the record decodes to
    :param document: the result so far, not modified; ``None`` before the first record
    """
    if not isinstance(patch, dict):
        return patch
    merged = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(_key, value, merged.get(name))
    return merged

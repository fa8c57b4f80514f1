"""Keys and values of a store as JSON holds them, whatever bytes they are."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from kops.core.errors import UndecodableRecord
from kops.formats.base import Format, as_text_or_base64


def shown(form: Format, data: Any) -> Any:
    """Return bytes decoded, or as text or base64 when they are not of the format: a wrong changelog may hold anything."""
    if data is None:
        return None
    try:
        return form.show(form.decode(bytes(data)))
    except UndecodableRecord:
        return as_text_or_base64(bytes(data))


def as_base64(data: Any) -> Any:
    """Return bytes as base64, saying so."""
    return {"data": b64encode(bytes(data)).decode(), "encoding": "base64"}

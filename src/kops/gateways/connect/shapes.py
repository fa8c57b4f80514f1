"""Parsers of Connect's answers. An unexpected answer becomes an error that shows it, never a KeyError later."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kops.core.errors import OperationFailed

T = TypeVar("T")
_LONGEST = 120


def shaped(url: str, request: str, body: Any, read: Callable[[Any], T]) -> T:
    """Parse the JSON of an answer.

    :param url: without credentials
    :param request: method and path
    :raises OperationFailed: when ``read`` cannot parse it
    """
    try:
        return read(body)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as broken:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        raise OperationFailed(
            f"Connect at {url} answers {request} in an unexpected format: {shown}",
            hint="check connect_urls of the context; `kops connect workers` shows the version of each worker",
        ) from broken


def mapping_of(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise TypeError("not an object")
    return body


def objects_with(key: str) -> Callable[[Any], list[dict[str, Any]]]:
    """Return a parser for a list of JSON objects, each with this key."""

    def read(body: Any) -> list[dict[str, Any]]:
        if not isinstance(body, list):
            raise TypeError("not a list")
        for each in body:
            mapping_of(each)[key]
        return body

    return read


def offsets_of(body: Any) -> list[dict[str, Any]]:
    """Parse ``GET /connectors/NAME/offsets``. Partitions and offsets are objects whose content is up to the plugin."""
    found = objects_with("partition")(mapping_of(body).get("offsets") or [])
    for one in found:
        mapping_of(one["partition"])
        if one.get("offset") is not None:
            mapping_of(one["offset"])
    return found


def loggers_of(body: Any) -> dict[str, dict[str, Any]]:
    """Parse ``GET /admin/loggers``: loggers by name, each with its ``level``."""
    for each in mapping_of(body).values():
        mapping_of(each)["level"]
    return mapping_of(body)


def validation_of(body: Any) -> dict[str, Any]:
    """Parse ``PUT .../config/validate``: ``configs``, each with the ``definition`` of a setting."""
    for each in objects_with("definition")(mapping_of(body).get("configs") or []):
        mapping_of(each["definition"])["name"]
    return mapping_of(body)


def message_of(body: Any) -> str:
    """Return Connect's ``message``; empty if there is none."""
    return str(body.get("message", "")) if isinstance(body, Mapping) else ""

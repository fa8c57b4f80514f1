"""What two versions of a JSON Schema do not have in common, by property, for a registry that only says that they are incompatible. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_LIMITS = ("enum", "const", "minimum", "maximum", "minLength", "maxLength", "pattern", "additionalProperties")


def json_schema_differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield what a new version changes that readers or writers of the old one may not bear, a sentence each.

    :param old: a schema, parsed; ``$ref`` is not followed
    """
    where = path or "the value"
    if not isinstance(old, dict) or not isinstance(new, dict):
        if old != new:
            yield f"{where}: was {json.dumps(old)[:60]}, and is {json.dumps(new)[:60]}"
        return
    before, after = old.get("type"), new.get("type")
    if before != after:
        yield f"{where}: the type was {_words(before)}, and is {_words(after)}"
        return
    yield from _of_properties(old, new, path)
    if isinstance(old.get("items"), dict) and isinstance(new.get("items"), dict):
        yield from json_schema_differences(old["items"], new["items"], f"{path}[]")
    for word in _LIMITS:
        if old.get(word) != new.get(word):
            yield f"{where}: {word} was {_words(old.get(word))}, and is {_words(new.get(word))}"


def _of_properties(old: Any, new: Any, path: str) -> Iterator[str]:
    known, now = _properties(old), _properties(new)
    needed, needed_now = set(old.get("required") or ()), set(new.get("required") or ())
    yield from (f"{_joined(path, name)}: is required now" for name in sorted(needed_now - needed))
    yield from (f"{_joined(path, name)}: is no longer required" for name in sorted(needed - needed_now))
    for name in known:
        if name in now:
            yield from json_schema_differences(known[name], now[name], _joined(path, name))
        else:
            yield f"{_joined(path, name)}: the property is gone" + _closed(new)
    yield from (f"{_joined(path, name)}: the property is new" + _closed(old) for name in now if name not in known)


def _properties(schema: Any) -> dict[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _closed(schema: Any) -> str:
    return ", and further properties are not allowed" if schema.get("additionalProperties") is False else ""


def _words(value: Any) -> str:
    return "not said" if value is None else json.dumps(value, ensure_ascii=False)[:60]


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name

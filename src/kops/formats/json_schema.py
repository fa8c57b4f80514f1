"""Checks JSON against a JSON Schema: the keywords that schemas of records use (drafts 4 to 2020-12). Pure.

``format``, ``contentEncoding`` and other annotations are not checked, nor is ``unevaluatedProperties``; what a reference names is looked
up in the schema itself and in those that it was registered with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kops.core.errors import OperationFailed
from kops.formats.ecma_patterns import UncheckedPattern, matches

_MOST_DEPTH = 200


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _is_number(value) and float(value).is_integer(),
    "number": _is_number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


class JsonChecker:
    """A JSON Schema, parsed once.

    :param text: JSON
    :param referenced: name and text of the schemas that it refers to
    :raises OperationFailed: when it is no JSON Schema
    """

    def __init__(self, text: str, referenced: Sequence[tuple[str, str]] = ()) -> None:
        try:
            self._root = json.loads(text)
            self._others = {name: json.loads(each) for name, each in referenced}
            declared = list(_declared(self._root, ""))
        except (ValueError, RecursionError) as wrong:
            raise OperationFailed(f"no JSON Schema that can be read: {wrong}") from wrong
        if not isinstance(self._root, (dict, bool)):
            raise OperationFailed("no JSON Schema: it is neither an object nor true or false")
        for place, kinds in declared:
            unknown = [kind for kind in kinds if not isinstance(kind, str) or kind not in _TYPES]
            if unknown:
                raise OperationFailed(f"no JSON Schema: {place or 'its top'} has the type {json.dumps(unknown[0])}")

    def problems(self, value: Any) -> list[str]:
        """Return what is wrong with a value, a sentence each; none when it fits."""
        try:
            return list(self._check(value, self._root, self._root, "", 0))
        except RecursionError:
            return ["the value is nested too deep"]

    def _check(self, value: Any, schema: Any, root: Any, path: str, depth: int) -> Iterator[str]:
        where = path or "the value"
        if schema is True or schema == {}:
            return
        if schema is False:
            yield f"{where} may not be there"
            return
        if depth > _MOST_DEPTH:
            yield f"{where} is nested too deep"
            return
        if "$ref" in schema:
            target, of = self._resolve(str(schema["$ref"]), root)
            yield from self._check(value, target, of, path, depth + 1)
        kinds = schema.get("type")
        names = [kinds] if isinstance(kinds, str) else kinds or []
        if names and not any(_TYPES[name](value) for name in names):
            yield f"{where} is {_kind(value)}, not {' or '.join(names)}"
            return
        if "enum" in schema and not any(_equal(value, each) for each in schema["enum"]):
            yield f"{where} is {_short(value)}, none of {_short(schema['enum'])}"
        if "const" in schema and not _equal(value, schema["const"]):
            yield f"{where} is {_short(value)}, not {_short(schema['const'])}"
        if _is_number(value):
            yield from _number(value, schema, where)
        elif isinstance(value, str):
            yield from _text(value, schema, where)
        elif isinstance(value, list):
            yield from self._array(value, schema, root, path, depth)
        elif isinstance(value, dict):
            yield from self._object(value, schema, root, path, depth)
        yield from self._combined(value, schema, root, path, depth)

    def _combined(self, value: Any, schema: Any, root: Any, path: str, depth: int) -> Iterator[str]:
        where = path or "the value"
        for each in schema.get("allOf", ()):
            yield from self._check(value, each, root, path, depth + 1)
        for word in ("anyOf", "oneOf"):
            if word not in schema:
                continue
            found = [list(self._check(value, each, root, path, depth + 1)) for each in schema[word]]
            fitting = sum(not problems for problems in found)
            if not fitting:
                nearest = min(found, key=len, default=[])
                yield f"{where} fits none of {word}" + (f": {nearest[0]}" if nearest else "")
            elif word == "oneOf" and fitting > 1:
                yield f"{where} fits {fitting} of oneOf, not one"
        if "not" in schema and not list(self._check(value, schema["not"], root, path, depth + 1)):
            yield f"{where} fits what it may not"
        if "if" in schema:
            fits = not list(self._check(value, schema["if"], root, path, depth + 1))
            yield from self._check(value, schema.get("then" if fits else "else", True), root, path, depth + 1)

    def _array(self, value: list[Any], schema: Any, root: Any, path: str, depth: int) -> Iterator[str]:
        where = path or "the value"
        if len(value) < schema.get("minItems", 0) or len(value) > schema.get("maxItems", len(value)):
            yield f"{where} has {len(value)} items"
        if schema.get("uniqueItems") and any(_equal(one, other) for at, one in enumerate(value) for other in value[:at]):
            yield f"{where} has an item twice"
        items = schema.get("items", True)
        first = schema.get("prefixItems") or (items if isinstance(items, list) else [])
        rest = schema.get("additionalItems", True) if isinstance(items, list) else items
        for at, each in enumerate(value):
            yield from self._check(each, first[at] if at < len(first) else rest, root, f"{path}[{at}]", depth + 1)

    def _object(self, value: dict[str, Any], schema: Any, root: Any, path: str, depth: int) -> Iterator[str]:
        where = path or "the value"
        for name in schema.get("required", ()) if isinstance(schema.get("required"), list) else ():
            if name not in value:
                yield f"{_joined(path, name)} is missing"
        if len(value) < schema.get("minProperties", 0) or len(value) > schema.get("maxProperties", len(value)):
            yield f"{where} has {len(value)} properties"
        properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, each in value.items():
            place = _joined(path, name)
            try:
                matching = [part for pattern, part in patterns.items() if matches(pattern, name)]
            except UncheckedPattern as unchecked:
                yield f"{place} cannot be checked against the patterns {', '.join(patterns)}: {unchecked}"
                continue
            known = [*([properties[name]] if name in properties else []), *matching]
            if not known:
                extra = schema.get("additionalProperties", True)
                if extra is False:
                    yield f"{place} is not in the schema"
                    continue
                known = [extra]
            for part in known:
                yield from self._check(each, part, root, place, depth + 1)

    def _resolve(self, reference: str, root: Any) -> tuple[Any, Any]:
        name, _, pointer = reference.partition("#")
        found = of = root if not name or (isinstance(root, dict) and name == root.get("$id")) else self._others.get(name)
        if found is None:
            raise OperationFailed(f"the JSON Schema refers to {reference}, which it was not registered with")
        for step in (part for part in pointer.split("/") if part):
            step = step.replace("~1", "/").replace("~0", "~")  # noqa: PLW2901 - RFC 6901
            if isinstance(found, list) and step.isdigit() and int(step) < len(found):
                found = found[int(step)]
            elif isinstance(found, dict) and step in found:
                found = found[step]
            else:
                raise OperationFailed(f"the JSON Schema refers to {reference}, which it does not have")
        return found, of


def _declared(schema: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield the types that a schema and its properties declare."""
    if not isinstance(schema, dict):
        return
    kinds = schema.get("type")
    if kinds is not None:
        yield place, [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else [kinds]
    properties = schema.get("properties")
    for name, each in properties.items() if isinstance(properties, dict) else ():
        yield from _declared(each, _joined(place, name))
    if isinstance(schema.get("items"), dict):
        yield from _declared(schema["items"], f"{place}[]")


def _number(value: Any, schema: Any, where: str) -> Iterator[str]:
    for word, sign, what in (("inimum", 1, "small"), ("aximum", -1, "large")):
        bound, exclusive = schema.get(f"m{word}"), schema.get(f"exclusiveM{word}")
        if exclusive is True:  # draft 4 has a boolean beside the bound
            bound, exclusive = None, bound
        beyond = [sign * value < sign * bound] if bound is not None else []
        beyond += [sign * value <= sign * exclusive] if _is_number(exclusive) else []
        if any(beyond):
            yield f"{where} is {_short(value)}, which is too {what}"
    step = schema.get("multipleOf")
    if step and abs(value / step - round(value / step)) > 1e-9:  # noqa: PLR2004 - 0.3 is a multiple of 0.1
        yield f"{where} is {_short(value)}, no multiple of {step}"


def _text(value: str, schema: Any, where: str) -> Iterator[str]:
    if len(value) < schema.get("minLength", 0) or len(value) > schema.get("maxLength", len(value)):
        yield f"{where} has {len(value)} characters"
    if "pattern" in schema:
        try:
            if not matches(schema["pattern"], value):
                yield f"{where} is {_short(value)}, which {schema['pattern']} does not match"
        except UncheckedPattern as unchecked:
            yield f"{where} cannot be checked against the pattern {schema['pattern']}: {unchecked}"


def _equal(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _kind(value: Any) -> str:
    return next(name for name in ("null", "boolean", "integer", "number", "string", "array", "object") if _TYPES[name](value))


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}..."  # noqa: PLR2004 - enough to know it again

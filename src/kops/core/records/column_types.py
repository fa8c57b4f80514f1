"""Types of the columns of decoded records, merged from several schemas. Pure.

A type is the name of a scalar type of Spark SQL, or a list, a map or a struct of types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

NOTHING = "void"
"""The type of values that are always null."""
_WIDER = {
    frozenset(("int", "bigint")): "bigint",
    frozenset(("int", "float")): "double",
    frozenset(("int", "double")): "double",
    frozenset(("bigint", "float")): "double",
    frozenset(("bigint", "double")): "double",
    frozenset(("float", "double")): "double",
}


@dataclass(frozen=True)
class ListOf:
    """An array."""

    item: Type


@dataclass(frozen=True)
class MapOf:
    """A map with string keys."""

    value: Type


@dataclass(frozen=True)
class Struct:
    """Fields by name, in order."""

    fields: Mapping[str, Type]


Type: TypeAlias = "str | ListOf | MapOf | Struct"


class Disagreement(ValueError):
    """Schemas that cannot be merged into one column; the message names the field."""


def merged(one: Type, other: Type, path: str = "") -> Type:
    """Return the type that can hold both: all fields of structs, the wider of two numbers.

    :raises Disagreement: naming the field for which there is none
    """
    if other in (one, NOTHING):
        return one
    if one == NOTHING:
        return other
    if isinstance(one, Struct) and isinstance(other, Struct):
        fields = dict(one.fields)
        for name, kind in other.fields.items():
            fields[name] = merged(fields[name], kind, f"{path}.{name}" if path else name) if name in fields else kind
        return Struct(fields)
    if isinstance(one, ListOf) and isinstance(other, ListOf):
        return ListOf(merged(one.item, other.item, f"{path}[]"))
    if isinstance(one, MapOf) and isinstance(other, MapOf):
        return MapOf(merged(one.value, other.value, f"{path}{{}}"))
    wider = _WIDER.get(frozenset((one, other))) if isinstance(one, str) and isinstance(other, str) else None
    if wider is None:
        raise Disagreement(f"{path or 'the value'} is {ddl(one)} in one schema and {ddl(other)} in another")
    return wider


def ddl(kind: Type) -> str:
    """Return a type in Spark's DDL; a column that is always null becomes ``string``."""
    if isinstance(kind, Struct):
        return f"struct<{', '.join(f'`{name}`: {ddl(each)}' for name, each in kind.fields.items())}>"
    if isinstance(kind, ListOf):
        return f"array<{ddl(kind.item)}>"
    if isinstance(kind, MapOf):
        return f"map<string, {ddl(kind.value)}>"
    return "string" if kind == NOTHING else kind

"""Filters on records: ``key=abc``, ``value.price>100``, ``header.trace-id~^a``, ``value=null``. Pure.

::

    filter   = field operator operand
    field    = "key" path | "value" path | "header." name | "partition" | "offset" | "timestamp"
    path     = ("." name | "[" number "]")*            into JSON, Avro and other structured values
    name     = characters without . [ = ! ~ < >        or any in double quotes
    operator = "=" | "!=" | "~" | "!~" | ">" | ">=" | "<" | "<="
    operand  = null | JSON text in double quotes | any other text

``=`` compares strings as they are, numbers as numbers and booleans as booleans. Numbers are compared exactly, with all their digits;
floating-point numbers (``double``, Avro's ``float``) as the decimals that are shown for them. ``null`` is a tombstone, a record without a
key, a header without a value, or a path that leads nowhere. ``~`` searches for a regular expression. ``<`` compares as numbers, or as
strings if the operand is not a number. Of a name that its object repeats, and of a header, any value may match. A missing value matches
only ``=null`` and the negations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import ge, gt, le, lt
from typing import Any, Protocol, TypeAlias

from kops.core.errors import UsageProblem
from kops.core.json_values import RepeatedNames, WrittenNumber, read_json, write_json

HINT = "write it like key=abc, key~^a.*z$, value.price>100, value.items[0].id!=7, header.trace-id=abc or value=null"
PARTS = ("key", "value")
NUMBERS = ("partition", "offset", "timestamp")
_NAME = r'(?:[^.\[\]=!~<>"]+|"(?:[^"\\]|\\.)*")'
_FILTER = re.compile(
    rf"(?P<field>key|value|header\.(?P<header>[^=!~<>\"]+|\"(?:[^\"\\]|\\.)*\")|partition|offset|timestamp)"
    rf"(?P<path>(?:\.{_NAME}|\[\d{{1,9}}\])*)(?P<operator>!=|!~|>=|<=|=|~|>|<)(?P<operand>.*)",
    re.DOTALL,
)
_ORDERS = {">": gt, ">=": ge, "<": lt, "<=": le}
_STEP = re.compile(rf"\.({_NAME})|\[(\d+)\]")
Step: TypeAlias = str | int


class Subject(Protocol):
    """A record as filters see it. Values are requested only if a filter needs them."""

    def part(self, name: str) -> Any:
        """Return the whole ``key`` or ``value`` as a JSON value, None if the record has none; or a number by its name."""

    def inside(self, name: str) -> Any:
        """Return the ``key`` or ``value`` that paths lead into, parsed if it is JSON."""

    def headers(self, name: str) -> Iterable[str | None]:
        """Return the values of all headers with this name."""


@dataclass(frozen=True)
class Filter:
    """One condition.

    :param field: key, value, header, partition, offset or timestamp
    :param path: steps into the value; for ``header``, only its name
    :param operand: text; None for null
    """

    field: str
    path: tuple[Step, ...]
    operator: str
    operand: str | None


def parse_filter(text: str) -> Filter:
    """Parse a filter.

    :raises UsageProblem: if it is not valid
    """
    match = _FILTER.fullmatch(text)
    if match is None:
        raise UsageProblem(f"{text!r} is not a valid filter", hint=HINT)
    field, operator, typed = match["field"], match["operator"], match["operand"]
    operand = None if typed == "null" else _operand(typed)
    path = tuple(_unquoted(name) if name else int(number) for name, number in _STEP.findall(match["path"]))
    if match["header"]:
        field, path = "header", (_unquoted(match["header"]),)
    if operand is None and operator not in ("=", "!="):
        raise UsageProblem(
            f"{text!r} is not a valid filter: null is compared with = and != only", hint=f'for the text write "null"; {HINT}'
        )
    if field in NUMBERS and (path or operator.endswith("~") or operand is None or _number(operand) is None):
        raise UsageProblem(
            f"{text!r} is not a valid filter: {field} is compared with numbers", hint=f"write it like {field}>=10; times are for --range"
        )
    if operator.endswith("~"):
        try:
            re.compile(operand or "")
        except re.error as error:
            raise UsageProblem(f"{text!r} has no regular expression: {error}", hint=HINT) from error
    return Filter(field, path, operator, operand)


def compile_filters(filters: Sequence[Filter]) -> Callable[[Subject], bool]:
    """Return a function that tests whether a record matches all filters."""
    tests = [_compiled(one) for one in filters]
    return lambda subject: all(test(subject) for test in tests)


def text_of(value: Any) -> str:
    """Return a value as the string that filters compare: a string as it is, anything else as compact JSON."""
    return value if isinstance(value, str) else write_json(value, compact=True)


def _compiled(one: Filter) -> Callable[[Subject], bool]:
    negated, holds, found = one.operator.startswith("!"), _test(one), _values(one)
    if found is None:
        return lambda subject: holds(subject.part(one.field)) is not negated
    if one.operand is None:
        return lambda subject: all(value is None for value in found(subject)) is not negated
    return lambda subject: any(holds(value) for value in found(subject)) is not negated


def _values(one: Filter) -> Callable[[Subject], Iterable[Any]] | None:
    """Return a function that yields the values of a header or a path; None for a part that always has a single value."""
    if one.field == "header":
        name = str(one.path[0])
        return lambda subject: subject.headers(name)
    return (lambda subject: _at(subject.inside(one.field), one.path)) if one.path else None


def _test(one: Filter) -> Callable[[Any], bool]:
    """Return the test for a value, ignoring negation."""
    operand, operator = one.operand, one.operator.removeprefix("!")
    if operand is None:
        return lambda value: value is None
    if operator == "~":
        search = re.compile(operand).search
        return lambda value: value is not None and search(text_of(value)) is not None
    number = _number(operand)
    if operator == "=":
        return lambda value: value is not None and (_exact(value) == number if _is_number(value) else text_of(value) == operand)
    return lambda value: _ordered(value, operator, operand, number)


def _ordered(value: Any, operator: str, operand: str, number: Decimal | int | None) -> bool:
    left: Any = _exact(value)
    right: Any = number if number is not None else operand
    if isinstance(value, str) and number is not None:
        left = _number(value)
    if left is None or _is_number(left) != _is_number(right) or not isinstance(left, (int, Decimal, str)) or isinstance(left, bool):
        return False
    return bool(_ORDERS[operator](left, right))


def _exact(value: Any) -> Any:
    """Return a floating-point number as the decimal that is shown for it, any other value as it is."""
    return Decimal(repr(value)) if isinstance(value, float) else value


def _at(value: Any, path: Sequence[Step]) -> list[Any]:
    """Return the values at a path: none, one, or several if an object repeats the name."""
    found = [value]
    for step in path:
        found = [inner for outer in found for inner in _one_step(outer, step)]
    return found


def _one_step(value: Any, step: Step) -> list[Any]:
    if isinstance(step, str) and isinstance(value, dict):
        if isinstance(value, RepeatedNames):
            return [inner for name, inner in value.items() if name == step]
        return [value[step]] if step in value else []
    return [value[step]] if isinstance(step, int) and isinstance(value, list) and step < len(value) else []


def _unquoted(text: str) -> str:
    if len(text) > 1 and text.startswith('"') and text.endswith('"'):
        try:
            return str(read_json(text))
        except ValueError as error:
            raise UsageProblem(f"{text} is not a valid quoted string: {error}", hint=HINT) from error
    return text


def _operand(text: str) -> str:
    """Remove the quotes of a JSON string; other texts that begin and end with quotes are left as they are."""
    try:
        return _unquoted(text)
    except UsageProblem:
        return text


def _number(text: str) -> int | Decimal | None:
    """Parse a number exactly; None if the text is not a number."""
    if re.fullmatch(r"[-+]?\d{1,40}", text, re.ASCII):
        return int(text)
    try:
        return WrittenNumber(text) if re.fullmatch(r"[-+]?(\d+\.\d*|\.?\d+)([eE][-+]?\d+)?", text, re.ASCII) else None
    except ValueError:
        return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)

"""JSON without loss: numbers keep their digits and objects their repeated names, from reading to writing. Pure.

A number without fraction and exponent is an ``int`` of any size, any other a ``WrittenNumber``: a ``Decimal`` that is written as it was
read. An object in which a name occurs again is a ``RepeatedNames``: for a program it is the ``dict`` that Jackson makes of it, with the
last value of each name, and it is written with all of them.
"""

from __future__ import annotations

import decimal
import json
import re
import threading
import uuid
from typing import Any

_MINUS_ZERO = re.compile(r"-0(?![0-9.eE])")
_PLACE = uuid.uuid4().hex
"""Stands for a number while the standard library writes what is around it, which it does ten times as fast as any code in Python."""


class WrittenNumber(decimal.Decimal):
    """A number and its text.

    :raises ValueError: when the exponent is beyond that of any decimal (10^18), as Jackson refuses one beyond 2^31
    """

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> WrittenNumber:
        try:
            made = super().__new__(cls, text)
        except decimal.InvalidOperation:
            made = None
        if made is None or not made.is_finite():
            raise ValueError(f"the exponent of {text[:60]} is too large")
        made.text = text
        return made

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def __format__(self, form: str, *others: Any) -> str:
        return super().__format__(form, *others) if form else self.text

    def __reduce__(self) -> tuple[Any, ...]:
        return WrittenNumber, (self.text,)

    __hash__ = decimal.Decimal.__hash__


class RepeatedNames(dict[str, Any]):
    """An object that has a name more than once: a mapping to the last values, and ``items`` with all, in their order."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs

    def items(self) -> Any:
        return self.pairs

    def __reduce__(self) -> tuple[Any, ...]:
        return RepeatedNames, (self.pairs,)


def read_json(text: str) -> Any:
    """Return the value of a text.

    :raises ValueError: when it is not JSON
    :raises RecursionError: when it is nested too deep
    """
    try:
        return (_DECODER_OF_ZEROS if _MINUS_ZERO.search(text) else _DECODER).decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError as wrong:
        if "integer string conversion" not in str(wrong):
            raise
        return _DECODER_OF_ZEROS.decode(text)  # an integer of more digits than Python converts


def write_json(value: Any, *, compact: bool = False, indent: int | None = None) -> str:
    """Return the JSON of a value, which ``read_json`` may have returned.

    :param compact: without spaces
    :param indent: of nested values, each on a line of its own; None: all on one line
    :raises ValueError: for NaN and infinite numbers, and for a value that contains itself
    :raises TypeError: for what JSON cannot represent
    """
    return (_WRITERS.compact if compact else _WRITERS.spaced).write(value) if indent is None else _Writer(indent=indent).write(value)


class _Writer:
    """An encoder of its own thread: the numbers that it left out of a text belong to that text."""

    def __init__(self, **options: Any) -> None:
        self._numbers: list[str] = []
        self._encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=self._place, **options).encode

    def write(self, value: Any) -> str:
        self._numbers.clear()
        text = self._encode(value)
        if not self._numbers:
            return text
        first, *others = text.split(f'"{_PLACE}"')
        return first + "".join([part for pair in zip(self._numbers, others, strict=True) for part in pair])

    def _place(self, number: Any) -> str:
        if not isinstance(number, decimal.Decimal) or not number.is_finite():
            raise TypeError(f"{type(number).__name__} is not JSON")
        self._numbers.append(str(number))
        return _PLACE


class _Writers(threading.local):
    def __init__(self) -> None:
        self.spaced = _Writer()
        self.compact = _Writer(separators=(",", ":"))


_WRITERS = _Writers()


def _integer(text: str) -> int | WrittenNumber:
    return WrittenNumber(text) if text == "-0" or len(text) > 4000 else int(text)  # noqa: PLR2004 - below what Python converts


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else RepeatedNames(pairs)


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


_OPTIONS: dict[str, Any] = {"object_pairs_hook": _object, "parse_float": WrittenNumber, "parse_constant": _no_constant}
_DECODER = json.JSONDecoder(**_OPTIONS)
_DECODER_OF_ZEROS = json.JSONDecoder(parse_int=_integer, **_OPTIONS)

"""Aggregates in Python, one step per record, as in the aggregators, reducers and mergers of Kafka Streams.

For sessions and sliding windows, whose bounds depend on the records, and for windows whose value may be deleted in between.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kops.core.errors import ConfigError
from kops.core.statefile import Aggregation, Form, Store

PASSES_NULLS = ("sum", "min", "max", "reducer")
"""Aggregates whose treatment of null values is up to the application."""


@dataclass(frozen=True)
class Steps:
    """An aggregate over values as Spark represents them.

    :param initial: returns the aggregate before the first record; ``None`` if the first record initializes it
    :param add: ``(key, value, aggregate) -> aggregate``; ``None`` deletes
    :param merge: of two sessions: ``(key, one, two) -> aggregate``
    :param encode: serializes an aggregate that is not ``None``
    :param deletes: an aggregate may become ``None`` again
    """

    initial: Callable[[], Any]
    add: Callable[[bytes, Any, Any], Any]
    merge: Callable[[bytes, Any, Any], Any]
    encode: Callable[[Any], bytes]
    deletes: bool = False


def steps_of(store: Store, value_type: str) -> Steps:
    """Return the aggregate of a store.

    :param value_type: the Spark type of the values
    :raises ConfigError: when a reducer does not exist
    """
    aggregate = store.aggregate
    if aggregate.kind == "count":
        return Steps(lambda: 0, lambda _key, _value, count: count + 1, lambda _key, one, two: one + two, struct.Struct(">q").pack)
    if aggregate.kind == "sum":
        return _sum(aggregate.form)
    if aggregate.kind == "reducer":
        return _reducer(store)
    choose = _CHOICES.get(aggregate.kind) or _extreme(aggregate)
    return Steps(
        lambda: None,
        _reducing(choose),
        lambda key, one, two: _reducing(choose)(key, two, one),
        _encoder(aggregate.form, value_type),
        deletes=aggregate.kind in _CHOICES,
    )


def _reducing(choose: Callable[[Any, Any], Any]) -> Callable[[bytes, Any, Any], Any]:
    """Return ``reduce`` as an aggregator: the first value is the aggregate (``SessionWindowedKStreamImpl.aggregatorFromReducer``)."""
    return lambda _key, value, aggregate: value if aggregate is None else choose(aggregate, value)


_CHOICES: dict[str, Callable[[Any, Any], Any]] = {"last": lambda _old, new: new, "first": lambda old, _new: old}


def _sum(form: Form) -> Steps:
    if form.name == "float":
        return _float_sum()
    if form.name == "double":
        return Steps(lambda: 0.0, lambda _key, value, total: total + value, lambda _key, one, two: one + two, _double)
    code = {"long": "q", "int": "i", "short": "h"}[form.name]
    width = struct.calcsize(code) * 8

    def wrapped(total: int) -> bytes:
        return (total & ((1 << width) - 1)).to_bytes(width // 8, "big")

    return Steps(lambda: 0, lambda _key, value, total: total + value, lambda _key, one, two: one + two, wrapped)


def _double(value: float) -> bytes:
    """Return the bytes of ``Double.doubleToLongBits``, which has one NaN."""
    return struct.pack(">d", value) if value == value else b"\x7f\xf8" + bytes(6)  # noqa: PLR0124 - a NaN is not itself


def _float_sum() -> Steps:
    import numpy

    def add(one: Any, two: Any) -> Any:
        with numpy.errstate(all="ignore"):
            return one + numpy.float32(two)

    return Steps(
        lambda: numpy.float32(0),
        lambda _key, value, total: add(total, value),
        lambda _key, one, two: add(one, two),
        lambda total: bytes(numpy.array(total, ">f4").tobytes()),
    )


def _extreme(aggregate: Aggregation) -> Callable[[Any, Any], Any]:
    """Return ``Math.min`` or ``Math.max``, for strings by ``String.compareTo``; of equal values the first is kept."""
    if aggregate.form.name == "string":
        return _by(lambda text: text.encode("utf-16-be", "surrogatepass"), aggregate.kind)
    if aggregate.form.name in ("double", "float"):
        return _floating(aggregate.kind)
    return _by(lambda number: number, aggregate.kind)


def _by(order: Callable[[Any], Any], kind: str) -> Callable[[Any, Any], Any]:
    if kind == "min":
        return lambda old, new: new if order(new) < order(old) else old
    return lambda old, new: new if order(new) > order(old) else old


def _floating(kind: str) -> Callable[[Any, Any], Any]:
    from math import copysign, isnan

    choose = _by(lambda number: (number, copysign(1.0, number)), kind)

    def extreme(old: float, new: float) -> float:
        return float("nan") if isnan(old) or isnan(new) else choose(old, new)

    return extreme


def _encoder(form: Form, value_type: str) -> Callable[[Any], bytes]:
    """Return a serializer for values of a Spark type, as in ``kops.spark.reading.codec.encoding``."""
    if value_type == "binary":
        return bytes
    if form.name == "double":
        return _double
    if form.name == "uuid":
        return lambda text: str(text).lower().encode()
    codes = {"long": ">q", "int": ">i", "short": ">h", "float": ">f"}
    if form.name in codes:
        return struct.Struct(codes[form.name]).pack
    return lambda text: str(text).encode()


def _reducer(store: Store) -> Steps:
    """Return the steps of a reducer; a plain function merges two sessions like ``reduce``, an object by its own ``merge``."""
    from kops.core.statefile.reducers import FunctionReducer, load_reducer
    from kops.plugins.loader import format_of

    reducer = load_reducer(store.aggregate.expression)
    keys, values, results = format_of(store.key_form), format_of(store.source.value), format_of(store.aggregate.form)
    merge = getattr(reducer, "merge", None)

    def merged(key: bytes, one: Any, two: Any) -> Any:
        if merge is not None:
            return merge(keys.decode(key), one, two)
        if not isinstance(reducer, FunctionReducer):
            raise ConfigError(
                f"the reducer {store.aggregate.expression} cannot merge two sessions",
                hint="give it merge(key, one, two), as the Merger of the application",
            )
        return two if one is None else reducer.add(keys.decode(key), two, one)

    def encoded(result: Any) -> bytes:
        return results.encode(result) or b""

    return Steps(
        reducer.initial,
        lambda key, value, aggregate: reducer.add(keys.decode(key), values.decode(bytes(value)), aggregate),
        merged,
        encoded,
        deletes=True,
    )

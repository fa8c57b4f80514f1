"""Reducers: an aggregation written in Python, one pure step per record, in the order of offsets.

A state file names one as ``aggregate: {reducer: NAME, as: double}``, where NAME is that of an installed plugin or
``module:attribute``. The attribute is a :class:`Reducer`, a class of one whose constructor needs no arguments, or a plain function
``(key, value, aggregate) -> aggregate``. Spark's executors import it again, so it must be importable there.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

from kops.core.errors import ConfigError


@runtime_checkable
class Reducer(Protocol):
    """An aggregation: where it starts, and how one record changes it. Both methods are pure; values are as the formats decode them."""

    def initial(self) -> Any:
        """Return the aggregate before the first record of a key; ``None`` if the first record alone decides."""

    def add(self, key: Any, value: Any, aggregate: Any) -> Any:
        """Return the aggregate after one record; ``None`` deletes the key.

        :param value: the record's value, never ``None``
        :param aggregate: must not be changed in place
        """


@runtime_checkable
class Subtractor(Reducer, Protocol):
    """A reducer that can also subtract a value, as a grouped table needs (``KGroupedTable``)."""

    def remove(self, key: Any, value: Any, aggregate: Any) -> Any:
        """Return the aggregate without a value that was added before; ``None`` deletes the key.

        :param aggregate: never ``None``; must not be changed in place
        """


@dataclass(frozen=True)
class FunctionReducer:
    """A plain function as a reducer that starts from nothing."""

    function: Callable[[Any, Any, Any], Any]

    def initial(self) -> Any:
        """Start from nothing: the first record alone decides."""
        return None

    def add(self, key: Any, value: Any, aggregate: Any) -> Any:
        return self.function(key, value, aggregate)


@dataclass(frozen=True)
class Aggregate:
    """What a store holds, or logged last, for a key.

    :param value: ``None`` for a tombstone
    :param timestamp: of the changelog record, milliseconds since the epoch
    """

    value: Any
    timestamp: int


def step(reducer: Reducer, key: Any, value: Any, timestamp: int, before: Aggregate | None) -> Aggregate | None:
    """Return the aggregate of a key after one input record.

    From ``KStreamAggregate`` and ``KStreamReduce`` of Kafka Streams: a null key or value is dropped; the first
    record starts from the initializer and sets its own timestamp, a later one sets the later of both; a result
    of ``None`` is a tombstone with the record's timestamp (``ChangeLoggingTimestampedKeyValueBytesStore``), and the
    record after it starts from the initializer again.

    :param before: ``None`` if the key was not seen before
    """
    if key is None or value is None:
        return before
    if before is None or before.value is None:
        aggregate, newest = reducer.initial(), timestamp
    else:
        aggregate, newest = before.value, max(timestamp, before.timestamp)
    after = reducer.add(key, value, aggregate)
    return Aggregate(after, timestamp if after is None else newest)


def fold(reducer: Reducer, key: Any, records: Iterable[tuple[Any, int]], before: Aggregate | None = None) -> Aggregate | None:
    """Return the aggregate of a key after all its records.

    :param records: value and timestamp, in the order of offsets
    """
    for value, timestamp in records:
        before = step(reducer, key, value, timestamp, before)
    return before


def as_reducer(thing: Any, name: str) -> Reducer:
    """Make a reducer from the object that an entry point or ``module:attribute`` refers to.

    :raises ConfigError: if it has none of the three forms
    """
    try:
        reducer = thing() if isinstance(thing, type) else thing
    except TypeError as needs_more:
        raise ConfigError(f"the reducer class {name} cannot be made without arguments: {needs_more}") from needs_more
    if isinstance(reducer, Reducer):
        return reducer
    if callable(reducer):
        return FunctionReducer(reducer)
    raise ConfigError(
        f"{name} is not a reducer but a {type(thing).__name__}",
        hint="give an object with initial() and add(key, value, aggregate), or a function (key, value, aggregate)",
    )


class ReducerWithSource(str):
    """The ``module:attribute`` of a reducer with the source code of its module, because executors cannot import that module.

    :param source: source code of the module
    """

    source: str

    @classmethod
    def of(cls, reference: str, source: str) -> ReducerWithSource:
        made = cls(reference)
        made.source = source
        return made

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        return ReducerWithSource.of, (str(self), self.source)


def _module_of(reference: str, name: str) -> Any:
    """Return the module of a reducer; if its source is carried along, the module is built from it once."""
    if not isinstance(reference, ReducerWithSource):
        return import_module(name)
    own = f"kops_reducers_beside.{name}_{zlib.crc32(reference.source.encode()):08x}"
    if own not in sys.modules:
        module = ModuleType(own)
        exec(compile(reference.source, f"{name}.py", "exec"), module.__dict__)  # noqa: S102 - the person's own reducer, as an import would
        sys.modules[own] = module
    return sys.modules[own]


def load_reducer(reference: str) -> Reducer:
    """Import the reducer that ``module:attribute`` names; executors call this too.

    :raises ConfigError: if there is no such module or attribute, or it is not a reducer
    """
    module, colon, attribute = reference.partition(":")
    if not (module and colon and attribute):
        raise ConfigError(f"{reference!r} does not name a reducer", hint="write it as module:attribute, such as my_reducers:highest")
    try:
        thing: Any = _module_of(reference, module)
        for part in attribute.split("."):
            thing = getattr(thing, part)
    except (ImportError, AttributeError) as missing:
        raise ConfigError(
            f"cannot import the reducer {reference}: {missing}",
            hint=f"put {module}.py next to the state file, or install it where kops runs and on Spark's executors",
        ) from missing
    return as_reducer(thing, reference)

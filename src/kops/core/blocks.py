"""Rows stored by column, for hundreds of thousands of rows that share most of their values. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, TypeAlias

Row: TypeAlias = Mapping[str, Any]

SIZE = 1_000
"""Rows per block when single rows are grouped."""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows with the same keys in the same order.

    :param length: number of rows
    :param common: all keys in order, with the values that all rows share
    :param each: the values that differ, by key
    """

    length: int
    common: Row
    each: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def column(self, key: str) -> Sequence[Any]:
        return self.each[key] if key in self.each else [self.common[key]] * self.length

    def rows(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.common, values, strict=True)) for values in zip(*map(self.column, self.common), strict=True))


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks that stand for a long list of rows in JSON output."""

    blocks: tuple[Block, ...]

    def rows(self) -> Iterator[dict[str, Any]]:
        return chain.from_iterable(block.rows() for block in self.blocks)


def blocks_of(rows: Iterable[Row]) -> Iterator[Block]:
    """Group rows into blocks; all rows have the same keys as the first one."""
    remaining = iter(rows)
    while some := list(islice(remaining, SIZE)):
        columns = zip(*(row.values() for row in some), strict=True)
        yield Block(len(some), some[0], dict(zip(some[0], columns, strict=True)))

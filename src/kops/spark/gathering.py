"""One row of each key, of the tables that a task reads one after another, without holding more than fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow

GATHERED_RECORDS = 1_000_000
"""Records that are added up at once; of half as many keys a task lets go, so it holds about 100 MB."""
GATHERED_BYTES = 128 << 20


def gathered(tables: Iterable[pyarrow.Table], merge: Callable[[pyarrow.Table], pyarrow.Table]) -> Iterator[pyarrow.Table]:
    """Merge tables into few, holding no more than fits.

    :param merge: makes one row of each key of a table
    """
    import pyarrow

    held: list[pyarrow.Table] = []
    for table in tables:
        held.append(table)
        if sum(each.num_rows for each in held) >= GATHERED_RECORDS or sum(each.nbytes for each in held) >= GATHERED_BYTES:
            merged = merge(pyarrow.concat_tables(held).combine_chunks())
            held = [merged]
            if merged.num_rows > GATHERED_RECORDS // 2 or merged.nbytes > GATHERED_BYTES // 2:
                yield merged
                held = []
    if held:
        yield merge(pyarrow.concat_tables(held).combine_chunks())


def newest_of_each_key(table: pyarrow.Table) -> pyarrow.Table:
    """Return the last row of each key; keys are not null."""
    import numpy
    import pyarrow

    numbered = pyarrow.table({"key": table["key"], "row": pyarrow.array(numpy.arange(table.num_rows))})
    last = numbered.group_by("key", use_threads=False).aggregate([("row", "max")])["row_max"]
    return table if len(last) == table.num_rows else table.take(last)

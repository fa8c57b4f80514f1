"""One row per key from the tables that a task reads one after another, within its memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow

GATHERED_RECORDS = 1_000_000
"""Records that are aggregated at once; a task passes on its rows once they have half as many keys, so it holds about 100 MB."""
GATHERED_BYTES = 128 << 20
WHOLE_RECORDS = 1_500_000
"""Maximum number of keys of a partition that a task holds at once."""
WHOLE_BYTES = 128 << 20


def gathered(tables: Iterable[pyarrow.Table], merge: Callable[[pyarrow.Table], pyarrow.Table]) -> Iterator[pyarrow.Table]:
    """Merge tables into few, within memory.

    :param merge: makes one row per key of a table
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


def whole(tables: Iterable[pyarrow.Table], merge: Callable[[pyarrow.Table], pyarrow.Table]) -> pyarrow.Table | None:
    """Merge all tables into one; None if it does not fit into memory.

    :param tables: at least one, possibly empty
    :param merge: makes one row per key of a table
    """
    import pyarrow

    held: list[pyarrow.Table] = []
    pending = merged_rows = 0
    for table in tables:
        held.append(table)
        pending += table.num_rows
        if pending >= max(GATHERED_RECORDS, merged_rows) or sum(each.nbytes for each in held) >= 2 * WHOLE_BYTES:
            held, pending = [merge(pyarrow.concat_tables(held).combine_chunks())], 0
            merged_rows = held[0].num_rows
            if merged_rows > WHOLE_RECORDS or held[0].nbytes > WHOLE_BYTES:
                return None
    found = merge(pyarrow.concat_tables(held).combine_chunks())
    return None if found.num_rows > WHOLE_RECORDS or found.nbytes > WHOLE_BYTES else found


def newest_of_each_key(table: pyarrow.Table) -> pyarrow.Table:
    """Return the last row of each key; keys are not null."""
    rows = row_of_each_key(table, ("key",), "max")
    return table if len(rows) == table.num_rows else table.take(rows["row_max"])


def row_of_each_key(table: pyarrow.Table, by: Sequence[str], which: str, *more: tuple[str, str]) -> pyarrow.Table:
    """Return the index of the first or last row of each key.

    :param by: the columns of the key
    :param which: ``min`` or ``max``
    :param more: further columns to aggregate, and how
    :return: ``by``, ``row_min`` or ``row_max``, and pyarrow's names for the others
    """
    import numpy
    import pyarrow

    numbered = table.select([*by, *(name for name, _ in more)]).append_column("row", pyarrow.array(numpy.arange(table.num_rows)))
    return numbered.group_by(list(by), use_threads=False).aggregate([("row", which), *more])

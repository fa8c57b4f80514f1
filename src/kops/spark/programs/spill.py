"""Rows of a task, in memory while they fit, else in a file that is divided by the hash of their keys.

They are read part by part. All rows of a key are in one part, in the order in which they were added; rows in memory are a single part.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING

from kops.formats.xxhash64_columns import binary_hashes
from kops.spark.programs.rows import rows_schema

if TYPE_CHECKING:
    import pyarrow

    Change = Callable[["pyarrow.Table"], "pyarrow.Table"]

LIMIT = 64 << 20
"""Bytes of rows that may stay in memory."""
PARTS = 64
"""Number of parts of a file: of 1 GB, each has 16 MB."""


class Spill:
    """Tables of rows by name.

    :param folder: on a disk: rows beyond ``LIMIT`` go into a file there, which has no name and disappears with the process
    :param merges: by name, the function that merges the rows of a key into one; None: each key has one row, or all of its rows count
    """

    def __init__(self, folder: str | Path, merges: Mapping[str, Change | None]) -> None:
        self._folder, self._merges = folder, merges
        self._held = {name: [rows_schema().empty_table()] for name in merges}
        self._bytes = 0
        self._file: IO[bytes] | None = None
        self._places: dict[str, list[list[tuple[int, int]]]] = {name: [[] for _ in range(PARTS)] for name in merges}

    @property
    def divided(self) -> bool:
        return self._file is not None

    def add(self, name: str, table: pyarrow.Table) -> None:
        self._held[name].append(table)
        self._bytes += table.nbytes
        if self._bytes > LIMIT:
            self._merge()
            if self._bytes > LIMIT // 2:
                self.divide()

    def rows(self, name: str) -> Rows:
        return Rows(self, lambda number: self._part(name, number))

    def divide(self) -> None:
        """Move all rows from memory into the file."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - it is open as long as this is needed
        self._file.seek(0, os.SEEK_END)
        for name in self._held:
            for number, part in enumerate(_divided(self._whole(name))):
                if part.num_rows:
                    content = part.combine_chunks().to_batches()[0].serialize()
                    self._places[name][number].append((self._file.tell(), content.size))
                    self._file.write(content)
            self._held[name] = [rows_schema().empty_table()]
        self._bytes = 0

    def _merge(self) -> None:
        for name, merge in self._merges.items():
            if merge is not None:
                self._whole(name)
        self._bytes = sum(table.nbytes for tables in self._held.values() for table in tables)

    def _whole(self, name: str) -> pyarrow.Table:
        """Return what is in memory, as one table from now on."""
        if len(self._held[name]) > 1:
            self._held[name] = [self._joined(name, self._held[name])]
        return self._held[name][0]

    def _part(self, name: str, number: int) -> pyarrow.Table:
        if self._file is None:
            return self._whole(name)
        if self._bytes:
            self.divide()
        return self._joined(name, [rows_schema().empty_table(), *_read(self._file, self._places[name][number])])

    def _joined(self, name: str, tables: Sequence[pyarrow.Table]) -> pyarrow.Table:
        import pyarrow

        merge, table = self._merges[name], pyarrow.concat_tables(tables).combine_chunks()
        return table if merge is None else merge(table)


class Rows:
    """Tables with the rows of the parts of a spill, each made when it is asked for; the only one is kept.

    :param make: makes that of a part
    """

    def __init__(self, spill: Spill, make: Callable[[int], pyarrow.Table]) -> None:
        self.spill, self._make = spill, make
        self._only: pyarrow.Table | None = None

    def __iter__(self) -> Iterator[pyarrow.Table]:
        for (table,) in zip_parts(self):
            yield table

    def part(self, number: int) -> pyarrow.Table:
        if self.spill.divided:
            self._only = None
            return self._make(number)
        if self._only is None:
            self._only = self._make(number)
        return self._only

    def map(self, change: Change) -> Rows:
        """Return the tables that something makes of these, looking at no other key than one's own."""
        return Rows(self.spill, lambda number: change(self.part(number)))


def zip_parts(*several: Rows) -> Iterator[tuple[pyarrow.Table, ...]]:
    """Yield the tables of each part: what they have of a key is in the same one."""
    divided = any(each.spill.divided for each in several)
    if divided:
        for each in several:
            if not each.spill.divided:
                each.spill.divide()
    for number in range(PARTS if divided else 1):
        yield tuple(each.part(number) for each in several)


def _read(file: IO[bytes], places: Sequence[tuple[int, int]]) -> Iterator[pyarrow.Table]:
    """Yield the tables that begin at some places, of these sizes."""
    import pyarrow
    from pyarrow import ipc

    for at, size in places:
        file.seek(at)
        yield pyarrow.Table.from_batches([ipc.read_record_batch(pyarrow.py_buffer(file.read(size)), rows_schema())])


def _divided(table: pyarrow.Table) -> Iterator[pyarrow.Table]:
    """Yield the rows of each part."""
    import numpy
    import pyarrow

    table = table.combine_chunks()
    numbers = (binary_hashes(table["key"].combine_chunks()) % PARTS).astype(numpy.uint8)
    order = numpy.argsort(numbers, kind="stable")
    ends = numpy.searchsorted(numbers[order], numpy.arange(PARTS + 1))
    for start, end in pairwise(ends.tolist()):
        yield table.take(pyarrow.array(order[start:end]))

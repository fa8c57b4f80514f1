"""What is written to changelogs, or what they hold: the last row of each key, and of versioned stores the versions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kops.spark.programs.spill import Rows, Spill
from kops.spark.programs.versions import Versions
from kops.spark.reading.gathering import newest_of_each_key

if TYPE_CHECKING:
    import pyarrow

    from kops.spark.programs.models import StoreTask


class Changelogs:
    """The changelogs of some stores.

    :param folder: on a disk, for what does not fit into memory
    :param repeating: those that may have several rows of a key, of which the last counts; versioned stores have all versions anyway
    """

    def __init__(self, folder: str | Path, stores: Sequence[StoreTask], repeating: Collection[str]) -> None:
        self._versions = {store.changelog: Versions(store.history_ms) for store in stores if store.history_ms is not None}
        merged = {*repeating} - {*self._versions}
        self._spill = Spill(folder, {store.changelog: newest_of_each_key if store.changelog in merged else None for store in stores})
        self._untimed: set[str] = set()

    def add(self, changelog: str, table: pyarrow.Table) -> None:
        """Add rows (``rows_schema``), in the order in which they were written."""
        from pyarrow import compute

        if table.num_rows and compute.min(table["timestamp"]).as_py() < 0:
            self._untimed.add(changelog)
        versions = self._versions.get(changelog)
        self._spill.add(changelog, table if versions is None else versions.accepted(table))

    def timed(self, changelog: str) -> bool:
        """Whether all of its rows have a timestamp."""
        return changelog not in self._untimed

    def of(self, changelog: str) -> Rows:
        rows, versions = self._spill.rows(changelog), self._versions.get(changelog)
        return rows if versions is None else rows.map(versions.of)

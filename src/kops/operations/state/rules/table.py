"""The run of a store that was computed from a state file, and its findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kops.core.findings import Finding
from kops.core.statefile import StateFile, Store
from kops.operations.state.rules import statement, windows

if TYPE_CHECKING:
    from kops.spark.stores.jobs import Counts


@dataclass(frozen=True)
class TableRun:
    """How a store was computed by its state file.

    :param settings: of its changelog
    :param added_ms: for how long the application's changelogs are kept beyond the retention of their stores
    :param seen: what else computing showed
    """

    state_file: StateFile
    store: Store
    counts: Counts
    settings: Mapping[str, str]
    added_ms: int = 0
    seen: tuple[Finding, ...] = ()

    def findings(self) -> Iterator[Finding]:
        store, counts = self.store, self.counts
        yield from self.seen
        yield from statement.mixed_order(store, counts.keys, counts.mixed)
        yield from statement.times_by_order(store, counts.keys, counts.noted.get("timed", 0))
        yield from windows.counted_windows(store, counts.keys, counts.noted, cache=self.state_file.may_find_expired)
        yield from windows.short_retention(store, counts.noted, self.settings, self.added_ms)
        yield from windows.lateness(store, counts.noted)

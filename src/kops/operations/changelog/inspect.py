"""``changelog inspect``: the compacted view as rows, and what to know about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kops.core.findings import counted
from kops.operations.changelog.detect import Detection
from kops.operations.changelog.rows import NamedFormats, Shape, SkippedRecords, choose_shape, rows_of
from kops.operations.changelog.target import FrozenChangelog
from kops.operations.changelog.view import CompactedView, RowFilter, misplaced, misplaced_note, read_view, require_times, warnings_of
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.operations.engine.spark import Engine


FEW = 50_000
"""Rows take several times the memory of their records, so if there are more than this, they are made one by one."""


@dataclass
class ChangelogInspection:
    """Rows to iterate over once, and sentences about them, complete after that.

    :ivar notes: one sentence each
    """

    rows: Iterable[dict[str, Any]]
    skipped: SkippedRecords
    notes: list[str] = field(default_factory=list)

    @property
    def all_notes(self) -> list[str]:
        """The notes, and a sentence about skipped records."""
        return [*self.notes, *([self.skipped.sentence] if self.skipped.sentence else [])]


@contextmanager
def inspecting(
    services: Services,
    target: FrozenChangelog,
    detected: Detection,
    wanted: RowFilter,
    *,
    named: NamedFormats,
    limit: int | None,
    skip: bool,
    engine: Engine | None = None,
) -> Iterator[ChangelogInspection]:
    """Open the requested part of the compacted view.

    :param skip: skip what cannot be decoded
    :param engine: Spark; None to read in this process
    :raises UsageProblem: when windows are requested of a store that has none
    """
    require_times(detected.layout, wanted.windows)
    if engine is None:
        view = read_view(services, target, detected.layout, wanted)
        live = [record for record in view.latest if wanted.tombstones or record.value is not None]
        wrong = misplaced(view.latest, detected.layout, target.partitions) if wanted.is_all else 0
        found = CompactedView(view, len(view.latest) - view.tombstones, view.tombstones, wrong, live[:limit])
        yield _inspected(found, *choose_shape(view.latest, detected, named), wanted=wanted, limit=limit, skip=skip)
        return
    from kops.operations.changelog.by_spark import big_view, prepare_read

    with big_view(prepare_read(services, engine, target), detected.layout, wanted, limit) as big:
        yield _inspected(big, *choose_shape(detected.sample, detected, named), wanted=wanted, limit=limit, skip=skip)


def _inspected(
    found: CompactedView, shape: Shape, sentence: str, *, wanted: RowFilter, limit: int | None, skip: bool
) -> ChangelogInspection:
    notes = [summary(found, shown=wanted.tombstones, limit=limit), *(f"note: {each}" for each in warnings_of(found.view))]
    if found.misplaced:
        notes.append(f"note: {misplaced_note(found.misplaced, found.keys)}")
    if sentence:
        notes.append(f"note: {sentence}")
    skipped = SkippedRecords()
    rows = rows_of(found.records, shape, skipped, skip=skip)
    # A few rows are all decoded before the first is written, so that an error leaves no partial answer.
    few = isinstance(found.records, Sequence) and len(found.records) <= FEW
    return ChangelogInspection(list(rows) if few else rows, skipped, notes)


def summary(found: CompactedView, *, shown: bool, limit: int | None) -> str:
    """Return a sentence about how much was read and how much of it is shown.

    :param shown: whether deleted keys are shown
    """
    view, keys, deleted = found.view, found.keys, found.tombstones
    text = f"{view.target.topic}: {counted(view.read, 'record')} read, {counted(keys, 'key')}, {counted(deleted, 'tombstone')}"
    if deleted and not shown:
        text += " (--tombstones shows them)"
    return f"{text}; the first {limit:,} shown" if limit and limit < keys + (deleted if shown else 0) else text

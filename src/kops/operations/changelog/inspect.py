"""``changelog inspect``: the compacted view as rows, and what to know about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kops.operations.changelog.oddities import counted, oddities
from kops.operations.changelog.rows import Named, choose_shape, rows_of, skipped_note
from kops.operations.changelog.settle import Settled
from kops.operations.changelog.target import Target
from kops.operations.changelog.view import View, Wanted, read_view
from kops.operations.protocol import Services


@dataclass(frozen=True)
class Inspected:
    """Rows, and sentences about them."""

    rows: list[dict[str, Any]]
    notes: list[str]


def inspect(
    services: Services,
    target: Target,
    settled: Settled,
    wanted: Wanted,
    *,
    named: Named,
    limit: int | None,
    skip: bool,
) -> Inspected:
    """Return the wanted part of the compacted view."""
    layout = settled.layout
    view = read_view(services, target, layout, wanted)
    notes = [
        summary(view, tombstones=wanted.tombstones, limit=limit),
        *(f"note: {sentence}" for sentence in oddities(view, whole=wanted.is_all)),
    ]
    shape, sentence = choose_shape(view.latest, settled, named)
    if sentence:
        notes.append(f"note: {sentence}")
    shown = [record for record in view.latest if wanted.tombstones or record.value is not None]
    rows, skipped = rows_of(shown[:limit], shape, skip_undecodable=skip)
    return Inspected(rows, [*notes, *filter(None, [skipped_note(skipped, len(rows))])])


def summary(view: View, *, tombstones: bool, limit: int | None) -> str:
    """Return what was read and what of it is shown, in one sentence."""
    deleted = view.tombstones
    keys = len(view.latest) - deleted
    shown = keys + (deleted if tombstones else 0)
    text = f"{view.target.topic}: {counted(view.read, 'record')} read, {counted(keys, 'key')}, {counted(deleted, 'tombstone')}"
    if deleted and not tombstones:
        text += " (--tombstones shows them)"
    return f"{text}; the first {limit:,} shown" if limit and limit < shown else text

"""A plan as text for the person who approves it: a block for what has parts, a table for the rest."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any

from kops.core.plan import DerivedItems, Item, Plan
from kops.core.topics.settings import readable_value
from kops.core.visible import visible
from kops.output.table import as_columns, cell, table_of, write_table

COLUMNS = ("target", "action", "before", "after", "reason")
MOVING = "offsets.move"
"""The operation whose items are offsets: by how much each moves is shown."""
NAMES_IN_ONE_BLOCK = 12
MOST_ITEMS = 200
"""More items than a person reads: what sums them up is shown in their place."""


def plan_text(plan: Plan, limit: int | None = None, *, terminal: bool = False) -> str:
    """Return a plan's items as lines.

    :param limit: of items shown; None shows all
    :param terminal: fit tables to the terminal's width, with nothing cut
    """
    if isinstance(plan.items, DerivedItems) and len(plan.items) > (MOST_ITEMS if limit is None else limit):
        return _overview(plan.items, limit, terminal=terminal)
    items = plan.items if limit is None else plan.items[:limit]
    parts: list[str] = []
    moving = plan.operation == MOVING
    for has_parts, some in groupby(items, key=_has_parts):
        run = list(some)
        parts.extend(_blocks(run) if has_parts else [_lines_of(*table_rows(run, delta=moving), terminal=terminal)])
    if len(items) < len(plan.items):
        parts.append(f"... and {len(plan.items) - len(items)} more; --dry-run shows all")
    return "\n".join(part for part in parts if part)


def _delta(item: Item) -> int | None:
    known = isinstance(item.before, int) and isinstance(item.after, int) and item.changes
    return item.after - item.before if known else None


def _overview(items: DerivedItems, limit: int | None, *, terminal: bool) -> str:
    rows = list(islice(items.overview(), limit))
    table = _lines_of(rows, list(rows[0]), terminal=terminal)
    more = sum(1 for _ in items.overview()) - len(rows)
    left = [f"... and {more} more; --dry-run shows all"] if more else []
    lines = [table, *left, f"{len(items):,} partitions in all; --dry-run -o json or csv lists each"]
    return "\n".join(line for line in lines if line)


def _has_parts(item: Item) -> bool:
    return isinstance(item.before, Mapping) or isinstance(item.after, Mapping)


def table_rows(items: Sequence[Item], *, delta: bool) -> tuple[list[dict[str, Any]], list[str]]:
    """Return items as the rows of a table, and the columns in which any of them has something."""
    rows = [{column: getattr(item, column) for column in COLUMNS} for item in items]
    columns = list(COLUMNS)
    if delta:
        columns.insert(columns.index("reason"), "delta")
        for row, item in zip(rows, items, strict=True):
            row["delta"] = None if (by := _delta(item)) is None else f"{by:+,}"
    return rows, [column for column in columns if any(row[column] not in (None, "") for row in rows)]


def _lines_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, terminal: bool) -> str:
    stream = io.StringIO()
    write_table(table_of(rows, as_columns(columns)), stream, terminal=terminal, whole=True)
    return stream.getvalue().rstrip("\n")


def _blocks(items: Sequence[Item]) -> Iterator[str]:
    """Yield a block for each run of items that differ in their target only."""
    for _, alike in groupby(items, key=lambda item: (item.action, repr(item.before), repr(item.after), item.reason)):
        same = list(alike)
        for start in range(0, len(same), NAMES_IN_ONE_BLOCK):
            yield _block(same[start : start + NAMES_IN_ONE_BLOCK])


def _block(items: Sequence[Item]) -> str:
    first = items[0]
    reason = f"  ({first.reason})" if first.reason else ""
    lines = [(visible(label), visible(value)) for label, value in _lines(first.before, first.after)]
    width = max((len(label) for label, _ in lines), default=0)
    body = [f"{label:{width}}  {value}".rstrip() for label, value in lines]
    return "\n".join([visible(f"{first.action} {', '.join(item.target for item in items)}{reason}"), *body])


def _lines(before: Any, after: Any, indent: str = "  ") -> Iterator[tuple[str, str]]:
    """Yield label and value: of what there is on one side, or of what differs between both."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in {**before, **after}:
            if before.get(key) != after.get(key):
                yield from _change(key, before.get(key), after.get(key), indent)
        return
    for key, value in (after if isinstance(after, Mapping) else before).items():
        if isinstance(value, Mapping):
            if value:
                yield f"{indent}{key.replace('_', ' ')}", ""
                yield from _lines(None, value, indent + "  ")
        else:
            yield f"{indent}{_label(key)}", _text(key, value)


def _change(key: str, before: Any, after: Any, indent: str) -> Iterator[tuple[str, str]]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield f"{indent}{_label(key)}", ""
        yield from _lines(before, after, indent + "  ")
    else:
        yield f"{indent}{_label(key)}", f"{_text(key, before)} -> {_text(key, after)}"


def _label(key: str) -> str:
    return key if "." in key else key.replace("_", " ")


def _text(key: str, value: Any) -> str:
    if isinstance(value, str):
        return readable_value(key, value)
    return f"{value:,}" if isinstance(value, int) and key == "records" else cell(value)

"""A report as one HTML file without scripts or external resources; every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kops.output.document import DOCUMENT_END, document_head
from kops.output.report_chart import Chart, chart_svg, safe_text
from kops.output.table import cell

WARNING = "Warning: "
"""Prefix of a note that must not be overlooked."""
GOOD, BAD, NEUTRAL = "good", "bad", "neutral"
LARGEST_CELL = 400
"""Most characters shown of a key or value: a report stays readable whatever the application stores."""


@dataclass(frozen=True)
class Table:
    """Rows under a heading.

    :param columns: keys of the rows, in order
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Mapping[str, Any]]
    note: str = ""


@dataclass(frozen=True)
class Section:
    title: str
    facts: Sequence[tuple[str, Any]] = ()
    notes: Sequence[str] = ()
    chart: Chart | None = None
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Report:
    """A report.

    :param verdict: the main result in one sentence
    :param tone: GOOD, BAD or NEUTRAL
    """

    title: str
    verdict: str
    tone: str
    facts: Sequence[tuple[str, Any]]
    notes: Sequence[str]
    sections: Sequence[Section]
    footer: str = ""


def report_html(report: Report) -> str:
    body = [
        f"<h1>{safe_text(report.title)}</h1>",
        f'<p class="verdict {report.tone}">{safe_text(report.verdict)}</p>',
        _facts(report.facts),
        *_notes(report.notes),
        *(part for section in report.sections for part in _section(section)),
        f"<footer>{safe_text(report.footer)}</footer>",
    ]
    return document_head(report.title) + "\n".join(filter(None, body)) + DOCUMENT_END


def _section(section: Section) -> Iterable[str]:
    yield f"<h2>{safe_text(section.title)}</h2>"
    yield _facts(section.facts)
    yield from _notes(section.notes)
    if section.chart is not None:
        yield f"<h3>{safe_text(section.chart.title)}</h3>"
        yield chart_svg(section.chart)
    for table in section.tables:
        yield f"<h3>{safe_text(table.title)}</h3>"
        if table.note:
            yield f"<p>{safe_text(table.note)}</p>"
        yield _table(table)


def _facts(facts: Sequence[tuple[str, Any]]) -> str:
    pairs = "".join(f"<dt>{safe_text(name)}</dt><dd>{safe_text(_shown(value))}</dd>" for name, value in facts)
    return f"<dl>{pairs}</dl>" if pairs else ""


def _notes(notes: Iterable[str]) -> list[str]:
    return [f"<p{' class=warning' if note.startswith(WARNING) else ''}>{safe_text(note)}</p>" for note in notes]


def _table(table: Table) -> str:
    numbers = {column for column in table.columns if all(_is_number(row.get(column)) for row in table.rows)}
    heads = "".join(f"<th{_align(column in numbers)}>{safe_text(column.replace('_', ' '))}</th>" for column in table.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td{_align(column in numbers)}>{safe_text(_shown(row.get(column)))}</td>" for column in table.columns) + "</tr>"
        for row in table.rows
    )
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'


def _align(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    if _is_number(value):
        return f"{value:,}"
    text = cell(value)
    return text if len(text) <= LARGEST_CELL else f"{text[:LARGEST_CELL]}… ({len(text):,} characters)"

"""A report as one HTML file without scripts or external resources; every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kops.output.report_chart import Chart, chart_svg, safe_text
from kops.output.table import cell

WARNING = "Warning: "
"""Prefix of a note that must not be overlooked."""
GOOD, BAD, NEUTRAL = "good", "bad", "neutral"
LARGEST_CELL = 400
"""Most characters shown of a key or value: a report stays readable whatever the application stores."""

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2530; background: #fff; max-width: 62rem; margin: 2rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 .35rem; }
p { margin: .4rem 0; }
.verdict { padding: .6rem .9rem; border-radius: 6px; border-left: 5px solid; margin: 1rem 0; }
.good { background: #eaf6ee; border-color: #2c8a4b; }
.bad { background: #fdeeee; border-color: #c23b3b; }
.warning { padding: .4rem .9rem; border-left: 5px solid #d98a1f; background: #fdf5e6; }
.neutral { background: #f1f4f8; border-color: #6b7a90; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .4rem 0; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid #e3e8ee; vertical-align: top; }
th { font-weight: 600; color: #4b5a6e; }
td.number, th.number { text-align: right; }
td { overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; margin: .6rem 0; }
dt { color: #4b5a6e; }
dd { margin: 0; overflow-wrap: anywhere; }
svg { max-width: 100%; height: auto; }
footer { margin-top: 3rem; color: #6b7a90; font-size: .85rem; }
@media print { body { margin: 0; max-width: none; } }
"""


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
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{safe_text(report.title)}</title><style>{_STYLE}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(filter(None, body)) + "\n</body></html>\n"


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

"""A chart of counts over time as inline SVG: stacked bars, a scale, a legend.

Drawn by hand: pygal's SVG contains a script, even when set to link none, and takes 64 KB instead of 12 KB. A report has neither scripts nor
links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from kops.core.times import time_text

WIDTH, HEIGHT = 860, 210
_LEFT, _BOTTOM, _TOP = 64, 46, 22
_PLOT_WIDTH, _PLOT_HEIGHT = WIDTH - _LEFT - 8, HEIGHT - _BOTTOM - _TOP
LEAST_HEIGHT = 2
"""Minimum height of a part of a bar, so that one key among thousands is visible."""
_COLOURS = ("#2f6db3", "#d98a1f", "#b23a48", "#5f6b7a")


@dataclass(frozen=True)
class Chart:
    """Counts over time.

    :param earliest: start of the chart, in milliseconds since the epoch; ``latest`` is its end
    :param series: name of each kind, in the order in which they are stacked
    :param counts: one mapping of kind to count per bar; all bars cover the same length of time
    """

    title: str
    earliest: int
    latest: int
    series: Sequence[str]
    counts: Sequence[Mapping[str, int]]


def safe_text(text: str) -> str:
    """Escape a text for HTML and SVG; invisible and unprintable characters are shown as their escapes."""
    plain = "".join(each if each.isprintable() or each in "\n\t" else each.encode("unicode_escape").decode() for each in text)
    return escape(plain, quote=True)


def chart_svg(chart: Chart) -> str:
    """Return the chart as SVG; each bar shows its time and counts as a tooltip."""
    most = max((sum(bar.values()) for bar in chart.counts), default=0) or 1
    label = f"{chart.title}, from {time_text(chart.earliest)} to {time_text(chart.latest)}"
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{safe_text(label)}"'
        ' font-family="system-ui, sans-serif" font-size="12">',
        *_scale(most),
        *(_bar(chart, number, bar, most) for number, bar in enumerate(chart.counts)),
        *_axis(chart),
        *_legend(chart),
        "</svg>",
    ]
    return "".join(parts)


def _scale(most: int) -> list[str]:
    lines = []
    for share in (0, 0.5, 1):
        y = _TOP + _PLOT_HEIGHT * (1 - share)
        value = round(most * share)
        lines.append(f'<line x1="{_LEFT}" x2="{WIDTH - 8}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e3e8ee"/>')
        if value or share == 0:
            lines.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#4b5a6e">{value:,}</text>')
    return lines


def _bar(chart: Chart, number: int, bar: Mapping[str, int], most: int) -> str:
    if not any(bar.values()):
        return ""
    step = _PLOT_WIDTH / len(chart.counts)
    x, width, y = _LEFT + number * step, max(step - 1, 1), float(_TOP + _PLOT_HEIGHT)
    pieces = []
    for name, colour in zip(chart.series, _COLOURS, strict=False):
        if bar.get(name):
            height = max(_PLOT_HEIGHT * bar[name] / most, LEAST_HEIGHT)
            y -= height
            pieces.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>')
    counts = ", ".join(f"{bar[name]:,} {name}" for name in chart.series if bar.get(name))
    return f"<g><title>{safe_text(f'{_time(chart, number)}: {counts}')}</title>{''.join(pieces)}</g>"


def _axis(chart: Chart) -> list[str]:
    y = HEIGHT - _BOTTOM + 16
    return [
        f'<text x="{_LEFT}" y="{y}" fill="#4b5a6e">{time_text(chart.earliest)}</text>',
        f'<text x="{WIDTH - 8}" y="{y}" text-anchor="end" fill="#4b5a6e">{time_text(chart.latest)}</text>',
    ]


def _legend(chart: Chart) -> list[str]:
    parts, x = [], _LEFT
    for name, colour in zip(chart.series, _COLOURS, strict=False):
        total = sum(bar.get(name, 0) for bar in chart.counts)
        if total:
            text = f"{total:,} {name}"
            parts.append(f'<rect x="{x}" y="{HEIGHT - 18}" width="11" height="11" fill="{colour}"/>')
            parts.append(f'<text x="{x + 17}" y="{HEIGHT - 8}" fill="#1d2530">{safe_text(text)}</text>')
            x += 40 + 8 * len(text)
    return parts


def _time(chart: Chart, number: int) -> str:
    return time_text(chart.earliest + (chart.latest - chart.earliest + 1) * number // len(chart.counts))

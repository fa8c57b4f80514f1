"""An HTML document of its own: encoding, title and style, without scripts or external resources."""

from __future__ import annotations

from kops.output.report_chart import safe_text

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
pre { font: 13px/1.45 ui-monospace, monospace; margin: .4rem 0; overflow-x: auto; }
@media print { body { margin: 0; max-width: none; } }
"""

DOCUMENT_END = "\n</body></html>\n"


def document_head(title: str) -> str:
    """Return all that comes before what a document shows."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{safe_text(title)}</title><style>{_STYLE}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n'

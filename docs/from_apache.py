"""The page that leads from other tools to kops: ``python docs/from_apache.py`` makes ``from-apache.md`` of ``from-apache.yaml``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
PAGE = HERE / "from-apache.md"
INTRODUCTION = """\
# From other tools

What each of the tools of Apache Kafka {version} does, and the kops command for it. Every change of kops is a plan that is shown and
approved first: `--dry-run` only shows it, `--yes` approves it. `kops undo` undoes it, where Kafka can. "Not in kops" says what kops cannot
do, and why. The verbs of [kcl](#kcl) and [kafkactl](#kafkactl) follow.

`docs/from_apache.py` made this page of a table, and a test compares it with the options that the tools list themselves.
"""


def table() -> dict[str, Any]:
    """Return the table, with the lines of each part as lists of their cells."""
    read = yaml.safe_load((HERE / "from-apache.yaml").read_text(encoding="utf-8"))
    lists = [read, *read["tools"].values(), *read["verbs"].values()]
    for part in lists:
        part |= {name: [_cells(line) for line in text.splitlines()] for name, text in part.items() if isinstance(text, str) and "|" in text}
    found: dict[str, Any] = read
    return found


def commands(cell: str) -> list[str]:
    """Return the kops commands of a cell."""
    return [each.strip() for each in cell.split(" ; ")]


def page() -> str:
    """Return the page."""
    read = table()
    parts = [INTRODUCTION.format(version=read["version"])]
    parts.append(_rows(("in every tool", "in kops"), ((_code(option), kops) for option, kops in read["everywhere"])))
    for tool, part in read["tools"].items():
        rows = [(what, _code(apache), _codes(kops)) for what, apache, kops in part.get("functions", ())]
        rows += [(what, _code(apache), f"not in kops: {why}") for what, apache, why in part.get("gaps", ())]
        parts.append(f"## {tool}\n")
        parts.append(_rows(("", tool, "kops"), rows))
        if unwanted := part.get("unwanted"):
            parts.append("Options without a counterpart:\n")
            parts.append("".join(f"- {_code(option)}: {why}\n" for option, why in unwanted))
    parts.append("## Other programs of Apache\n")
    parts.append("Classes of `kafka-tools` that do not administer a cluster:\n")
    parts.append(_rows(("class", ""), ((_code(name), why) for name, why in read["others"])))
    for tool, part in read["verbs"].items():
        parts.append(f"## {tool}\n")
        parts.append(f"The verbs of {tool} {part['version']}.\n")
        verbs = [(_code(other), rest[1] if rest[0] == "-" else _codes(rest[0])) for other, *rest in part["rows"]]
        parts.append(_rows((tool, "kops"), verbs))
    return "\n".join(parts)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(" | ")]


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _codes(cell: str) -> str:
    return "<br>".join(map(_code, commands(cell)))


def _rows(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

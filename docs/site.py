"""Lay out the source of the site: ``python docs/site.py FOLDER`` copies the pages as they stand here, and adds the reference."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from reference import NOUNS, markdown

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("docs", "examples", "plugins")
"""Folders whose files pages link to."""
LEFT_OUT = ("__pycache__", "*.py[co]", "*.egg-info", "build", "dist")


def main(target: Path) -> None:
    """Copy and write everything into an empty folder."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for page in (*ROOT.glob("*.md"), ROOT / "LICENSE"):
        shutil.copyfile(page, target / page.name)
    for part in PARTS:
        shutil.copytree(ROOT / part, target / part, ignore=shutil.ignore_patterns(*LEFT_OUT))
    folder = target / "docs" / "reference"
    folder.mkdir()
    for noun in NOUNS:
        (folder / f"{noun}.md").write_text(markdown(noun), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

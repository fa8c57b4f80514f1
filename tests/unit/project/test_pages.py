"""Pages link to files and headings that exist, and every noun and verb has a page that mentions it."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import click
import pytest

from kops.cli.frame.main import NOUNS, cli

ROOT = Path(__file__).parents[3]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md"), *(ROOT / "plugins").glob("*/*.md")],
)
FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|toml|ya?ml))(?::\w+)?`")
"""A file that a page names, with a function of it perhaps."""
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PAGE_OF = {
    "context": "contexts",
    "journal": "undo",
    "apply": "undo",
    "doctor": "conventions",
    "plugins": "conventions",
    "completion": "conventions",
    "help": "conventions",
    "version": "conventions",
}
"""Nouns whose page has another name; ``demo`` is described in the README."""


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and MkDocs make them."""
    return {slug(line.lstrip("#")) for line in outside_of_samples(page) if line.startswith("#")}


def slug(heading: str) -> str:
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def outside_of_samples(page: Path) -> list[str]:
    lines, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            lines.append(line)
    return lines


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    broken = []
    for target in LINK.findall("\n".join(outside_of_samples(page))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        if not linked.exists() or (anchor and anchor not in anchors(linked)):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_name_files_that_exist(page: Path) -> None:
    places = (page.parent, ROOT, ROOT / "src", ROOT / "src" / "kops", ROOT / "tests")
    named = FILE.findall(page.read_text(encoding="utf-8"))
    assert not [file for file in named if not any((place / file).exists() for place in places)]


@pytest.mark.parametrize("noun", [noun for noun in NOUNS if noun != "demo"])
def test_each_noun_has_a_page_that_describes_each_verb(noun: str) -> None:
    page = (ROOT / "docs" / f"{PAGE_OF.get(noun, noun)}.md").read_text(encoding="utf-8")
    command = cli.get_command(click.Context(cli), noun)
    assert command is not None
    if not isinstance(command, click.Group):
        assert f"kops {noun}" in page
        return
    missing = [verb for verb in command.list_commands(click.Context(command)) if not re.search(rf"\b{verb}\b", page)]
    assert not missing

"""Samples in README, docs and examples name verbs and options that exist, and show no message that kops no longer prints."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kops.cli.frame.main import NOUNS, cli

ROOT = Path(__file__).parents[3]
PAGES = sorted(
    page for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")) if page.name != "glossary.md"
)
COMMAND = re.compile(r"(?:^|[|;{(] *)kops ([^#|;)>&]*)")
INLINE = re.compile(r"`(kops [a-z][^`|]*)`")
OUTLINE = re.compile(r"[{<…]|\.\.\.|=X$|&&")
"""What shows the form of a command, and is not one to type."""
RETIRED = ("taken back by `kops", "as it should be", "made anew", "created anew", "cannot be taken back")
PLACEHOLDERS = ("...", "…", "`")


def commands(page: Path) -> Iterator[str]:
    inside = False
    for line in page.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        if line.lstrip().startswith("```"):
            inside = not inside
        elif inside and (line.startswith(("$ ", "kops "))):
            quoted = shlex_safe(line.removeprefix("$ "))
            yield from COMMAND.findall(quoted)
        elif not inside:
            yield from (span.removeprefix("kops ") for span in INLINE.findall(line) if not OUTLINE.search(span))


def shlex_safe(line: str) -> str:
    """Return a line without its quoted parts and expansions: what is in them is not an option of kops."""
    return re.sub(r"\$\([^)]*\)|\$\(\(.*?\)\)", "X", re.sub(r"'[^']*'|\"[^\"]*\"", "X", line))


def check(words: list[str]) -> None:
    """Parse each word as click does, without running anything.

    :raises click.UsageError: when a verb or an option is not there
    """
    command: click.Command = cli
    context = click.Context(cli, info_name="kops", **cli.context_settings)
    while True:
        _, rest, _ = command.make_parser(context).parse_args(args=words)
        if not isinstance(command, click.Group) or not rest:
            return
        following = command.get_command(context, rest[0])
        if following is None:
            raise click.UsageError(f"there is no {rest[0]}")
        command, words = following, rest[1:]
        context = click.Context(command, info_name=command.name, parent=context)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_samples_name_verbs_and_options_that_exist(page: Path) -> None:
    wrong = []
    for sample in commands(page):
        words = [word for word in shlex.split(sample) if word not in PLACEHOLDERS]
        if words and words[0] not in NOUNS and not words[0].startswith("-"):
            continue  # a plugin's command
        try:
            check(words)
        except click.UsageError as error:
            wrong.append(f"kops {sample}: {error.format_message()}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_samples_show_no_message_that_is_no_longer_printed(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not [phrase for phrase in RETIRED if phrase in text]

"""docs/from-apache.md is made of its table, whose commands kops takes; ``tests/differential/test_from_apache.py`` asks the other tools."""

import click
import pytest

from support.from_apache import FROM_APACHE
from support.suggested import assert_taken

TABLE = FROM_APACHE.table()


def rows():
    for tool, part in TABLE["tools"].items():
        yield from ((f"{tool} {apache}", cell) for _, apache, cell in part.get("functions", ()))
    for part in TABLE["verbs"].values():
        yield from ((other, rest[0]) for other, *rest in part["rows"] if rest[0] != "-")


def test_page_is_made_of_the_table():
    assert FROM_APACHE.PAGE.read_text(encoding="utf-8") == FROM_APACHE.page(), "run `python docs/from_apache.py`"


@pytest.mark.parametrize(("other", "cell"), list(rows()), ids=lambda text: text[:60])
def test_kops_takes_the_command(other, cell):
    for command in FROM_APACHE.commands(cell):
        try:
            assert_taken(command)
        except click.UsageError as wrong:
            raise AssertionError(f"{command}: {wrong.format_message()}") from wrong


def test_each_gap_and_each_unwanted_option_has_a_reason():
    for part in TABLE["tools"].values():
        assert all(cells[-1] for name in ("gaps", "unwanted") for cells in part.get(name, ()))
    assert all(len(row) == 3 for part in TABLE["verbs"].values() for row in part["rows"] if row[1] == "-")

"""docs/from-apache.yaml has every program of Apache's, with every option that its own ``--help`` lists, and no other."""

import re
from collections import defaultdict

import pytest

from support.from_apache import FROM_APACHE, helps, options_of, programs

TABLE = FROM_APACHE.table()
EVERYWHERE = {option for option, _ in TABLE["everywhere"]}
OPTION = re.compile(r"(?<!\S)--[\w.-]*\w")


def in_table(part):
    """Return the options of a tool's rows, by subcommand; the empty one holds those of every subcommand."""
    found = defaultdict(set)
    texts = [row[1] for name in ("functions", "gaps") for row in part.get(name, ())] + [row[0] for row in part.get("unwanted", ())]
    for text in texts:
        first = text.partition(" ")[0]
        found["" if first.startswith("--") else first] |= set(OPTION.findall(text)) - EVERYWHERE
    return found


@pytest.fixture(scope="module")
def listed(kafka_jar_files):
    found = defaultdict(dict)
    for tool, subcommand, helped in helps([part["class"] for part in TABLE["tools"].values()]):
        found[tool][subcommand] = options_of(helped)
    return found


@pytest.mark.parametrize("tool", TABLE["tools"])
def test_table_has_the_options_that_the_tool_lists(listed, tool):
    part = TABLE["tools"][tool]
    own, named = listed[part["class"]], in_table(part)
    assert all("--help" in options for options in own.values()), "a help text was not read"
    assert set(named) | {""} == set(own)
    shared = named.pop("", set())
    assert shared <= set.union(*own.values())
    for subcommand, options in own.items():
        of_it = named.get(subcommand, set())
        assert options - EVERYWHERE - shared == of_it - shared, subcommand


def test_table_has_every_program(kafka_jar_files):
    named = {part["class"] for part in TABLE["tools"].values()} | {name for name, _ in TABLE["others"]}
    assert programs(kafka_jar_files) == named

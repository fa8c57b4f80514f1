"""docs/rights.md is made of the table that ``kops acls grant --kops`` reads, which ``tests/broker/test_rights_of_verbs.py`` judges."""

import importlib.util
import itertools
from pathlib import Path

import pytest

from kops.core.acls.verbs import OF_VERBS
from support.rights_cases import CASES
from support.strangers import every_verb

FILE = Path(__file__).parents[3] / "docs" / "rights.py"


@pytest.fixture(scope="module")
def rights():
    specification = importlib.util.spec_from_file_location("rights", FILE)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_page_is_made_of_the_table(rights):
    assert rights.PAGE.read_text(encoding="utf-8") == rights.page(), "run `python docs/rights.py`"


def test_each_line_of_the_table_is_run():
    assert set(OF_VERBS) == set(CASES)


def test_each_verb_has_rights_or_a_reason_why_not(rights):
    listed = [
        *(verb.partition(" --")[0] for verb in OF_VERBS if verb.partition(" --")[0] == verb),
        *itertools.chain(*rights.WITHOUT.values()),
    ]
    assert sorted(listed) == sorted(verb for verb, _ in every_verb())


@pytest.mark.parametrize("verb", [verb for verb in OF_VERBS if " --" in verb])
def test_a_line_with_an_option_is_of_a_verb_that_has_it(verb):
    name, _, option = verb.partition(" --")
    (command,) = [found for each, found in every_verb() if each == name]
    names = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert f"--{option.split()[0]}" in names
    assert OF_VERBS[name] != OF_VERBS[verb], "it needs what it needs without"

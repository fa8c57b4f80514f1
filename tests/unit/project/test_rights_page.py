"""docs/rights.md is made of the table that ``kops acls grant --kops`` reads, which ``tests/broker/test_rights_of_verbs.py`` judges."""

import importlib.util
from pathlib import Path

from kops.core.acls.verbs import OF_VERBS
from support.rights_cases import CASES
from support.strangers import every_verb

FILE = Path(__file__).parents[3] / "docs" / "rights.py"


def test_page_is_made_of_the_table():
    specification = importlib.util.spec_from_file_location("rights", FILE)
    rights = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(rights)
    assert rights.PAGE.read_text(encoding="utf-8") == rights.page(), "run `python docs/rights.py`"


def test_each_verb_of_the_table_is_one_and_is_run():
    assert set(OF_VERBS) == set(CASES) <= {verb for verb, _ in every_verb()}

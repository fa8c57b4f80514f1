"""What the list of long variants names is there."""

from pathlib import Path

import pytest

from support.long import LONG

TESTS = Path(__file__).parents[2]


@pytest.mark.parametrize("pattern", LONG)
def test_a_pattern_names_tests_that_exist(pattern):
    file, _, name = pattern.partition("::")
    function = name.partition("?")[0].removeprefix("*")
    assert f"def {function}" in (TESTS / file).read_text(encoding="utf-8")

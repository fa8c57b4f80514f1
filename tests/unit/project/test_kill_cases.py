"""No mutation is left out of the campaign that kills kops at every step."""

import ast
from pathlib import Path

from kops.operations.protocol.registry import MUTATIONS
from support.kill_cases import CASES

TESTS = Path(__file__).parents[2]
ELSEWHERE = {"state.shadow": ("streams/test_shadow.py", "test_what_a_killed_kops_leaves_is_taken_away_by_the_next")}
"""Mutations with a test of their own: a shadow needs the application's program."""


def test_every_mutation_has_a_case():
    assert sorted({*(case.operation for case in CASES), *ELSEWHERE}) == sorted(MUTATIONS)


def test_tests_elsewhere_exist():
    for file, name in ELSEWHERE.values():
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        assert name in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]

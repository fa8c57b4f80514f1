"""No mutation is left out of the campaign that kills kops at every step."""

from kops.operations.protocol.registry import MUTATIONS
from support.kill_cases import CASES, UNKILLED


def test_every_mutation_has_a_case():
    assert {case.operation for case in CASES} | set(UNKILLED) == set(MUTATIONS)

"""No mutation is left out of the campaign that kills kops at every step."""

from kops.operations.protocol.registry import MUTATIONS
from support.kill_cases import CASES

ON_THREE_BROKERS = {
    *("topics.reassign", "topics.cancel", "topics.elect-leaders", "brokers.move-replicas", "brokers.unregister"),
}
"""What a single broker cannot do: ``tests/sandbox/test_reassign.py`` kills it where it takes long."""


def test_every_mutation_has_a_case():
    assert {case.operation for case in CASES} | ON_THREE_BROKERS == set(MUTATIONS)

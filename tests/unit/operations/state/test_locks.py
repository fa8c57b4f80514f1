"""Changes of one application exclude each other on a machine: state, topics and offsets have the same lock."""

import pytest

from kops.core.plan import Plan
from kops.operations.protocol.registry import MUTATIONS, mutation_named

OF_AN_APPLICATION = [name for name in MUTATIONS if name.startswith(("state.", "streams."))]
OF_A_GROUP = ["offsets.move", "offsets.delete", "records.consume"]


@pytest.mark.parametrize("name", [*OF_AN_APPLICATION, *OF_A_GROUP])
def test_all_name_the_group(name):
    plan = Plan(name, "", "cluster-1", "test", (), arguments={"application": "prices-app", "group": "prices-app"})
    assert tuple(mutation_named(name).locks(plan)) == ("prices-app",)

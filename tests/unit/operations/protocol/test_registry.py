"""Changes of one application exclude each other on a machine: state, topics and offsets have the same lock."""

import pytest

from kops.core.plan import Plan
from kops.operations.protocol.registry import MUTATIONS, mutation_named

OF_AN_APPLICATION = [name for name in MUTATIONS if name.startswith(("state.", "streams."))]
OF_A_GROUP = ["offsets.move", "offsets.delete", "records.consume"]


@pytest.mark.parametrize("name", [*OF_AN_APPLICATION, *OF_A_GROUP])
def test_all_name_the_group(name):
    offsets = {"moves": [{"group": "prices-app", "state": "EMPTY", "topics": []}], "within_log": True}
    of_state = {
        "exactly_once": False,
        "master": "local",
        "stores": {},
        "commit": {},
        "grow": {},
        "committed_before": {},
        "repartitions": [],
    }
    of_state |= {"open": [], "takes_back": False, "state_file": "", "question": None}
    of_reset = {"offsets": offsets, "topics": []}
    of_reading = {"prior": {}, "new_group": False, "topic": "prices", "isolation": "read_committed", "ends": None}
    arguments = {"application": "prices-app", "group": "prices-app", **offsets, **of_state, **of_reset, **of_reading}
    plan = Plan(name, "", "cluster-1", "test", (), arguments=arguments)
    mutation = mutation_named(name)
    assert tuple(mutation.locks(mutation.typed(plan))) == ("prices-app",)

"""``examples/regions``: a join of tables and what is counted from it are lost, or damaged, and come back."""

import json
import struct

import pytest

from support import twins
from support.broken_copies import LOCAL_STATES, assert_equal, break_and_rebuild
from support.examples import process
from support.programs import Record

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

START = 1_700_000_000_000


def locations(first, **places):
    """Users and where they live; None deletes."""
    return {
        "user-locations": [
            Record(user.encode(), place and place.encode(), START + first + at) for at, (user, place) in enumerate(places.items())
        ]
    }


def ages(first, **ages):
    """Users and how old they are; None deletes."""
    made = []
    for at, (user, age) in enumerate(ages.items()):
        value = None if age is None else json.dumps({"age": age, "language": "fr"}, separators=(",", ":")).encode()
        made.append(Record(user.encode(), value, START + first + at))
    return {"user-preferences": made}


def young(copy):
    return {key.decode(): struct.unpack(">q", entry.value)[0] for key, entry in copy.view("young").items()}


@LOCAL_STATES
def test_who_moves_is_counted_in_one_region(copies, local_state):
    settings = {"processing.guarantee": "at_least_once", "group.protocol": "classic"}
    inputs = ["user-locations", "user-preferences", "regions-app-young-repartition"]
    twin, broken = both = copies("regions", "RegionsApplication", 2, inputs=inputs, outputs=["young-by-region"], settings=settings)
    process(both, locations(0, ann="asia", bob="america", cid="america", dan="asia"), ages(10, ann=20, bob=25, cid=64, dan=29))
    assert young(twin) == {"asia": 2, "america": 1}
    earlier = twins.keep(broken.state)
    process(both, locations(20, bob="asia", eve="africa"), ages(30, eve=18, dan=30, fay=9))
    assert young(twin) == {"asia": 2, "america": 0, "africa": 1}  # nobody is left in america, which stays
    break_and_rebuild(broken, twin, local_state, earlier, options=["--accept-doubtful"])
    process(both, locations(40, ann="america", eve=None), ages(50, bob=None), locations(60, fay="america", cid="africa"))
    assert young(twin) == {"asia": 0, "america": 2, "africa": 0}
    assert_equal(broken, twin)

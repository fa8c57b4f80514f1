"""What a repartition topic says about where new keys go."""

from types import SimpleNamespace

import pytest

from kops.core.models import Bounds
from kops.core.murmur2 import partition_for
from kops.core.statefile import parse_state_file
from kops.operations.state.judge.input import placing_of
from kops.operations.state.rules.witnesses import witnesses_of
from support.verdicts import DOUBT, NOTHING, said, worst

TASKS, KEYS = 2, 10
NAMES = [b"k%d" % number for number in range(KEYS)]
HOMES = [partition_for(name, TASKS) for name in NAMES]


def placing(*, ends=(0, 0), held=(), read=KEYS, survive=0, apart=False, base=None, **fields):
    """Judge a changelog of which ``survive`` keys of each partition survived.

    :param held: records of the repartition topic, as (key, partition)
    """
    store = {"from": {"topic": "in", "key": "string", "value": "long"}, "aggregate": {"count": True}}
    body = {"application": "app", "stores": {"s": {**store, "key_by": "value", "key_as": "long", **fields}}}
    file = parse_state_file("f", body)
    added = {number: {"added": HOMES.count(number) - survive} for number in range(TASKS)}
    witnesses = witnesses_of(live=dict.fromkeys(range(TASKS), survive), expected=KEYS, actions=added)
    found = SimpleNamespace(
        facts=SimpleNamespace(store=file.stores[0], tasks=TASKS, base=base),
        counts=SimpleNamespace(read=read, dropped={"filtered": 0}, keys=KEYS),
        witnesses=witnesses_of(live={}, expected=KEYS, actions={}) if apart else witnesses,
    )
    records = [SimpleNamespace(topic="app-s-repartition", partition=partition, key=key) for key, partition in held]
    kafka = SimpleNamespace(
        offsets=SimpleNamespace(
            bounds=lambda places, isolation: {at: Bounds(0 if held else ends[at.partition], ends[at.partition]) for at in places}
        ),
        records=SimpleNamespace(read=lambda ranges, isolation: [records]),
    )
    return placing_of(SimpleNamespace(kafka=kafka), file, found)


ENDS = (HOMES.count(0), HOMES.count(1))


@pytest.mark.parametrize(
    ("given", "kind", "is_shown"),
    [
        ({"ends": ENDS}, NOTHING, False),
        ({"ends": ENDS, "held": list(zip(NAMES, HOMES, strict=True))}, NOTHING, True),
        ({"ends": ENDS, "held": [(NAMES[0], HOMES[0]), (None, 1)]}, NOTHING, False),  # too few of them
        ({"ends": ENDS, "held": [(NAMES[0], 1 - HOMES[0])]}, DOUBT, False),
        ({"ends": (0, KEYS)}, DOUBT, False),
        ({"ends": (0, KEYS), "partitioner": "custom"}, NOTHING, True),
        ({"ends": (0, KEYS - 1)}, NOTHING, False),  # it was recreated: it has had fewer records than were sent
        ({"ends": (0, KEYS), "base": "snapshot"}, NOTHING, False),
        ({"ends": (0, KEYS), "explode": "split(value, ' ')"}, NOTHING, False),
        ({"ends": (0, KEYS), "survive": 4}, NOTHING, True),  # surviving keys are judged themselves
        ({"ends": (0, KEYS), "apart": True}, NOTHING, False),
    ],
)
def test_where_new_keys_go(given, kind, is_shown):
    found = placing(**given)
    assert (worst(found.findings), found.is_shown) == (kind, is_shown)
    assert kind == NOTHING or "partitioner: custom" in said(found.findings)


def test_keys_of_the_input_stay_where_they_are():
    assert placing(key_by=None, key_as=None, ends=(0, KEYS)).is_shown

"""A coordinator that takes over reports groups as DEAD until it knows them: whether one exists is not known until then."""

import pytest

from kops.core.errors import AuthorizationFailed, NotFound, OperationFailed, TimedOut
from kops.core.models import Bounds, Group
from kops.gateways.kafka.groups import groups
from kops.gateways.kafka.offsets import Offsets

KNOWN = {"billing": Group("billing", "EMPTY", "classic")}
DEAD = {"billing": NotFound("there is no group billing")}
LATE = OperationFailed("could not find the log start offset of __consumer_offsets:0: Broker: Offset not available")


class Topic:
    partitions = (0,)


@pytest.fixture
def described(monkeypatch):
    """Describe a group whose coordinator gives these answers, one after the other; ListOffsets gives ``end``."""

    def run(*answers, end, topic=Topic):
        left, client = list(answers), type("Client", (), {"describe_topics": lambda _, names: dict.fromkeys(names, topic)})()
        monkeypatch.setattr(groups.Groups, "_ask_for", lambda _, _names: dict(left.pop(0)))
        monkeypatch.setattr(Offsets, "__init__", lambda *_: None)
        monkeypatch.setattr(Offsets, "bounds_or_errors", lambda _, places: dict.fromkeys(places, end))
        one = groups.Groups.__new__(groups.Groups)
        one._client = client
        found = one.describe_or_errors(["billing"])["billing"]
        assert not left
        return found

    return run


ENDED = Bounds(0, 1)


def test_a_group_that_is_dead_for_a_moment_exists(described):
    assert described(DEAD, KNOWN, end=ENDED) == KNOWN["billing"]
    assert described(DEAD, KNOWN, end=LATE) == KNOWN["billing"]


def test_a_group_is_missing_where_its_coordinator_knows_all(described):
    assert isinstance(described(DEAD, DEAD, end=ENDED), NotFound)
    assert isinstance(described(DEAD, DEAD, end=ENDED, topic=NotFound("no topic")), NotFound)
    assert isinstance(described(DEAD, DEAD, end=AuthorizationFailed("lacks DESCRIBE")), NotFound)


def test_otherwise_it_is_not_known(described):
    answer = described(DEAD, DEAD, end=LATE)
    assert (type(answer), "whether there is a group billing is not known: " in answer.message) == (TimedOut, True)

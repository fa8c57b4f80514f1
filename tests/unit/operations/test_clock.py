"""Compares this machine's clock with the controller's, where that is known."""

import threading
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest

from kops.core.cluster.models import Quorum, QuorumReplica
from kops.core.errors import OperationFailed
from kops.operations import clock
from kops.operations.clock import clock_notes

NOW = datetime(2026, 11, 27, 12, tzinfo=timezone.utc)
MS = int(NOW.timestamp() * 1000)


def services(quorum):
    return SimpleNamespace(now=lambda: NOW, kafka=SimpleNamespace(details=SimpleNamespace(quorum=quorum)))


def at(last_fetch, leader=1):
    return lambda: Quorum(leader, 1, 1, (QuorumReplica(1, 1, last_fetch, last_fetch),))


@pytest.mark.parametrize(
    ("difference", "said"),
    [(0, ""), (5_000, ""), (-5_000, ""), (86_400_000, "is 1d ahead of the cluster's"), (-7_200_000, "is 2h behind the cluster's")],
)
def test_a_difference_is_named_from_five_seconds_on(difference, said):
    notes = clock_notes(services(at(MS - difference)))
    assert bool(notes) == bool(said)
    assert said in "".join(notes)


@pytest.mark.parametrize("quorum", [at(None), at(0, leader=None), at(0, leader=2)])
def test_without_a_time_of_the_controller_there_is_no_note(quorum):
    assert clock_notes(services(quorum)) == []


def test_a_cluster_that_does_not_say_is_no_error():
    def refuse():
        raise OperationFailed("no right")

    assert clock_notes(services(refuse)) == []


def test_a_late_answer_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(clock, "MOST_SECONDS", 0.01)
    never = threading.Event()
    assert clock_notes(services(never.wait)) == []
    never.set()

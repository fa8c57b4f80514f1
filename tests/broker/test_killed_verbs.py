"""Every verb that changes something on the brokers, and its undo, killed at every step of the protocol, and what can be done then."""

import pytest

from support import killed
from support.kill_cases import CASES, Parts
from support.killing import AGAIN, FINISH, UNDO, Killing, combinations, undoable

pytestmark = pytest.mark.broker

OURS = [case for case in CASES if case.lane == "broker"]
FEW = {
    ("topics.create", killed.FIRST, UNDO),
    ("offsets.move of many", killed.WITH_ENTRY, UNDO),
    ("offsets.move of many", killed.ALL, FINISH),
    ("groups.delete", killed.FIRST, AGAIN),
    ("offsets.move", killed.READ_BACK, AGAIN),
    ("offsets.move", killed.CLOSED, UNDO),
}


@pytest.fixture
def kill(cluster, groups, unique, tmp_path, run_kops, broker, request):
    name, options = unique("killed"), ("-B", broker.bootstrap_servers)
    parts = Parts(cluster, name, tmp_path, lambda *arguments: run_kops(*arguments, *options).ok(), request.getfixturevalue)
    yield lambda case: Killing(case, parts, run_kops, options)
    groups.delete([group for group in groups.ids() if group.startswith(name)])
    left = cluster.topics(name)
    if left:
        cluster.delete_all(left)


@pytest.mark.parametrize(("case", "step", "then"), combinations(OURS, FEW))
def test_killed(kill, case, step, then):
    kill(case).of_the_command(step, then)


@pytest.mark.parametrize(("case", "step", "then"), combinations(undoable(OURS), FEW))
def test_its_undo_killed(kill, case, step, then):
    kill(case).of_its_undo(step, then)

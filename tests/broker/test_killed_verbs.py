"""Every verb that changes something on the brokers, and its undo, killed at every step of the protocol, and what can be done then."""

import pytest

from support import killed
from support.kill_cases import CASES, Parts
from support.killing import AGAIN, FINISH, FULL, UNDO, Killing

pytestmark = pytest.mark.broker

OURS = {case.operation: case for case in CASES if case.lane == "broker"}
FEW = {
    ("topics.create", killed.FIRST, UNDO),
    ("offsets.move_many", killed.WITH_ENTRY, UNDO),
    ("offsets.move_many", killed.ALL, FINISH),
    ("groups.delete", killed.FIRST, AGAIN),
    ("offsets.move", killed.READ_BACK, AGAIN),
    ("offsets.move", killed.CLOSED, UNDO),
}
"""What is not left to `make test-long`."""


def combinations(operations):
    return [
        pytest.param(name, step, then, marks=() if (name, step, then) in FEW else pytest.mark.long, id=f"{name}, {step}, {then}")
        for name in operations
        for step, then in FULL
    ]


@pytest.fixture
def kill(cluster, groups, unique, tmp_path, run_kops, broker, request):
    name = unique("killed")
    options = ("-B", broker.bootstrap_servers)

    def start(operation):
        def kops(*arguments):
            return run_kops(*arguments, *options).ok()

        return Killing(OURS[operation], Parts(cluster, name, tmp_path, kops, request.getfixturevalue), run_kops, options)

    yield start
    groups.delete([group for group in groups.ids() if group.startswith(name)])
    left = cluster.topics(name)
    if left:
        cluster.delete_all(left)


@pytest.mark.parametrize(("operation", "step", "then"), combinations(OURS))
def test_killed(kill, operation, step, then):
    kill(operation).of_the_command(step, then)


@pytest.mark.parametrize(("operation", "step", "then"), combinations([name for name, case in OURS.items() if case.undone is not None]))
def test_its_undo_killed(kill, operation, step, then):
    kill(operation).of_its_undo(step, then)

"""Every verb that changes something by Spark, and its undo, killed at every step of the protocol, and what can be done then."""

import pytest

from support.kill_cases import CASES, Parts
from support.killing import Killing, combinations, undoable

pytestmark = [pytest.mark.broker, pytest.mark.spark]

OURS = [case for case in CASES if case.lane == "spark"]


@pytest.fixture
def kill(scene, tmp_path, run_kops, broker, spark, request):
    options = ("-B", broker.bootstrap_servers)
    parts = Parts(scene.cluster, scene.prefix, tmp_path, lambda *arguments: run_kops(*arguments, *options).ok(), request.getfixturevalue)
    return lambda case: Killing(case, parts, run_kops, options)


@pytest.mark.parametrize(("case", "step", "then"), combinations(OURS, ()))
def test_killed(kill, case, step, then):
    kill(case).of_the_command(step, then)


@pytest.mark.parametrize(("case", "step", "then"), combinations(undoable(OURS), ()))
def test_its_undo_killed(kill, case, step, then):
    kill(case).of_its_undo(step, then)

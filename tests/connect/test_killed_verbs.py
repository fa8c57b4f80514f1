"""Every verb that changes Connect, and its undo, killed at every step of the protocol, and what can be done then."""

import contextlib

import pytest

from support import killed
from support.kill_cases import CASES, Parts
from support.killing import UNDO, Killing, combinations, undoable
from support.streams_apps import Cluster

pytestmark = pytest.mark.broker

OURS = [case for case in CASES if case.lane == "connect"]
FEW = {("connect.change", killed.FIRST, UNDO)}


@pytest.fixture
def kill(connect_workers, unique, tmp_path, run_kops, monkeypatch, request):
    monkeypatch.setenv("KOPS_CONNECT_URLS", ",".join(connect_workers.urls))
    cluster, name, options = Cluster(connect_workers.bootstrap_servers), unique("killed"), ("-B", connect_workers.bootstrap_servers)
    parts = Parts(cluster, name, tmp_path, lambda *arguments: run_kops(*arguments, *options).ok(), request.getfixturevalue)
    yield lambda case: Killing(case, parts, run_kops, options)
    for connector in connect_workers.ask("GET", "/connectors"):
        if connector.startswith(name):
            with contextlib.suppress(AssertionError):  # its deletion may be under way
                connect_workers.ask("DELETE", f"/connectors/{connector}")
    left = cluster.topics(name)
    if left:
        cluster.delete_all(left)


@pytest.mark.parametrize(("case", "step", "then"), combinations(OURS, FEW))
def test_killed(kill, case, step, then):
    kill(case).of_the_command(step, then)


@pytest.mark.parametrize(("case", "step", "then"), combinations(undoable(OURS), ()))
def test_its_undo_killed(kill, case, step, then):
    kill(case).of_its_undo(step, then)

"""A broker that stops answering, and comes back: a time-out that says what is known, and a watch that goes on."""

import os
import signal

import pytest

from kops.sandbox.parts import recorded
from support.patience import HANG_SECONDS
from support.processes import freeze
from support.programs import Record
from support.streams_apps import Cluster, wait_for

pytestmark = pytest.mark.broker


@pytest.fixture
def frozen(own_broker):
    """A broker with a group that is behind; call ``freeze()`` and ``thaw()``."""
    own = own_broker()
    cluster = Cluster(own.bootstrap_servers)
    cluster.create("orders", 2)
    cluster.produce("orders", [Record(None, b"x", 1_000_000, partition=0)])
    cluster.commit("billing", {("orders", 0): 0, ("orders", 1): 0})
    pid = recorded(own.part()).pid
    own_signals = {"freeze": lambda: freeze(pid), "thaw": lambda: os.kill(pid, signal.SIGCONT)}
    yield own, own_signals
    os.kill(pid, signal.SIGCONT)


def begun(start):
    """A watch whose first look succeeded; one that ended with 4 met a machine that is slow, not a broker that is silent."""
    while not (first := (watch := start()).stdout.readline()):
        assert watch.wait(HANG_SECONDS) == 4, watch.stderr.read()
    assert '"lag": 1' in first
    return watch


def test_a_broker_that_stops_answering_is_reported(frozen, run_kops, kops_process, home):
    own, switch = frozen
    servers = own.bootstrap_servers

    def kops(*arguments, within="2"):
        return run_kops(*arguments, "-B", servers, "--timeout", within)

    kops("groups", "lag", "billing", within="60").ok()
    watch = begun(lambda: kops_process("groups", "lag", "billing", "--watch=300ms", "--timeout", "2", "-o", "json", "-B", servers))
    switch["freeze"]()
    for command in (["list"], ["describe", "billing"], ["lag", "billing"], ["lag", "billing", "-o", "json"]):
        late = kops("groups", *command)
        assert late.code == 4, (late.code, late.err)
        assert "within 2 s" in late.err or "timed out" in late.err.lower(), late.err
        assert late.out == ""
    gone = kops("groups", "delete", "billing", "--confirm", "billing")
    assert gone.code == 4
    assert not (home / "state" / "kops" / "journal").exists()  # nothing was begun
    reported = watch.stderr.readline()
    assert "could not" in reported, (reported, watch.poll(), watch.stderr.read() if watch.poll() is not None else "")
    switch["thaw"]()
    lines = [watch.stdout.readline() for _ in range(3)]
    assert '"lag": 1' in lines[-1], (lines, watch.poll(), watch.stderr.read() if watch.poll() is not None else "")
    watch.send_signal(signal.SIGINT)
    assert watch.wait(HANG_SECONDS) == 130
    assert "interrupted" not in watch.stderr.read()
    wait_for("the broker", lambda: kops("groups", "lag", "billing", within="60").code == 0)

"""The keys of a sandbox's JSON, which programs rely on; of a sandbox that does not run, so that nothing is started for it."""

import pytest

from kops.sandbox.model import Node, Sandbox, Worker, save
from support.command_line import run_kops
from support.json_keys import SANDBOX_KEYS, keys_of

__all__ = ["run_kops"]


@pytest.fixture
def sandbox(home):
    made = Sandbox(
        home / "data" / "kops" / "sandbox" / "sandbox",
        "sandbox",
        "4.3.1",
        "id",
        (Node(1, 21001, 21002), Node(2, 21003, 21004)),
        workers=(Worker(1, 21005),),
        registry_port=21006,
    )
    for node in made.nodes:
        made.folder(node).mkdir(parents=True)
        made.log_file(node).write_text("started\n")
    save(made)
    return made


def test_status_logs_and_down(sandbox, run_kops):
    status = run_kops("sandbox", "status", "-o", "json")
    assert (status.code, status.json["state"]) == (1, "stopped")
    assert keys_of(status.out) == SANDBOX_KEYS
    assert keys_of(run_kops("sandbox", "logs", "-o", "json").ok().out) == {"part", "broker", "line"}
    for delete in ((), ("--delete",)):
        assert set(run_kops("sandbox", "down", *delete, "-o", "json").ok().json) == {"name", "state", "stopped_brokers"}


def test_plugins(run_kops):
    assert run_kops("plugins", "list", "-o", "json").ok().json == []

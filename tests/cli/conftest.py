"""Fixtures of the command line: the broker as the configured one, and a mutation that can be stopped in the middle."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kops.core.plan import plan_document
from support.command_line import hear_interrupts
from support.patience import HANG_SECONDS

SCRIPT = Path(__file__).parent / "slow_mutation.py"


@pytest.fixture
def configured(broker, monkeypatch):
    """Let every kops of the test use the broker."""
    monkeypatch.setenv("KOPS_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
    return broker


@pytest.fixture
def cluster_id(broker):
    from confluent_kafka.admin import AdminClient

    admin = AdminClient(broker.client)
    return admin.describe_cluster(request_timeout=HANG_SECONDS).result(HANG_SECONDS).cluster_id


class Slow:
    """The slow mutation: its plan, its folder, and kops as a process that knows it."""

    def __init__(self, folder: Path, plan: Path) -> None:
        self.folder = folder
        self.plan = plan
        self.started: list[subprocess.Popen] = []

    def start(self, *arguments, **options):
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        pipes["preexec_fn"] = hear_interrupts
        command = [sys.executable, str(SCRIPT), *map(str, arguments)]
        process = subprocess.Popen(command, **{**pipes, "env": dict(os.environ), **options})
        self.started.append(process)
        return process

    def run(self, *arguments):
        """Run it to its end and return exit code, stdout and stderr."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=HANG_SECONDS)
        return process.returncode, out, err

    def wait_for(self, name):
        """Wait until a file is there: an item, or ``waiting``."""
        deadline = time.monotonic() + HANG_SECONDS
        while not (self.folder / name).exists():
            assert time.monotonic() < deadline
            assert self.started[-1].poll() is None, self.started[-1].communicate()
            time.sleep(0.01)

    def go(self):
        (self.folder / "go").touch()

    @property
    def items(self):
        return sorted(path.name for path in self.folder.iterdir() if path.name not in ("go", "waiting"))


@pytest.fixture
def slow(tmp_path, cluster_id, configured, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    from slow_mutation import slow_plan

    folder, plan = tmp_path / "items", tmp_path / "plan.json"
    folder.mkdir()
    plan.write_text(json.dumps(plan_document(slow_plan(cluster_id, folder))))
    made = Slow(folder, plan)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.communicate()

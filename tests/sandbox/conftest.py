import os
import time

import pytest

from kops.config.paths import directories
from kops.sandbox import cluster, parts
from kops.sandbox.model import load
from support.patience import HANG_SECONDS
from support.streams_apps import LONGEST_PAUSE


@pytest.fixture
def sandboxes(home, kafka_jar_files):
    """The folder of this test's sandboxes; none of them outlives the test."""
    folder = directories(os.environ).data / "sandbox"
    yield folder
    for description in folder.glob("*/sandbox.json"):
        sandbox = load(description.parent)
        for part in cluster.parts_of(sandbox):
            parts.kill_at_once(part)
        cluster.down(sandbox, delete=True)


@pytest.fixture
def until():
    """Wait for a condition: ``until(lambda: file.exists())``."""

    def wait(condition, seconds=HANG_SECONDS):
        deadline, pause = time.monotonic() + seconds, 0.05
        while not condition():
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(pause)
            pause = min(1.3 * pause, LONGEST_PAUSE)

    return wait

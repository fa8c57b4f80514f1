import os

import pytest

from kops.config.paths import directories
from kops.sandbox import cluster, parts
from kops.sandbox.model import load


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

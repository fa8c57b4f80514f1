"""What kops says when Spark's JVM is gone; the real one is killed in tests/replay/test_killed.py."""

import subprocess
import sys

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from kops.cli.frame.failure import describe
from kops.core.errors import OperationFailed
from kops.spark.driver import failures, launch

SILENT = [
    ConnectionRefusedError(111, "Connection refused"),
    Py4JError("py4j does not exist in the JVM"),
    Py4JNetworkError("Answer from Java side is empty"),
]


@pytest.fixture
def jvm(monkeypatch):
    """Return a process in the place of Spark's JVM."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        monkeypatch.setattr(launch, "_accepting", process)
        yield process
        process.kill()


@pytest.mark.parametrize("error", SILENT, ids=lambda error: type(error).__name__)
def test_a_jvm_that_was_ended_is_named_with_the_signal(jvm, error):
    jvm.kill()
    with pytest.raises(OperationFailed, match="could not count: Spark's JVM was ended by SIGKILL"), failures.explained("count"):
        raise error
    assert describe(error)[0]["message"] == "Spark's JVM was ended by SIGKILL; was it out of memory?"


def test_errors_of_a_jvm_that_runs_stay_what_they_are(jvm, monkeypatch):
    monkeypatch.setattr(failures, "_ENDING_SECONDS", 0.01)
    with pytest.raises(OperationFailed, match="could not count: py4j does not exist in the JVM"), failures.explained("count"):
        raise SILENT[1]
    with pytest.raises(ConnectionRefusedError), failures.explained("count"):
        raise SILENT[0]
    assert describe(SILENT[0])[0]["code"] == "bug"

"""Tasks of a replay in processes of their own: their answers, their ends, and that none outlives who started it."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from kops.core.errors import OperationFailed
from kops.spark.replay.tasks import Processes

SECONDS = 240


def double(number):
    return 2 * number


def fail(why):
    raise ValueError(why)


def end():
    os._exit(3)


def note_and_wait(folder, number):
    """Say who runs, and wait to be ended."""
    try:
        Path(folder, str(number)).write_text(str(os.getpid()))
        time.sleep(SECONDS)
    finally:
        Path(folder, f"{number}-aborted").touch()


def runs(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # the latter when it ends between the opening and the reading
        return False
    return not stat.rpartition(")")[2].split()[0].startswith("Z")


def wait_until(condition):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_answers_come_in_the_order_of_the_tasks_however_few_run_at_once():
    assert Processes(2).run([partial(double, number) for number in range(7)]) == [2 * number for number in range(7)]
    assert Processes(3).run([]) == []


@pytest.mark.parametrize(("task", "said"), [(partial(fail, "no such record"), "ValueError: no such record"), (end, "ended with 3")])
def test_one_that_fails_ends_the_others(tmp_path, task, said):
    others = partial(note_and_wait, str(tmp_path), 1)

    def both():
        return Processes(2).run([others, task])

    with pytest.raises(OperationFailed, match=said):
        both()
    found = tmp_path / "1"
    told = found.read_text() if found.exists() else ""  # it may have been ended just before it noted its number
    assert not told or not runs(int(told))
    assert found.exists() == (tmp_path / "1-aborted").exists()


def test_they_end_with_who_wanted_them(tmp_path):
    here = str(Path(__file__).parent)
    script = (
        f"import sys; sys.path.insert(0, {here!r}); import test_tasks as t; from functools import partial\n"
        f"t.Processes(2).run([partial(t.note_and_wait, {str(tmp_path)!r}, n) for n in range(2)])"
    )
    parent = subprocess.Popen([sys.executable, "-c", script])
    wait_until(lambda: all((tmp_path / str(number)).exists() and (tmp_path / str(number)).read_text() for number in range(2)))
    workers = [int((tmp_path / str(number)).read_text()) for number in range(2)]
    assert all(map(runs, workers))
    parent.send_signal(signal.SIGKILL)
    parent.wait(SECONDS)
    wait_until(lambda: not any(map(runs, workers)))

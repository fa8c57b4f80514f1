"""What a task does when kops ends meanwhile."""

import os
import signal

import pytest

from kops.spark.replay.jobs import _aborted_on_hangup


def test_hangup_unwinds_the_task_so_that_it_aborts():
    before = signal.getsignal(signal.SIGHUP)

    def hung_up():
        with _aborted_on_hangup():
            os.kill(os.getpid(), signal.SIGHUP)

    try:
        with pytest.raises(SystemExit):
            hung_up()
        assert signal.alarm(0) > 0, "nothing would end a task whose broker does not answer"
    finally:
        signal.alarm(0)
    assert signal.getsignal(signal.SIGHUP) is before

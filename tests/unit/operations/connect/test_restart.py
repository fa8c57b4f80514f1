"""When a restart counts as done: everything runs and goes on running, or what failed has failed again."""

import pytest

from kops.core.connect.models import connector_of
from kops.core.plan import ItemResult, Status
from kops.operations.connect.restart import STALE_SECONDS, STEADY_SECONDS, Watch
from support.faulty_connect import expanded

TRACE = "a.B: outer\n\tat x\nCaused by: java.io.IOException: disk full, password=s3cret9"


def look(watch, second, *tasks, state="RUNNING"):
    config = {"connector.class": "a.B", "db.password": "s3cret9"}
    watch.observe(connector_of("c", expanded("c", *tasks, state=state, trace=TRACE, config=config)), 100.0 + second)
    return watch.decided


def result(watch):
    return watch.result(ItemResult("c", Status.DONE))


def test_restart_is_done_after_running_steadily():
    watch = Watch((), needs_tasks=True)
    assert not look(watch, 0, "RUNNING", "RUNNING")
    assert not look(watch, STEADY_SECONDS - 0.1, "RUNNING", "RUNNING")
    assert look(watch, STEADY_SECONDS, "RUNNING", "RUNNING")
    assert (result(watch).status, result(watch).value) == (Status.DONE, {"state": "RUNNING", "tasks": ["RUNNING", "RUNNING"]})


def test_stale_failure_is_ignored():
    watch = Watch((), needs_tasks=True)
    assert not look(watch, 0, "FAILED")
    assert not look(watch, STALE_SECONDS - 0.1, "FAILED")
    assert not look(watch, STALE_SECONDS, "RUNNING")
    assert look(watch, STALE_SECONDS + STEADY_SECONDS, "RUNNING")
    assert result(watch).status is Status.DONE


@pytest.mark.parametrize("between", ["RUNNING", "RESTARTING", "UNASSIGNED"])
def test_new_failure_is_reported_without_secrets(between):
    watch = Watch((), needs_tasks=True)
    assert not look(watch, 0, "FAILED", "RUNNING")
    assert not look(watch, 0.3, between, "RUNNING")
    assert look(watch, 0.6, "FAILED", "RUNNING")
    failed = result(watch)
    assert failed.status is Status.FAILED
    assert failed.error["message"] == "c: task 0 failed again: java.io.IOException: disk full, password=********"


def test_persistent_failure_is_reported():
    watch = Watch((), needs_tasks=True)
    look(watch, 0, "FAILED")
    assert look(watch, STALE_SECONDS + 0.1, "FAILED")
    assert result(watch).status is Status.FAILED


def test_only_requested_tasks_count():
    watch = Watch((1,), needs_tasks=True)
    look(watch, 0, "FAILED", "RUNNING")
    assert look(watch, STEADY_SECONDS, "FAILED", "RUNNING")
    assert result(watch).status is Status.DONE


def test_missing_tasks_and_connectors_without_tasks():
    watch = Watch((), needs_tasks=True)
    look(watch, 0)
    assert not look(watch, 60)
    assert result(watch).error["message"] == "c: it has no tasks"
    watch = Watch((), needs_tasks=False)
    look(watch, 0)
    assert look(watch, STEADY_SECONDS)
    waiting = Watch((), needs_tasks=True)
    look(waiting, 0, "UNASSIGNED")
    assert "Connect is rebalancing" in result(waiting).error["hint"]
    waiting.observe(None, 200.0)
    assert (waiting.decided, result(waiting).status) == (True, Status.FAILED)

"""A worker killed with tasks on it: kops asks the other one, and shows where the tasks run again."""

import pytest

pytestmark = pytest.mark.broker


def test_tasks_of_a_killed_worker_run_on_the_other(kops, pipeline, connect_workers, until):
    victim = connect_workers.worker_of(pipeline.source)
    other = next(worker for worker in connect_workers.cluster.workers if worker != victim)
    connect_workers.kill(victim)
    try:
        if victim.id == 1:
            assert "trying the next worker" in kops("list").ok().err
        kops("pause", pipeline.sink, "--yes", "--timeout", "60").ok()  # through the rebalance
        kops("resume", pipeline.sink, "--yes").ok()

        def workers():
            found = kops("status", pipeline.source, pipeline.sink, "-o", "json").json
            return {task["worker"] for one in found for task in one["tasks"] if task["state"] == "RUNNING"}

        until("the tasks to move", lambda: workers() == {f"127.0.0.1:{other.port}"})
        with pipeline.read.open("a") as file:
            file.write("after the kill\n")
        until("the row to pass", lambda: "after the kill" in pipeline.output)
    finally:
        connect_workers.up()
    until("all of it to run again", lambda: kops("status", pipeline.source, pipeline.sink).code == 0)

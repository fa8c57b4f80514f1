"""A rebuild during which somebody joins the application's group: the result says so, and not that it can be started."""

import json

import pytest
from confluent_kafka import Consumer

from kops.operations.state import change
from support.programs import Program, Record
from support.streams_apps import wait_for
from support.streams_cases import START

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]


def test_instance_that_joins_during_a_rebuild_is_reported(cluster, prefix, tmp_path, run_kops, monkeypatch):
    program = Program("count", "long", value="bytes").named(prefix)
    cluster.create(program.topic, 1)
    cluster.create(program.changelog, 1, {"cleanup.policy": "compact"})
    cluster.produce(program.topic, [Record(b"laptop", b"x", START)])
    cluster.commit(program.application, {(program.topic, 0): 1})
    file = tmp_path / "state.yaml"
    file.write_text(json.dumps(program.state_file()), encoding="utf-8")
    command = ("state", "rebuild", file, "-B", cluster.servers, "--yes")
    instance = Consumer({"bootstrap.servers": cluster.servers, "group.id": program.application, "enable.auto.commit": False})
    append = change.append

    def joined_first(*at):
        instance.subscribe([program.topic])
        wait_for("the instance to join", lambda: instance.poll(0.1) is not None or instance.assignment())
        yield from append(*at)

    try:
        with monkeypatch.context() as patch:
            patch.setattr(change, "append", joined_first)
            disturbed = run_kops(*command, "-o", "json")
    finally:
        instance.close()
    assert (disturbed.code, disturbed.json["status"]) == (6, "partial"), disturbed
    (error,) = disturbed.json["errors"]
    assert f"1 instance of {program.application} joined" in error["message"]
    assert "can be started" not in disturbed.err
    (left,) = run_kops("journal", "list", "--unfinished", "-o", "json").ok().json
    assert left["id"] == disturbed.json["journal_id"]
    assert "nothing to do" in run_kops(*command).ok().err
    assert run_kops("journal", "list", "--unfinished", "-o", "json").ok().json == []

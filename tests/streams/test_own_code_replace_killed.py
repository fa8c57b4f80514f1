"""kops killed while it writes a changelog with headers that was gone and that it had created: repeated, or finished from the journal."""

import pytest

from support import processes
from support.captured import built_agent
from support.own_apps import FIRST_MS, App
from support.own_kinds import INPUTS, PARTITIONS
from support.programs import Record
from support.streams_apps import wait_for

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

COUNT = 2000
SLOW, SMALL_BATCHES = 500, ("-X", "message.max.bytes=2000")
"""Bytes a second that the broker takes of the kops that is to be killed, and of a request."""


@pytest.fixture(autouse=True, scope="module")
def agent():
    return built_agent()


@pytest.mark.long
@pytest.mark.parametrize("how", ["repeat", "finish"])
def test_a_killed_replacement_with_headers_is_completed(cluster, prefix, run_kops, kops_process, tmp_path, how):
    app = App(cluster, "kinds", prefix, tmp_path / "app", main="Kinds", inputs=["tagged"])
    names, changelog, client = (*INPUTS, "tagged", "out"), app.topic("headed-changelog"), f"{prefix}-slow"
    cluster.create_all({app.topic(name): PARTITIONS[name] for name in names})
    given = [Record(b"key-%d" % at, b"a%d" % at, FIRST_MS + at, (("trace", b"%d" % at),)) for at in range(COUNT)]
    cluster.produce(app.topic("tagged"), given)
    app.run()
    held, settings, committed = app.view("headed"), cluster.config(changelog), cluster.committed(prefix)
    assert {key: entry.headers for key, entry in held.items()} == {record.key: record.headers for record in given}
    capture, plan = tmp_path / "capture.json", tmp_path / "plan.json"
    run_kops("streams", "capture", "--out", capture, "--", *app.command).ok()
    cluster.delete(changelog)
    words = ("rebuild", "--app", capture, "--store", "headed", "--write", "replace", "--accept-doubtful", "-B", cluster.servers)
    run_kops("state", *words, "--plan-out", plan).ok()
    cluster.slow_down(client, SLOW)
    to = ("-B", cluster.servers, "--confirm", changelog)
    process = kops_process("apply", plan, *to, "-X", f"client.id={client}", *SMALL_BATCHES)

    def writes() -> bool:
        assert process.poll() is None, process.communicate()
        return changelog in cluster.topics(changelog) and len(app.view("headed")) > 1

    wait_for("the first records of the changelog", writes)
    processes.end(process)
    cluster.hear_out(client)
    assert 1 < len(app.view("headed")) < COUNT
    entry = run_kops("journal", "list", "-o", "json").ok().json[0]
    assert (entry["operation"], entry["status"]) == ("state.replace", "crashed")
    if how == "repeat":
        done = run_kops("state", *words, "--confirm", changelog).ok()
        assert "made by an earlier attempt, which stopped while it wrote" in done.out + done.err
    else:
        run_kops("journal", "finish", entry["id"], *to).ok()
    assert app.view("headed") == held
    assert cluster.config(changelog) == settings
    assert cluster.committed(prefix) == committed
    assert run_kops("journal", "list", "--unfinished", "-o", "json").ok().json == []
    run_kops("undo", "last", "-B", cluster.servers, "--confirm", prefix).ok()
    assert changelog not in cluster.topics(changelog)

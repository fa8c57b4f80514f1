"""Plan files and journal entries of kops 0.1 for changes of state: shown, carried out, finished and undone by the kops of now."""

import json
import os
from pathlib import Path

import pytest

from support.older_moves import KINDS, Kept, expected, set_up, topic_ids
from support.streams import compacted_view

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]


@pytest.fixture
def older(cluster, prefix, tmp_path, run_kops):
    """Set an application up as an older kops found it; return it, what that kops wrote, and the ids of the topics."""

    def make(kind: str):
        application = set_up(cluster, kind, prefix, tmp_path)
        if kind == "restore":
            cluster.delete(application.program.changelog)
        cluster_id = run_kops("cluster", "describe", "-B", cluster.servers, "-o", "json").ok().json["cluster_id"]
        kept = Kept(kind, prefix, cluster_id, Path(os.environ["XDG_STATE_HOME"]) / "kops")
        return application, kept, topic_ids(run_kops, cluster.servers, prefix)

    return make


def held(cluster, topic):
    """Return what a changelog holds; None when it does not exist."""
    return compacted_view(cluster.read(topic)) if topic in cluster.topics(topic) else None


def counts(cluster, kind, application):
    return {key: (one.value, one.timestamp, one.partition) for key, one in expected(cluster, kind, application).items()}


def values(view):
    return {key: (entry.value, entry.timestamp, entry.partition) for key, entry in view.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_older_journal_entry_is_shown_finished_and_undone(cluster, run_kops, older, kind):
    application, kept, ids = older(kind)
    before, committed = held(cluster, application.changed), cluster.committed(application.program.application)
    servers, confirm = ("-B", cluster.servers), ("--yes", "--confirm", application.confirm)
    crashed = kept.install(kept.crashed(ids))
    shown = run_kops("journal", "show", crashed, "-o", "json").ok().json
    assert (shown["plan"]["operation"], shown["status"]) == (f"state.{kind}", "crashed")
    run_kops("journal", "finish", crashed, *servers, *confirm).ok()
    assert values(held(cluster, application.changed)) == counts(cluster, kind, application)
    assert run_kops("journal", "list", "--unfinished", "-o", "json").ok().json == []

    for entry in (kept.state / "journal").glob("*.json"):
        entry.unlink()
    done = kept.install(kept.done(ids, topic_ids(run_kops, cluster.servers, kept.prefix)))
    run_kops("undo", done, *servers, "--yes", "--confirm", kept.plan(ids)["arguments"]["application"]).ok()
    assert held(cluster, application.changed) == before
    assert cluster.committed(application.program.application) == committed
    assert run_kops("journal", "list", "-o", "json").ok().json[1]["status"] == "undone"


@pytest.mark.parametrize("kind", KINDS)
def test_older_plan_file_is_carried_out(cluster, run_kops, older, tmp_path, kind):
    application, kept, ids = older(kind)
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(kept.plan(ids)), encoding="utf-8")
    kept.stages()
    run_kops("apply", file, "-B", cluster.servers, "--yes", "--confirm", application.confirm).ok()
    assert values(held(cluster, application.changed)) == counts(cluster, kind, application)

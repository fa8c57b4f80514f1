"""docs/state.md, "By a copy of the application": the commands of that section, by which a copy shows and gives back what was lost."""

from dataclasses import replace

import pytest

from support import forked
from support.captured import built_agent
from support.own_apps import App, records
from support.streams_apps import Cluster

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

STORES = ("texts", "windows", "letters")


def held(app):
    return {store: app.view(store) for store in STORES}


@pytest.fixture
def lost(cluster, prefix, tmp_path):
    """An application that stopped and lost its state, then got more input; its tasks cannot be run by themselves."""
    built_agent()
    app = App(cluster, "texts", f"{prefix}-app", tmp_path / "app", fork=forked.renamed)
    cluster.create_all({app.topic("in"): 3, app.topic("out"): 3})
    cluster.produce(app.topic("in"), records(600))
    app.run()
    before = held(app)
    cluster.produce(app.topic("in"), records(50, seed=2))
    for store in STORES:
        cluster.empty(app.topic(f"{store}-changelog"))
    return app, before


@pytest.mark.long
def test_a_copy_on_the_same_cluster_gives_the_state_back(lost, run_kops, cluster, tmp_path):
    app, before = lost
    at, capture = ("-B", cluster.servers), tmp_path / "capture.json"
    run_kops("streams", "capture", "--out", capture, "--", *app.command).ok()
    refused = run_kops("state", "rebuild", "--app", capture, "--store", "texts", "--yes", *at)
    assert refused.code == 1, refused.err
    assert "the tasks of this Kafka Streams cannot be run one by one: java.lang.NoSuchMethodError" in refused.err
    assert "run a copy of the application" in refused.err

    copy = replace(app, application=f"{app.application}-copy", folder=tmp_path / "copy")
    for name in ("in", "out"):
        run_kops("topics", "create", copy.topic(name), "--like", app.topic(name), "--config", "retention.ms=-1", "--yes", *at).ok()
    run_kops("replay", "run", app.topic("in"), "--to", copy.topic("in"), "--until-group", app.application, "--yes", *at).ok()
    copy.run()
    assert run_kops("groups", "lag", copy.application, "--by", "group", "-o", "json", *at).ok().json[0]["lag"] == 0
    run_kops("streams", "capture", "--out", capture, "--", *copy.command).ok()
    differ = run_kops("state", "diff", "--app", capture, "--against", app.application, "--limit", "1000", "-o", "json", *at)
    assert differ.code == 1, differ.err
    assert {row["store"] for row in differ.json} == set(STORES)

    committed = cluster.committed(app.application)
    taken = tmp_path / "taken"
    run_kops("state", "snapshot", copy.application, "--to", taken, *at).ok()
    run_kops("state", "restore", taken, "--application", app.application, "--no-offsets", "--yes", *at).ok()
    assert held(app) == before
    assert cluster.committed(app.application) == committed
    run_kops("state", "diff", "--app", capture, "--against", app.application, *at).ok()
    run_kops("groups", "delete", copy.application, "--confirm", copy.application, *at).ok()
    run_kops("topics", "delete", f"{copy.application}-*", "--confirm", "6 topics", "--yes", *at).ok()
    assert not cluster.topics(copy.application)


@pytest.mark.long
def test_a_copy_on_another_cluster_gives_the_state_back(lost, second_broker, run_kops, cluster, tmp_path):
    """For a program that names its topics in its code: there all names are the same."""
    app, before = lost
    second, taken = Cluster(second_broker.bootstrap_servers), tmp_path / "taken"
    for name, servers in (("here", cluster.servers), ("second", second.servers)):
        run_kops("context", "add", name, "--bootstrap-servers", servers).ok()
    copy = replace(app, cluster=second, folder=tmp_path / "copy")
    for name in ("in", "out"):
        run_kops("-c", "second", "topics", "create", app.topic(name), "-p", "3", "--config", "retention.ms=-1", "--yes").ok()
    to = ("--to", app.topic("in"), "--to-context", "second", "--until-group", app.application)
    run_kops("-c", "here", "replay", "run", app.topic("in"), *to, "--yes").ok()
    copy.run()
    run_kops("-c", "second", "state", "snapshot", app.application, "--to", taken).ok()
    shown = run_kops("-c", "here", "state", "restore", taken, "--no-offsets", "--dry-run").ok()
    assert app.topic("texts-changelog") in shown.out
    run_kops("-c", "here", "state", "restore", taken, "--no-offsets", "--yes").ok()
    assert held(app) == before

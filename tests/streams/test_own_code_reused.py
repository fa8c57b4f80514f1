"""A captured program's table whose topic is its changelog: there is nothing to rebuild, and it can be asked."""

import pytest

from support.captured import built_agent
from support.own_apps import App, records
from support.streams import compacted_view

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]


@pytest.fixture(autouse=True, scope="module")
def agent():
    return built_agent()


def test_a_table_is_read_from_its_topic_up_to_where_the_application_was(cluster, prefix, run_kops, tmp_path):
    app = App(cluster, "reused", prefix, tmp_path / "app", settings=["topology.optimization=all"])
    cluster.create(app.topic("in"), 2, {"cleanup.policy": "compact"})
    cluster.produce(app.topic("in"), records(100))
    app.run()
    held = {key.decode(): entry.value.decode() for key, entry in compacted_view(cluster.read(app.topic("in"))).items()}
    cluster.produce(app.topic("in"), records(20, seed=2))  # not read yet
    assert not [topic for topic in cluster.topics(prefix) if topic.endswith("-changelog")]
    capture = tmp_path / "capture.json"
    run_kops("streams", "capture", "--out", capture, "--", *app.command).ok()

    common = ("--app", capture, "-B", cluster.servers, "-o", "json")
    for origin in ("changelog", "input"):
        asked = run_kops("state", "query", *common, "--all", "--from", origin).ok().json
        assert {row["key"]: row["value"] for row in asked} == held, origin
    one = run_kops("state", "query", *common, "key-1").ok().json
    assert [row["value"] for row in one] == [held["key-1"]]
    refused = run_kops("state", "verify", *common)
    assert refused.code == 5
    assert "is its changelog itself" in refused.err

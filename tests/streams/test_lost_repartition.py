"""An application whose changelog and repartition topic were deleted (KAFKA-10357): what kops advises gives the right state."""

import re
import shlex

import pytest

from support.captured import built_agent
from support.own_apps import App, records

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]


@pytest.fixture(autouse=True, scope="module")
def agent():
    return built_agent()


def counted(*several):
    """Return how many values begin with each letter."""
    found = {}
    for record in (record for some in several for record in some):
        found[record.value[:1]] = found.get(record.value[:1], 0) + 1
    return found


def test_the_topic_is_created_as_the_hint_says_and_the_application_counts_on(cluster, prefix, run_kops, tmp_path):
    app = App(cluster, "texts", prefix, tmp_path / "app")
    cluster.create_all({app.topic("in"): 3, app.topic("out"): 3})
    first, second = records(300), records(100, seed=2)
    cluster.produce(app.topic("in"), first)
    app.run()
    letters = app.view("letters")
    capture = tmp_path / "capture.json"
    run_kops("streams", "capture", "--out", capture, "--", *app.command).ok()
    repartition, changelog = app.topic("letters-repartition"), app.topic("letters-changelog")
    settings = {name: cluster.config(name) for name in (repartition, changelog)}
    cluster.delete(repartition, changelog)
    app.forget()

    common = ("--app", capture, "--store", "letters", "-B", cluster.servers)
    refused = run_kops("state", "rebuild", *common, "--yes")
    assert refused.code == 5
    assert "do not start the application without it" in refused.err
    assert "makes its" not in refused.err
    (command,) = re.findall(r"`kops (topics create [^`]*)`", refused.err.replace("\n", " "))
    run_kops(*shlex.split(command), "-B", cluster.servers, "--yes").ok()
    assert (cluster.topics(repartition)[repartition], cluster.config(repartition)) == (3, settings[repartition])

    asked = run_kops("state", "query", *common, "--all", "--from", "input", "-o", "json").ok().json
    assert {row["key"].encode(): row["value"] for row in asked} == counted(first)
    absent = run_kops("state", "rebuild", *common, "--yes")
    assert absent.code == 2
    assert "--write replace recreates it; do not start the application" in absent.err.replace("\n", " ")
    run_kops("state", "rebuild", *common, "--write", "replace", "--confirm", changelog).ok()
    assert app.view("letters") == letters
    assert cluster.config(changelog) == settings[changelog]

    cluster.produce(app.topic("in"), second)
    app.run()
    assert {key: int.from_bytes(entry.value, "big") for key, entry in app.view("letters").items()} == counted(first, second)

"""A program with auto.offset.reset=latest: where it began is only known if commits show that it was at offset 0."""

import pytest

from support.captured import built_agent
from support.own_apps import App, records
from support.verified import summaries

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]


@pytest.fixture(autouse=True, scope="module")
def agent():
    return built_agent()


@pytest.mark.parametrize(("began", "verdict"), [((0, 0), "proven"), pytest.param((0, 5), "impossible", marks=pytest.mark.long)])
def test_a_start_at_offset_0_is_seen_and_any_other_is_not_assumed(cluster, prefix, run_kops, tmp_path, began, verdict):
    app = App(cluster, "texts", prefix, tmp_path / "app", settings=["auto.offset.reset=latest"])
    cluster.create_all({app.topic("in"): 2, app.topic("out"): 2})
    cluster.produce(app.topic("in"), records(300))
    cluster.commit(prefix, {(app.topic("in"), number): offset for number, offset in enumerate(began)})
    app.run()
    capture = tmp_path / "capture.json"
    run_kops("streams", "capture", "--out", capture, "--", *app.command).ok()
    found = run_kops("state", "verify", "--app", capture, "--store", "texts", "-B", cluster.servers, "-o", "json")
    (row,) = found.json
    assert row["verdict"] == verdict, row
    said = summaries(row)
    assert ("where it began is not known" in said) == (verdict == "impossible")
    if verdict == "impossible":
        assert f"the oldest known commit of {app.topic('in')}:1 is at 5" in said
        return
    assert found.code == 0
    held = app.view("texts")
    cluster.empty(app.topic("texts-changelog"))
    run_kops("state", "rebuild", "--app", capture, "--store", "texts", "-B", cluster.servers, "--yes").ok()
    assert app.view("texts") == held

"""`kops state rebuild --app`: an application with a store of each kind loses all of them, and gets them back."""

import json
import shutil

import pytest

from support.captured import built_agent
from support.generated_truth import Claim
from support.own_apps import FIRST_MS, App
from support.own_kinds import INPUTS, PARTITIONS, SECOND, UNTIMED, given, view_of
from support.programs import Record

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

SURE = {"sessions", "windows", "closed-store", "orders-store", "customers-store", "of-customers-subscription-store", "versions"}
"""To the byte, with their timestamps; the three of the foreign-key join since runs in several orders agree."""


@pytest.fixture(autouse=True, scope="module")
def agent():
    return built_agent()


@pytest.fixture
def app(cluster, prefix, tmp_path, request):
    def run(version):
        inputs = [*INPUTS, "tagged"] if version >= "4.3" else [*INPUTS]
        made = App(cluster, "kinds", prefix, tmp_path / "app", version, main="Kinds", inputs=[name for name in inputs if name != "names"])
        made.settings = [SECOND]
        topics = {made.topic(name): PARTITIONS[name] for name in (*inputs, "out")}
        request.addfinalizer(lambda: cluster.delete_all(cluster.topics().keys() & topics.keys()))
        cluster.create_all(topics)
        cluster.produce_all({made.topic(name): given(name, seed) for seed, name in enumerate(inputs)})
        made.run()
        return made

    return run


def check_kinds(version, app, run_kops, cluster, tmp_path, *, looks=False):
    """Return the application, rebuilt; what its changelogs held before, but that of versions; and a record of one that was wrong.

    :param looks: verify before anything is lost, too
    """
    made = app(version)
    capture = tmp_path / "capture.json"
    run_kops("streams", "capture", "--out", capture, "--", *made.command).ok()
    stores = [each["name"] for each in json.loads(capture.read_text())["stores"] if each["kind"] != "versioned"]
    before = {store: view_of(made, store) for store in stores}
    assert all(before.values()), before
    assert {each.headers for each in before["closed-store"].values()} == {(("v", b"\x03"),)}
    if looks:
        seen = {row["store"]: row for row in run_kops("state", "verify", "--app", capture, "-B", cluster.servers, "-o", "json").json}
        assert {name for name, row in seen.items() if row["verdict"] != "proven"} <= UNTIMED, seen

    for store in stores:
        cluster.empty(made.topic(f"{store}-changelog"))
    key, entry = next(iter(before["closed-store"].items()))
    wrong = Record(key, bytes(8) + entry.value[8:], FIRST_MS, (*entry.headers, ("more", b"1")), entry.partition)  # of another time
    cluster.produce(made.topic("closed-store-changelog"), [wrong])
    run_kops("state", "rebuild", "--app", capture, "--accept-doubtful", "--damaged", "closed-store", "--yes", "-B", cluster.servers).ok()
    assert {store: view_of(made, store) for store in stores} == before
    plan = run_kops("journal", "show", "last", "-o", "json").json["plan"]
    claims = {name: Claim.of(store) for name, store in plan["arguments"]["stores"].items()}
    assert {name for name, claim in claims.items() if claim.is_whole and claim.is_exact} == SURE, claims
    return made, before, wrong


def test_stores_of_each_kind_come_back(app, run_kops, cluster, tmp_path):
    """The application restores them without local state, and sends what windows that close held before: each result once, and right."""
    made, _, _ = check_kinds("4.4.0", app, run_kops, cluster, tmp_path)
    shutil.rmtree(made.folder / "state")
    cluster.produce(made.topic("in"), [Record(b"key-%d" % at, b"a", FIRST_MS + 150_000) for at in range(10)])
    made.run()
    counts = {}
    for record in given("in", 0):
        start = record.timestamp // 60_000 * 60_000
        counts[b"%s@%d" % (record.key, start)] = counts.get(b"%s@%d" % (record.key, start), 0) + 1
    sent = sorted((record.key, record.value) for record in cluster.read(made.topic("out")))
    assert sent == sorted((key, b"%d" % count) for key, count in counts.items())


@pytest.mark.long
@pytest.mark.parametrize("version", ["3.9.1", "4.4.0"])
def test_stores_of_each_kind_that_outgrow_the_memory(app, run_kops, cluster, tmp_path, monkeypatch, version):
    """Sessions, windows, tables, joins, buffers: what their changelogs get is the same."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dkops.memory.bytes=0")
    _, before, _ = check_kinds(version, app, run_kops, cluster, tmp_path)
    notes = "\n".join(run_kops("journal", "show", "last", "-o", "json").json["plan"]["notes"])
    assert {store for store in before if f"{store}: in " in notes and "outgrew the memory" in notes} == {*before}, notes


@pytest.mark.long
@pytest.mark.parametrize("version", ["3.6.2", "3.9.1", "4.0.0", "4.1.1"])
def test_stores_of_each_kind_in_older_versions(app, run_kops, cluster, tmp_path, version):
    made, before, wrong = check_kinds(version, app, run_kops, cluster, tmp_path, looks=True)
    run_kops("undo", "last", "--yes", "-B", cluster.servers).ok()
    after = {store: made.view(store) for store in before}
    (left,) = after.pop("closed-store").items()
    assert (left[0], left[1].value, left[1].headers) == (wrong.key, wrong.value, wrong.headers)
    assert not any(after.values())

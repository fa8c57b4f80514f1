"""An undo of a change of state after the real application continued: refused, or shown with what it removes."""

import shutil
import uuid

import pytest

from support import twins
from support.programs import Program, Record
from support.streams_cases import START

pytestmark = [pytest.mark.streams, pytest.mark.broker, pytest.mark.spark]

KEYS = [b"laptop", b"phone"]


@pytest.fixture(scope="module")
def gone_on(cluster, tmp_path_factory, run_kops_alone):
    """Two applications whose state was rebuilt, the one appended to, the other replaced, and which processed one more record then."""
    prefix = f"undo-{uuid.uuid4().hex[:8]}"
    made = [
        twins.make(cluster, Program("count", "long", value="bytes"), f"{prefix}-{way}", tmp_path_factory.mktemp(way), "at_least_once", 1)
        for way in ("append", "replace")
    ]
    twins.process(made, [Record(key, b"x", START + at) for at, key in enumerate(KEYS)])
    for twin in made:
        cluster.produce(twin.program.changelog, [Record(b"laptop", b"\x00" * 8, START, (), 0)])
        way = ("--write", "replace", "--confirm", twin.program.changelog) if twin is made[1] else ("--yes",)
        run_kops_alone("state", "rebuild", twin.state_file, "-B", cluster.servers, "--damaged", "totals", *way).ok()
        shutil.rmtree(twin.state)
    entries = [row["id"] for row in run_kops_alone("journal", "list", "-o", "json").ok().json][::-1]
    twins.process(made, [Record(b"mouse", b"x", START + 9)])
    yield list(zip(made, entries, strict=True))
    cluster.delete_all(cluster.topics(prefix))


@pytest.mark.parametrize("at", [0, 1], ids=["append", "replace"])
def test_undo_after_the_application_resumed_needs_accept_loss(gone_on, cluster, run_kops_alone, at):
    twin, entry = gone_on[at]
    name, before, committed = twin.program.application, twin.view(), cluster.committed(twin.program.application)
    undo = ("undo", entry, "-B", cluster.servers, "--yes", "--confirm", name)
    refused = run_kops_alone(*undo)
    assert refused.code == 5, refused
    for words in (f"{twin.program.changelog} has 1 more record of 1 key", f"group {name} moved on", "--accept-loss"):
        assert words in refused.err, refused.err
    assert (twin.view(), cluster.committed(name)) == (before, committed)

    plan = run_kops_alone(*undo, "--accept-loss", "--dry-run", "-o", "json").ok().json
    assert len(plan["losses"]) == 2
    if at == 1:
        (topic,) = [item for item in plan["items"] if item["action"] == "replace"]
        assert "it holds 3 records now" in topic["reason"]
    done = run_kops_alone(*undo, "--accept-loss").ok()
    assert f"lost by this: {twin.program.changelog} has 1 more record" in done.err
    assert run_kops_alone("state", "verify", twin.state_file, "-B", cluster.servers).code != 0
    again = run_kops_alone("undo", "last", "-B", cluster.servers, "--yes", "--confirm", name)
    assert (again.code, "although the application had moved on" in again.err) == (5, True)

"""A saved plan and a crashed entry, carried out, undone and resumed; only names and ids are those of this test's cluster."""

import hashlib
import json
from pathlib import Path

import pytest

from support.earlier_plans import journaled
from support.programs import Record

pytestmark = [pytest.mark.broker, pytest.mark.spark]

EARLIER = Path(__file__).parent.parent / "unit" / "operations" / "replay" / "earlier"
START = 1_760_000_000_000


@pytest.fixture
def of_this_cluster(kops, tmp_path):
    """Return an earlier plan with the topics and ids of this test."""

    def changed(plan, source, target, names):
        today = tmp_path / "today.json"
        kops("replay", "run", source, "--to", target, "--plan-out", today).ok()
        now, text = json.loads(today.read_text()), json.dumps(plan)
        for old, new in names.items():
            text = text.replace(f'"{old}', f'"{new}').replace(f" {old} ", f" {new} ")
        return json.loads(text) | {"cluster_id": now["cluster_id"], "guard": now["guard"]}

    return changed


def with_digest(plan):
    body = {name: value for name, value in plan.items() if name != "digest"}
    digest = hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    return body | {"digest": f"sha256:{digest}"}


def test_plan_file_is_applied_and_undone(scene, kops, of_this_cluster, tmp_path):
    source, target = scene.topic("source"), scene.topic("target")
    scene.cluster.produce(source, [Record(b"k%d" % n, b"v%d" % n, START + n, (("h", b"x"),), n % 2) for n in range(20)])
    plan = of_this_cluster(json.loads((EARLIER / "run.plan.json").read_text()), source, target, {"orders": source, "copy": target})
    saved = tmp_path / "plan.json"
    saved.write_text(json.dumps(with_digest(plan)))
    done = kops("apply", saved, "--yes", "-o", "json").ok().json
    assert scene.read(target) == scene.read(source)
    kops("undo", done["journal_id"], "--confirm", target).ok()
    assert scene.read(target) == []


def test_crashed_entry_is_resumed(scene, kops, of_this_cluster):
    source, target = scene.topic("source"), scene.topic("target")
    scene.cluster.produce(source, [Record(b"k%d" % n, b"v%d" % n, START + n, (), n % 2) for n in range(20)])
    entry = json.loads((EARLIER / "crashed.entry.json").read_text())
    plan = of_this_cluster(entry["plan"], source, target, {"orders": source, "slow": target})
    plan["arguments"]["rate"] = None  # it was to be slow enough to be killed
    crashed = journaled(entry | {"plan": plan})
    assert "proven: 20 records" in kops("replay", "resume", crashed, "--yes").ok().err
    assert scene.read(target) == scene.read(source)

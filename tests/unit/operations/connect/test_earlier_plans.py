"""Plan files and journal entries as kops writes them: still shown, applied and undone.

Each file holds what ``--plan-out`` saved, the closed entry, and the connectors and loggers before and after; one also
holds the declaring file and the key of its digests.
"""

import json

import pytest

from kops.core.plan import plan_document, plan_from_json
from kops.operations.connect import restart
from kops.operations.protocol import registry
from support.connect_in_memory import ConnectInMemory
from support.earlier_plans import approval, earlier_files, journaled, saved, state_folder, without_digest

EARLIER = earlier_files(__file__)


@pytest.fixture(params=EARLIER)
def earlier(request, tmp_path):
    file = tmp_path / "shop.yaml"
    body = json.loads(EARLIER[request.param].read_text().replace("SHOP_YAML", str(file)))
    if "key" in body:
        state_folder().mkdir(parents=True, exist_ok=True)
        (state_folder() / "connect-digests.key").write_bytes(bytes.fromhex(body["key"]))
    file.write_text(body.get("file", ""))
    return body


@pytest.fixture
def kops(run_kops, monkeypatch):
    monkeypatch.setenv("KOPS_CONNECT_URLS", "http://127.0.0.1:9")
    monkeypatch.setattr(restart, "STEADY_SECONDS", 0.0)
    return run_kops


@pytest.fixture
def connect(monkeypatch):
    def use(body):
        made = ConnectInMemory(body)
        monkeypatch.setattr("kops.gateways.connect.Connect", lambda *_, **__: made)
        return made

    return use


def test_arguments_round_trip(earlier):
    body = without_digest(earlier["plan"])
    plan = registry.typed(plan_from_json(body))
    assert not isinstance(plan.arguments, dict)
    assert json.loads(json.dumps(plan.as_json())) == body


def test_entry_is_shown(earlier, kops):
    shown = kops("journal", "show", journaled(earlier["closed"]), "-o", "json").ok().json
    assert shown["plan"] == without_digest(earlier["closed"]["plan"])


def test_plan_file_is_applied(earlier, kops, connect, tmp_path):
    workers = connect(earlier["before"])
    file = saved(tmp_path / "plan.json", plan_document(plan_from_json(without_digest(earlier["plan"]))))
    kops("apply", file, *approval(earlier["plan"])).ok()
    assert workers.body == earlier["after"]


def test_entry_is_undone(earlier, kops, connect):
    workers = connect(earlier["after"])
    entry = journaled(earlier["closed"])
    if earlier["plan"]["operation"] == "connect.restart":
        assert kops("undo", entry, "--yes").code == 5
        return
    plan = kops("undo", entry, "--dry-run", "-o", "json").ok().json
    kops("undo", entry, *approval(plan)).ok()
    offsets_stay = {
        name: {**one, "offsets": workers.body["connectors"][name]["offsets"]} for name, one in earlier["before"]["connectors"].items()
    }
    expected = offsets_stay if earlier["plan"]["operation"] == "connect.change" else earlier["before"]["connectors"]
    assert workers.body["connectors"] == expected
    assert workers.body["loggers"] == earlier["before"]["loggers"]


def test_damaged_arguments_are_refused(earlier, kops, connect, tmp_path):
    connect(earlier["before"])
    damaged = without_digest(earlier["plan"]) | {"arguments": {"other": 1}}
    file = saved(tmp_path / "plan.json", plan_document(plan_from_json(damaged)))
    assert kops("apply", file, *approval(earlier["plan"])).code == 2


@pytest.mark.parametrize("earlier", ["alter_offsets", "reset_offsets"], indirect=True)
def test_crashed_entry_is_finished(earlier, kops, connect):
    interrupted = earlier["before"]["connectors"]
    for name in {item["target"].split()[0] for item in earlier["plan"]["items"]}:
        interrupted[name]["state"] = "STOPPED"
    workers = connect(earlier["before"])
    entry = journaled(earlier["closed"] | {"status": "open", "ended": None, "results": []})
    kops("journal", "finish", entry, "--yes").ok()
    assert workers.body == earlier["after"]

"""Plans in files: written once, carried out later, refused when they are damaged or of another cluster."""

import json
import stat
from dataclasses import replace

import pytest

from kops.core.plan import plan_document, plan_from_json, plan_of_document

pytestmark = pytest.mark.broker


@pytest.fixture
def plan_file(configured, run_kops, unique, tmp_path):
    """A plan that creates a topic; and the topic's name."""
    name, file = unique(), tmp_path / "plan.json"
    run_kops("topics", "create", name, "--partitions", "2", "--plan-out", file).ok()
    yield file, name
    run_kops("topics", "delete", name, "--if-exists", "--confirm", name)


def exists(run_kops, name):
    return bool(run_kops("topics", "list", f"{name}*", "-o", "json").ok().json)


def rewrite(file, change):
    file.write_text(json.dumps(change(json.loads(file.read_text()))))


def test_a_plan_is_saved_carried_out_and_taken_back(plan_file, run_kops, home):
    file, name = plan_file
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not exists(run_kops, name)
    assert not (home / "state").exists()
    assert run_kops("apply", file).code == 5  # nobody approved it
    assert run_kops("apply", file, "--dry-run", "-o", "json").ok().json == json.loads(file.read_text())
    assert not exists(run_kops, name)
    run_kops("apply", file, "--yes").ok()
    assert exists(run_kops, name)
    assert run_kops("apply", file, "--yes").code == 5  # it exists now
    run_kops("undo", "last", "--confirm", name).ok()
    assert not exists(run_kops, name)


def test_a_file_is_never_overwritten(plan_file, run_kops, tmp_path):
    file, name = plan_file
    before = file.read_text()
    refused = run_kops("topics", "create", f"{name}2", "--plan-out", file)
    assert refused.code == 2
    assert "File exists" in refused.err
    assert file.read_text() == before
    assert run_kops("topics", "create", name, "--plan-out", tmp_path / "no" / "folder.json").code == 2


def test_a_plan_of_another_cluster(plan_file, run_kops):
    file, name = plan_file
    another = replace(plan_of_document(json.loads(file.read_text())), cluster_id="another-cluster")
    file.write_text(json.dumps(plan_document(another)))
    refused = run_kops("apply", file, "--yes")
    assert refused.code == 5
    assert "the plan is for cluster another-cluster" in refused.err
    assert not exists(run_kops, name)


@pytest.mark.parametrize(
    "damage",
    [
        lambda body: {**body, "version": 99},
        lambda body: {**body, "severity": "mild"},
        lambda body: {**body, "operation": "topics.transmogrify"},
        lambda body: {key: value for key, value in body.items() if key != "items"},
        lambda body: [body],
        lambda body: {**body, "guard": {}},
        lambda body: {**body, "arguments": {}},
        lambda body: {**body, "items": [{**body["items"][0], "target": "something-else"}]},
        lambda body: {key: value for key, value in body.items() if key != "digest"},
    ],
)
def test_a_damaged_plan(plan_file, run_kops, damage):
    file, name = plan_file
    rewrite(file, damage)
    refused = run_kops("apply", file, "--yes")
    assert refused.code == 2, refused.err
    assert "bug" not in refused.err
    assert not exists(run_kops, name)


@pytest.mark.parametrize("content", ["", "not json", "\x00"])
def test_what_is_no_plan(configured, run_kops, tmp_path, content):
    file = tmp_path / "plan.json"
    file.write_text(content)
    assert run_kops("apply", file, "--yes").code == 2
    assert run_kops("apply", tmp_path, "--yes").code == 2
    assert run_kops("apply", tmp_path / "nothing", "--yes").code == 2


def test_a_plan_survives_being_read_and_written(plan_file):
    body = json.loads(plan_file[0].read_text())
    plan = plan_of_document(body)
    assert json.loads(json.dumps(plan_document(plan))) == body
    assert plan_from_json(plan.as_json()) == plan


def test_contexts_that_are_read_only_or_protected(plan_file, run_kops, home, broker, monkeypatch):
    file, name = plan_file
    monkeypatch.delenv("KOPS_BOOTSTRAP_SERVERS")
    config = home / "config" / "kops" / "config.toml"
    config.parent.mkdir(parents=True)
    servers = json.dumps(broker.bootstrap_servers.split(","))
    config.write_text(
        f"[contexts.look]\nbootstrap_servers = {servers}\nread_only = true\n"
        f"[contexts.prod]\nbootstrap_servers = {servers}\nprotected = true\n"
    )
    refused = run_kops("apply", file, "--yes", "-c", "look")
    assert refused.code == 5
    assert "context look is read-only" in refused.err
    run_kops("topics", "create", name, "--dry-run", "-c", "look").ok()
    refused = run_kops("apply", file, "--yes", "-c", "prod", "-o", "json")
    assert refused.code == 5
    assert json.loads(refused.err.splitlines()[-1])["errors"][0]["details"] == {"confirm": ["prod"]}
    assert run_kops("apply", file, "--confirm", name, "-c", "prod").code == 5
    run_kops("apply", file, "--confirm", "prod", "-c", "prod").ok()
    for given in (["prod"], [name], [name, name], [name, "dev"]):
        confirmed = [word for each in given for word in ("--confirm", each)]
        assert run_kops("topics", "delete", name, *confirmed, "-c", "prod").code == 5
    refused = run_kops("topics", "delete", name, "--confirm", name, "-c", "prod", "-o", "json")
    assert json.loads(refused.err.splitlines()[-1])["errors"][0]["details"] == {"confirm": ["prod"]}
    run_kops("topics", "delete", name, "--confirm", name, "--confirm", "prod", "-c", "prod").ok()

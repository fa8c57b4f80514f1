"""Connectors on two real workers: applied from files, looked at, paused, stopped, failed, restarted, deleted."""

import json
import os

import pytest
import yaml

from kops.config.paths import directories
from support.connect import FILE_SINK, FILE_SOURCE

pytestmark = pytest.mark.broker
SECRET = "correct-horse-battery"


def everything_on_disk() -> str:
    """Return all that kops keeps: the journal, with its plans."""
    folder = directories(os.environ).state / "journal"
    return "".join(file.read_text() for file in folder.glob("*.json"))


def test_apply_change_and_undo_files(kops, connectors, topic, unique, tmp_path, until):
    name, source, sink = topic("applied"), unique("source"), unique("sink")
    read, written, secrets = tmp_path / "in.txt", tmp_path / "out.txt", tmp_path / "secrets.properties"
    read.write_text("one\ntwo\n")
    secrets.write_text(f"topic={name}\n")
    connectors.made.extend([source, sink])
    declared = [
        {"name": source, "config": {"connector.class": FILE_SOURCE, "file": str(read), "topic": f"${{file:{secrets}:topic}}"}},
        {"name": sink, "connector.class": FILE_SINK, "file": str(written), "topics": [name], "fake.password": SECRET, "tasks.max": 1},
    ]
    file = tmp_path / "connectors.yaml"
    file.write_text(yaml.safe_dump_all(declared))
    outputs = [kops("validate", file).ok(), kops("diff", file), kops("apply", file, "--dry-run", "-o", "json").ok()]
    assert outputs[1].code == 1
    assert f"{sink}" in outputs[1].out
    assert kops("list", f"{source[:12]}*", "-o", "name").out.split() == []
    outputs.append(kops("apply", file, "--yes").ok())
    until("the rows to pass", lambda: written.exists() and written.read_text() == "one\ntwo\n")
    outputs += [kops("describe", source, sink, "-o", "json").ok(), kops("describe", sink).ok()]
    configs = {one["name"]: one["config"] for one in outputs[-2].json}
    assert configs[source]["topic"] == f"${{file:{secrets}:topic}}"  # Connect looks it up, kops leaves it
    assert configs[sink]["fake.password"] == "********"
    same = kops("apply", file, "--yes", "-o", "json").ok()
    assert [item["status"] for item in same.json["items"]] == ["unchanged"] * 2
    assert (kops("diff", file).ok().out, same.json["status"]) == ("", "unchanged")

    declared[0]["config"] |= {"batch.size": 10}
    declared[1]["fake.password"] = f"{SECRET}-new"
    file.write_text(yaml.safe_dump_all(declared))
    different = kops("diff", file, "-o", "json")
    assert {row["setting"]: (row["actual"], row["declared"]) for row in different.json} == {
        "batch.size": (None, "10"),
        "fake.password": ("********", "******** (another)"),
    }
    plan = tmp_path / "plan.json"
    outputs += [different, kops("apply", file, "--plan-out", plan).ok(), kops.other("apply", plan, "--yes").ok()]
    assert kops("diff", file).code == 0
    refused = kops.other("undo", "last", "--yes")
    assert (refused.code, "fake.password" in refused.err, "keeps no secrets" in refused.err) == (5, True, True)
    shown = "".join(each.out + each.err for each in [*outputs, refused]) + plan.read_text() + everything_on_disk()
    assert SECRET not in shown

    file.write_text(yaml.safe_dump_all([declared[0], {"owns": [f"{sink}*"]}]))
    outputs = kops("apply", file, "--prune")
    assert (outputs.code, "--confirm" in outputs.err, f"delete connector {sink}" in outputs.err) == (5, True, True)
    kops("apply", file, "--prune", "--confirm", sink).ok()
    assert kops("list", sink).code == 1
    kops("delete", source, "--confirm", source).ok()
    kops.other("undo", "last", "--yes").ok()  # without secrets of its own it comes back
    until("it to run again", lambda: kops("status", source, "-o", "json").ok().json[0]["tasks"])


def test_properties_are_applied_and_compared(kops, connectors, topic, unique, tmp_path):
    name, sink = topic("applied"), unique("sink")
    connectors.made.append(sink)
    file = tmp_path / "sink.properties"
    text = f"name={sink}\nconnector.class={FILE_SINK}\nfile={tmp_path / 'out.txt'}\ntopics={name}\ntasks.max=1\n"
    file.write_text(f"{text}fake.password={SECRET}\n")
    assert kops("validate", file).code == 0
    outputs = [kops("apply", file, "--yes").ok(), kops("diff", file).ok()]
    file.write_text(text)
    different = kops("diff", file, "-o", "json")
    assert (different.code, [row["setting"] for row in different.json]) == (1, ["fake.password"])
    assert SECRET not in "".join(each.out + each.err for each in [*outputs, different]) + everything_on_disk()


def test_missing_secret_is_refused(kops, connectors, unique, tmp_path):
    name = unique("sealed")
    connectors.made.append(name)
    file, plan = tmp_path / "c.json", tmp_path / "plan.json"
    body = {"connector.class": FILE_SINK, "file": str(tmp_path / "out"), "topics": "none", "fake.token": SECRET}
    file.write_text(json.dumps({"name": name, "config": body}))
    kops("apply", file, "--plan-out", plan).ok()
    file.write_text(json.dumps({"name": name, "config": {**body, "fake.token": "another"}}))
    moved = kops.other("apply", plan, "--yes")
    assert (moved.code, f"fake.token of {name} is not in {file} as planned" in moved.err) == (5, True)
    assert kops("list", name).code == 1


def test_validate_names_invalid_settings(kops, unique, tmp_path):
    name = unique("wrong")
    file = tmp_path / "wrong.yaml"
    settings = {"connector.class": FILE_SINK, "tasks.max": "many", "topcs": "orders", "errors.tolerance": "some"}
    file.write_text(yaml.safe_dump_all([{"name": name, **settings}, {"name": f"{name}-2", "connector.class": "org.example.NoSink"}]))
    found = kops("validate", file, "-o", "json")
    assert found.code == 2
    rows = {(row["connector"], row["setting"]): row for row in found.json}
    assert set(rows) == {
        (name, "tasks.max"),
        (name, "topics"),
        (name, "topics.regex"),
        (name, "errors.tolerance"),
        (name, "topcs"),
        (f"{name}-2", "connector.class"),
    }
    assert (rows[name, "errors.tolerance"]["value"], rows[name, "errors.tolerance"]["level"]) == ("some", "error")
    assert "Not a number of type INT" in rows[name, "tasks.max"]["message"]
    assert (rows[name, "topcs"]["level"], rows[name, "topcs"]["hint"]) == ("warning", "did you mean topics?")
    assert "no worker has the plugin org.example.NoSink" in rows[f"{name}-2", "connector.class"]["message"]
    assert "kops connect plugins add" in rows[f"{name}-2", "connector.class"]["hint"]
    refused = kops("apply", file, "--yes")
    assert (refused.code, f"{name}: tasks.max" in refused.err or f"{name}:" in refused.err) == (2, True)
    assert kops("list", name).code == 1


def test_apply_twenty_connectors_is_idempotent(kops, connectors, unique, tmp_path):
    prefix = unique("many")
    names = [f"{prefix}-{number:02}" for number in range(20)]
    connectors.made.extend(names)
    folder = tmp_path / "connectors"
    folder.mkdir()
    for name in names:
        config = {"connector.class": FILE_SOURCE, "file": str(tmp_path / "none"), "topic": "none", "tasks.max": "1"}
        (folder / f"{name}.json").write_text(json.dumps({"name": name, "config": config}))
    first = kops("apply", folder, "--yes", "-o", "json").ok().json
    assert [item["status"] for item in first["items"]] == ["done"] * 20
    again = kops("apply", folder, "--yes", "-o", "json").ok()
    assert [item["status"] for item in again.json["items"]] == ["unchanged"] * 20
    assert "nothing to do" in again.err
    stopped = kops("stop", f"{prefix}-*", "--yes", "-o", "json").ok().json
    assert {(item["status"], item["value"]["state"], len(item["value"]["tasks"])) for item in stopped["items"]} == {("done", "STOPPED", 0)}
    assert "already STOPPED" in kops("stop", f"{prefix}-*", "--dry-run").ok().out
    kops.other("undo", "last", "--yes").ok()
    states = kops("list", f"{prefix}-*", "-o", "json").ok().json
    assert {(one["state"], one["tasks"]) for one in states} == {("RUNNING", 1)}
    kops("delete", f"{prefix}-*", "--confirm", "20 connectors").ok()


def test_pause_resume_and_concurrent_change(kops, pipeline, tmp_path):
    paused = kops("pause", pipeline.sink, "--yes", "-o", "json").ok().json
    assert paused["items"][0]["value"] == {"state": "PAUSED", "tasks": ["PAUSED"]}
    plan = tmp_path / "plan.json"
    kops("resume", pipeline.sink, "--plan-out", plan).ok()
    kops("stop", pipeline.sink, "--yes").ok()
    moved = kops.other("apply", plan, "--yes")
    assert (moved.code, "a connector changed since the plan was made" in moved.err) == (5, True)
    kops("resume", pipeline.sink, "--yes").ok()
    kops("alter", pipeline.sink, "--config", "errors.tolerance=all", "--delete-config", "tasks.max", "--yes").ok()
    (config,) = (one["config"] for one in kops("describe", pipeline.sink, "-o", "json").ok().json)
    assert (config["errors.tolerance"], "tasks.max" in config) == ("all", False)
    assert kops("alter", pipeline.sink, "--config", "errors.tolerance=some", "--yes").code == 2
    spoken = kops("alter", pipeline.sink, "--config", f"db.password={SECRET}", "--yes")
    assert (spoken.code, SECRET in spoken.err, "secrets do not belong on a command line" in spoken.err) == (2, False, True)
    kops.other("undo", "last", "--yes").ok()
    (config,) = (one["config"] for one in kops("describe", pipeline.sink, "-o", "json").ok().json)
    assert ("errors.tolerance" in config, config["tasks.max"]) == (False, "1")


def test_failed_task_is_restarted_until_it_runs(kops, connectors, connect_workers, topic, unique, tmp_path, until):
    name, folder = unique("failing"), tmp_path / "later"
    connectors.made.append(name)
    config = {"connector.class": FILE_SINK, "file": str(folder / "out.txt"), "topics": topic("failing"), "tasks.max": "1"}
    connect_workers.ask("PUT", f"/connectors/{name}/config", config)
    until("the task to fail", lambda: connect_workers.states(name) == ["RUNNING", "FAILED"])
    status = kops("status", name, "-o", "json", "--trace")
    (task,) = status.json[0]["tasks"]
    assert (status.code, task["state"]) == (1, "FAILED")
    assert "NoSuchFileException" in task["cause"]
    assert task["trace"].count("\n") > 3
    again = kops("restart", name, "--failed", "--yes")
    assert again.code == 1
    assert f"{name}: task 0 failed again: " in again.out
    assert "NoSuchFileException" in again.out
    taken = kops("alter", name, "--config", "errors.tolerance=none", "--yes", "-o", "json")
    assert (taken.code, taken.json["status"], taken.json["items"][0]["status"]) == (6, "partial", "partial")
    assert "has failed since: " in taken.json["errors"][0]["message"]
    kops("stop", name, "--yes").ok()
    resumed = kops("resume", name, "--yes", "-o", "json")
    assert (resumed.code, resumed.json["items"][0]["value"]) == (6, {"state": "RUNNING", "tasks": ["FAILED"]})
    folder.mkdir()
    fine = kops("restart", name, "--task", "0", "--yes", "-o", "json").ok().json
    assert fine["items"][0]["value"] == {"state": "RUNNING", "tasks": ["RUNNING"]}
    nothing = kops("restart", name, "--failed", "--yes").ok()
    assert "nothing to restart" in nothing.err
    assert kops("restart", name, "--task", "7", "--yes").code == 1
    kops("restart", name, "--yes").ok()
    assert (folder / "out.txt").exists()


def test_loggers_are_set_on_every_worker(kops, connect_workers):
    name = "org.apache.kafka.connect.runtime.WorkerSourceTask"
    kops("loggers", "set", name, "--level", "debug", "--yes").ok()
    (row,) = kops("loggers", "list", name, "-o", "json").ok().json
    assert (row["level"], row["last_modified"][:2]) == ("DEBUG", "20")
    kops.other("undo", "last", "--yes").ok()
    assert kops("loggers", "list", name, "-o", "json").ok().json[0]["level"] == "INFO"
    assert kops("loggers", "set", name, "--level", "loud", "--yes").code == 2


def test_plugins_are_described(kops):
    assert {row["class"] for row in kops("plugins", "list", "-o", "json").ok().json} >= {FILE_SOURCE, FILE_SINK}
    assert "org.apache.kafka.connect.transforms.ReplaceField$Value" in kops("plugins", "list", "--all").ok().out
    settings = {one["name"]: one for one in kops("plugins", "describe", "FileStreamSource", "-o", "json").ok().json["settings"]}
    assert (settings["topic"]["required"], settings["batch.size"]["default"]) == (True, "2000")
    missing = kops("plugins", "describe", "FileStreamSurce")
    assert (missing.code, "did you mean FileStreamSource" in missing.err) == (1, True)

"""``examples/file-to-file``: lines through four transforms into files, wrong settings named, a failed task, offsets moved back.

No brokers are named: Connect is all that is asked.
"""

import json

import pytest

from support.examples import with_names
from support.streams_apps import wait_for

pytestmark = pytest.mark.broker

LINES = ["first line", 'a "quoted" one', "{}", "last"]
"""Of ASCII: the position of the plugin counts characters, so a task that starts again would read others a second time."""


def as_json(lines):
    return "".join(f"{json.dumps({'text': line}, ensure_ascii=False, separators=(',', ':'))}\n" for line in lines).encode()


def as_text(lines):
    return "".join(f"{line}\n" for line in lines).encode()


def test_lines_are_changed_written_and_written_again(run_kops, connect_workers, connectors, cluster, unique, tmp_path, monkeypatch):
    monkeypatch.setenv("KOPS_CONNECT_URLS", ",".join(connect_workers.urls))
    prefix = f"{unique()}-"
    source, copy, texts = (f"{prefix}file-{name}" for name in ("lines", "copy", "texts"))
    read, copied, written = tmp_path / "in.txt", tmp_path / "out.txt", tmp_path / "later" / "texts.txt"
    connectors.made.extend([source, copy, texts])
    places = {"/tmp/file-to-file": str(tmp_path), "name: file-": f"name: {prefix}file-"}
    wrong = with_names("file-to-file", "wrong.yaml", tmp_path, places)
    folder = tmp_path / "connectors"
    folder.mkdir()
    with_names("file-to-file", "connectors/source.yaml", folder, {**places, "topic: lines": f"topic: {prefix}lines"})
    with_names("file-to-file", "connectors/sinks.yaml", folder, {**places, "regex: lines": f"regex: {prefix}lines"})

    def kops(*arguments):
        return run_kops("connect", *arguments)

    found = kops("validate", wrong, "-o", "json")
    rows = {row["setting"]: (row["level"], row["hint"]) for row in found.json}
    assert (found.code, rows.pop("fle")) == (2, ("warning", "did you mean file?"))
    assert rows == {
        "transforms.origin.type": ("error", "did you mean org.apache.kafka.connect.transforms.InsertField$Value?"),
        "transforms.key.fields": ("error", None),
    }
    assert kops("list", f"{prefix}*", "-o", "name").out == ""

    read.write_bytes(as_text(LINES))
    kops("validate", folder).ok()
    kops("apply", folder, "--yes")  # a task of the second sink fails, sooner or later: its folder is not there
    try:
        wait_for("the lines to pass", lambda: copied.exists() and copied.read_bytes() == as_json(LINES))
        (name,) = cluster.topics(f"{prefix}lines-")
        assert name.removeprefix(f"{prefix}lines-").isdigit()
        assert {record.key for record in cluster.read(name)} == {b'{"origin":"in.txt"}'}

        wait_for("the task to fail", lambda: connect_workers.states(texts) == ["RUNNING", "FAILED"])
        status = kops("status", f"{prefix}*", "--failed", "-o", "json")
        assert (status.code, [one["name"] for one in status.json]) == (1, [texts])
        assert "NoSuchFileException" in status.json[0]["tasks"][0]["cause"]
        written.parent.mkdir()
        restarted = kops("restart", f"{prefix}*", "--failed", "--yes", "-o", "json").ok().json
        assert {item["target"]: item["status"] for item in restarted["items"]}[texts] == "done"
        assert [item["target"] for item in restarted["items"] if item["status"] == "done"] == [texts]
        wait_for("the texts", lambda: written.exists() and written.read_bytes() == as_text(LINES))

        wait_for("the offset", lambda: kops("offsets", "show", source, "-o", "json").json)
        (row,) = kops("offsets", "show", source, "-o", "json").json
        assert row["offset"] == {"position": len(as_text(LINES))}
        kops("stop", source, "--yes").ok()
        back = ("--partition", json.dumps(row["partition"]), "--offset", json.dumps({"position": len(as_text(LINES[:2]))}))
        kops("offsets", "alter", source, *back, "--yes").ok()
        assert kops("status", source, "-o", "json").json[0]["state"] == "STOPPED"
        kops("resume", source, "--yes").ok()
        wait_for("the last lines again", lambda: copied.read_bytes() == as_json(LINES + LINES[2:]))
        wait_for("the last texts again", lambda: written.read_bytes() == as_text(LINES + LINES[2:]))
        shown = kops("offsets", "show", copy).ok()
        assert "unknown without brokers" in shown.err
        assert "nothing to do" in kops("apply", folder, "--yes").ok().err
        asked = run_kops("topics", "list")
        assert (asked.code, "no brokers are configured" in asked.err) == (2, True)
    finally:
        for connector in (source, copy, texts):
            kops("delete", connector, "--confirm", connector)
        cluster.delete_all(cluster.topics(f"{prefix}lines-"))

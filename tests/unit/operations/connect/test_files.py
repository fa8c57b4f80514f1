"""Files that declare connectors."""

import json

import pytest

from kops.core.errors import ConfigError
from kops.operations.connect.files import read_declaration

YAML = """
name: orders
config:
  connector.class: a.B
  tasks.max: 2
  batch: true
  topics: [a, b]
  password: ${file:/run/x:y}
---
name: flat
connector.class: a.C
---
owns: [shop-*]
"""


def test_both_document_forms_in_yaml_and_json(tmp_path):
    (tmp_path / "a.yaml").write_text(YAML)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.json").write_text(json.dumps([{"name": "json", "config": {"connector.class": "a.D", "name": "json"}}]))
    (tmp_path / "notes.txt").write_text("no connector")
    found = read_declaration([str(tmp_path)])
    assert {one.name: dict(one.config) for one in found.connectors} == {
        "orders": {"connector.class": "a.B", "tasks.max": "2", "batch": "true", "topics": "a,b", "password": "${file:/run/x:y}"},
        "flat": {"connector.class": "a.C"},
        "json": {"connector.class": "a.D"},
    }
    assert found.owns == ("shop-*",)


def test_properties_of_a_standalone_worker(tmp_path):
    (tmp_path / "sink.properties").write_text(
        "# by hand\nname = sink\nconnector.class=a.B\nfile=C:\\\\data\ntopics: a,\\\n    b\nbatch 007\n"
    )
    (tmp_path / "worker.properties").write_text("bootstrap.servers=a:1\n")
    (tmp_path / "secrets.properties").write_text("password=ä\n", encoding="utf-8")
    (one,) = read_declaration([str(tmp_path)]).connectors
    assert (one.name, one.file) == ("sink", str(tmp_path / "sink.properties"))
    assert dict(one.config) == {"connector.class": "a.B", "file": "C:\\data", "topics": "a,b", "batch": "007"}
    with pytest.raises(ConfigError, match=r"worker.properties: name is missing"):
        read_declaration([str(tmp_path / "worker.properties")])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: a", "connector.class is missing"),
        ("connector.class: a.B", "name is missing"),
        ("name: a\nconnector.class: a.B\nx: {y: 1}", "x is a mapping"),
        ("name: a\nconnector.class: a.B\nx: null", "x has no value"),
        ("name: a\nconfig: {connector.class: a.B}\ntasks.max: 1", "tasks.max is next to config"),
        ("name: a\nconfig: {connector.class: a.B, name: b}", "name is b, and the document's name is a"),
        ("name: a\nconnector.class: a.B\n---\nname: a\nconnector.class: a.B", "a is declared twice"),
        ("owns: ['*']", "would own every connector"),
        ("- a", "must be a mapping"),
        ("name: [", "not YAML"),
        ("", "no connector is declared"),
    ],
)
def test_invalid_declarations_name_file_and_setting(tmp_path, text, said):
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(ConfigError, match=said.replace("*", r"\*")) as wrong:
        read_declaration([str(tmp_path / "a.yaml")])
    assert wrong.value.exit_code == 2


def test_invalid_json_is_rejected(tmp_path):
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(ConfigError, match="is not JSON"):
        read_declaration([str(tmp_path)])


WRITTEN = ["0100", "007", "12:30", "on", "no", "True", "1e3", "1.50", "0x1F", "1_000", "2026-11-20", "12345678901234567.89"]


@pytest.mark.parametrize("text", WRITTEN)
def test_values_are_the_texts_as_written(tmp_path, text):
    (tmp_path / "a.yaml").write_text(f"name: {text}\nconfig:\n  connector.class: a.B\n  value: {text}\n  list: [{text}, {text}]\n")
    (only,) = read_declaration([str(tmp_path / "a.yaml")]).connectors
    assert only.name == text
    assert only.config == {"connector.class": "a.B", "value": text, "list": f"{text},{text}"}


def test_json_values_are_the_texts_as_written(tmp_path):
    body = '{"name": "a", "connector.class": "a.B", "x": 1.50, "y": 1e3, "z": [12345678901234567.89, true], "flag": false}'
    (tmp_path / "a.json").write_bytes(b"\xef\xbb\xbf" + body.encode())
    (only,) = read_declaration([str(tmp_path / "a.json")]).connectors
    assert only.config == {"connector.class": "a.B", "x": "1.50", "y": "1e3", "z": "12345678901234567.89,true", "flag": "false"}


@pytest.mark.parametrize("name", ["a.json", "a.yaml"])
def test_a_key_given_twice_is_refused(tmp_path, name):
    (tmp_path / name).write_text('{"name": "a", "config": {"connector.class": "a.B", "password": "0123", "password": "x"}}')
    with pytest.raises(ConfigError, match="password is given twice"):
        read_declaration([str(tmp_path / name)])

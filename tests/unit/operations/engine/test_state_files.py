"""Formats of plugins in state files: read, never written, and no better than what witnesses show."""

import pytest

from kops.core.errors import ConfigError
from kops.core.statefile import parse_state_file
from kops.operations.engine.state_files import read_state_file
from kops.operations.state.rules.statement import input_log
from kops.operations.state.rules.windows import other_keys, rewritten_code
from kops.plugins import loader
from support.verdicts import DOUBT, REMARK, kinds

COUNT = {"aggregate": {"count": True}}


def parsed(source, **more):
    body = {"application": "a", "streams": {"version": "4.3"}, "stores": {"s": {"from": {"topic": "t", **source}, **more}}}
    return parse_state_file("f", body, lambda: ["uuid-binary"]).stores[0]


def test_keys_and_values_may_have_one():
    store = parsed({"key": "uuid-binary", "value": {"format": "uuid-binary"}}, **COUNT)
    assert [(form.name, form.plugin) for form in (store.source.key, store.source.value)] == [("uuid-binary", True)] * 2
    assert store.key_form.plugin
    assert not parsed({"key": "string", "value": "uuid"}, **COUNT).source.value.plugin


@pytest.mark.parametrize(
    ("source", "more", "field", "said"),
    [
        ({"key": "uuid-binry", "value": "long"}, COUNT, "stores.s.from.key", "did you mean uuid-binary?"),
        ({"key": "other", "value": "long"}, COUNT, "stores.s.from.key", "protobuf, uuid-binary"),
        ({"key": "string", "value": {"format": "uuid-binary", "schema": "a int"}}, COUNT, "stores.s.from.value.schema", "json"),
        ({"key": "string", "value": "uuid-binary"}, {"key_by": "value", "key_as": "uuid-binary", **COUNT}, "stores.s.key_as", "one of: "),
        (
            {"key": "string", "value": "long"},
            {"aggregate": {"max": "value", "as": "uuid-binary"}},
            "stores.s.aggregate.as",
            "last or first",
        ),
        (
            {"key": "string", "value": "uuid-binary"},
            {"aggregate": {"reducer": "a:b", "as": "uuid-binary"}},
            "stores.s.aggregate.as",
            "last",
        ),
    ],
)
def test_elsewhere_or_misspelled(source, more, field, said):
    with pytest.raises(ConfigError) as caught:
        parsed(source, **more)
    assert caught.value.details["field"] == field
    assert said in (caught.value.hint or "")


def test_findings_say_that_a_plugin_decodes():
    count = parsed({"key": "string", "value": "uuid-binary"}, **COUNT)
    said = "uuid-binary is a plugin's format, the application's serde written again in Python"
    (found,) = rewritten_code(count)
    assert (kinds([found]), found.summary) == ([REMARK], said)
    assert not list(other_keys(count))
    keyed = parsed({"key": "uuid-binary", "value": "long"}, **COUNT)
    assert kinds([*other_keys(keyed), *rewritten_code(keyed)]) == [DOUBT, REMARK]
    kept = parsed({"key": "string", "value": "uuid-binary"}, aggregate={"last": "value"})
    (found,) = input_log(kept, {}, "delete", "t")
    assert (kinds([found]), "may write it in other bytes" in found.summary) == ([REMARK], True)


def test_a_file_on_disk(tmp_path, monkeypatch):
    """The plugins that are installed count; one that cannot be loaded is named before anything is read."""
    file = tmp_path / "state.yaml"
    source = "{topic: t, key: %s, value: string}"
    text = f'application: a\nstreams: {{version: "4.3"}}\nstores: {{s: {{from: {source}, aggregate: {{count: true}}}}}}\n'
    broken = loader.Plugin("half", "format", "kops-broken", "9.9", "operator:add")
    monkeypatch.setattr(loader, "installed", lambda kind: [broken] if kind == "format" else [])
    file.write_text(text % "string")
    assert not read_state_file(str(file)).stores[0].source.key.plugin
    file.write_text(text % "half")
    with pytest.raises(ConfigError, match=r"stores\.s\.from: plugin half \(format\) of kops-broken 9\.9 cannot be used"):
        read_state_file(str(file))
    monkeypatch.setenv(loader.DISABLED, "half")
    with pytest.raises(ConfigError, match="unknown format 'half'"):
        read_state_file(str(file))

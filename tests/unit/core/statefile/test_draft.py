"""Drafts as text: YAML that says the same as the data, whatever the names are."""

import pytest
import yaml

from kops.core.errors import ConfigError
from kops.core.statefile.draft import OPEN, Draft, Entry, open_entry, refuse_open


def draft(*stores):
    return Draft("app", (Entry("application", "app"), Entry("stores", stores)), {"buffer": "it holds back updates"})


@pytest.mark.parametrize("name", ["counts", "null", "true", "123", "a.b-c", "on", "KSTREAM-AGGREGATE-STATE-STORE-0000000001"])
def test_names_come_back_as_texts(name):
    made = draft(Entry(name, (Entry("from", (Entry("topic", name),)), Entry("value", {"format": "json", "schema": "a string, `b c` int"}))))
    body = yaml.safe_load(made.text())
    assert body == made.as_json()["state_file"]
    assert body["stores"][name]["from"]["topic"] == name


def test_open_fields_are_marked_listed_and_refused():
    made = draft(Entry("s", (open_entry("key_by", "what the key is " * 20), Entry("aggregate", {"count": True}, "a comment"))))
    assert [path for path, _todo in made.open_fields] == ["stores.s.key_by"]
    text = made.text()
    assert "# TODO: what the key is" in text
    assert "# buffer is not in this file: it holds back updates" in text
    assert max(map(len, text.splitlines())) <= 80
    with pytest.raises(ConfigError, match=r"file\.yaml: still open: stores\.s\.key_by") as refused:
        refuse_open("file.yaml", yaml.safe_load(text))
    assert refused.value.details["fields"] == ["stores.s.key_by"]
    refuse_open("file.yaml", {"stores": {"s": {"key_by": f"{OPEN}.field"}}})

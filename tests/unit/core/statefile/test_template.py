"""The template of a state file as text: YAML that says the same as the data, whatever the names are."""

import pytest
import yaml

from kops.core.errors import ConfigError
from kops.core.statefile.models import KEY_VALUE, VERSIONED
from kops.core.statefile.template import OPEN, StoreSeen, open_fields, refuse_open, template, template_text

KINDS = [(KEY_VALUE, None), (VERSIONED, None), (VERSIONED, 3_600_000), ("windowed", None)]


@pytest.mark.parametrize("name", ["counts", "null", "true", "123", "a.b-c", "on", "KSTREAM-AGGREGATE-STATE-STORE-0000000001"])
@pytest.mark.parametrize(("kind", "history"), KINDS)
def test_the_text_says_the_same_as_the_data(name, kind, history):
    stores = [StoreSeen(name, f"app-{name}-changelog", kind, history)]
    body = template("app", stores)
    text = template_text(body, stores, ["orders"])
    assert yaml.safe_load(text) == body
    assert f"changelog: app-{name}-changelog" in text
    assert "It reads: orders." in text
    assert max(map(len, text.splitlines())) <= 140


def test_open_fields_are_listed_and_refused():
    body = template("app", [StoreSeen("s", "app-s-changelog", VERSIONED, 3_600_000)])
    expected = ["streams.version", "streams.guarantee", "stores.s.from.topic", "stores.s.from.key", "stores.s.from.value"]
    assert list(open_fields(body)) == expected
    with pytest.raises(ConfigError, match=r"file\.yaml: still open: streams\.version") as refused:
        refuse_open("file.yaml", body)
    assert refused.value.details["fields"] == expected
    refuse_open("file.yaml", {"stores": {"s": {"key_by": f"{OPEN}.field"}}})
